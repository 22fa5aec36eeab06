-- Makes the entries of executions look new, where the task still names the lease.
--
-- KEYS     of each lease the task's record, then the entry's stream
-- ARGV[1]  group, [2] worker, then of each lease the lease and the entry's id
-- Reply    seconds, microseconds, and of each lease {1 kept or 0 lost, what the record says of a cancel request}

-- Asked first: where the time may not be told, nothing is done either.
local now = redis.call('TIME')
local group, worker = ARGV[1], ARGV[2]
local reports = {now[1], now[2]}

-- What spoils one lease must not cost its neighbors theirs. What this user may not do says nothing of any lease.
local function try(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err and not redis.acl_check_cmd(...) then error(reply) end
  return reply
end

for number = 1, #KEYS / 2 do
  local record, stream = KEYS[2 * number - 1], KEYS[2 * number]
  local lease, id = ARGV[2 * number + 1], ARGV[2 * number + 2]
  -- a key of another type names no lease
  local stored = try('HMGET', record, 'lease', 'cancel_requested')
  if stored[1] == lease then
    -- JUSTID: the body is not wanted, and an extension is no delivery. The group may be lost: the lease still counts.
    try('XCLAIM', stream, group, worker, 0, id, 'JUSTID')
    reports[number + 2] = {1, stored[2] or ''}
  else
    reports[number + 2] = {0, ''}
  end
end
return reports
