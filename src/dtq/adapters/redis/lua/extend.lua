-- Makes the entries of executions look new, where the task still names the lease.
--
-- KEYS     of each lease the task's record, then the entry's stream
-- ARGV[1]  group, [2] worker, then of each lease the lease and the entry's id
-- Reply    seconds, microseconds, and of each lease {1 kept or 0 lost, what the record says of a cancel request}

local group, worker = ARGV[1], ARGV[2]
local reports = {}
for number = 1, #KEYS / 2 do
  local record, stream = KEYS[2 * number - 1], KEYS[2 * number]
  local lease, id = ARGV[2 * number + 1], ARGV[2 * number + 2]
  -- a key of another type names no lease, and must not cost the neighbors theirs
  local stored = redis.pcall('HMGET', record, 'lease', 'cancel_requested')
  if stored[1] == lease then
    -- JUSTID: the body is not wanted, and an extension is no delivery. The group may be lost: the lease still counts.
    redis.pcall('XCLAIM', stream, group, worker, 0, id, 'JUSTID')
    reports[number] = {1, stored[2] or ''}
  else
    reports[number] = {0, ''}
  end
end
local now = redis.call('TIME')
return {now[1], now[2], reports}
