-- Tells which tasks are not to be found where their records say that they are; nothing else of them leaves the server.
--
-- KEYS     the schedule, the claims, then records of tasks
-- ARGV[1]  what the name of a stream begins with, [2] what is between the queue and the priority,
-- ARGV[3]  by each status of a task that is alive whether it stands in the schedule, and in no stream (msgpack)
-- Reply    seconds, microseconds, and the numbers of the records among KEYS

local now = redis.call('TIME')
local schedule, claims, head, middle = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local is_scheduled = cmsgpack.unpack(ARGV[3])
local suspects = {now[1], now[2]}

-- What this user may not do says nothing of any task; what is wrong with a key is for the look that follows.
local function try(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err and not redis.acl_check_cmd(...) then error(reply) end
  return reply
end

local function stands(record)
  local waits = is_scheduled[record[1]]
  if waits == nil then return true end
  if waits then
    local id = record[5]
    return id and (type(try('ZSCORE', schedule, id)) == 'string' or type(try('ZSCORE', claims, id)) == 'string')
  end
  local queue, priority, entry_id = record[2], record[3], record[4]
  return queue and priority and entry_id and #try('XRANGE', head .. queue .. middle .. priority, entry_id, entry_id) == 1
end

for number = 3, #KEYS do
  local record = try('HMGET', KEYS[number], 'status', 'queue', 'priority', 'entry_id', 'task_id')
  if not stands(record) then suspects[#suspects + 1] = number end
end
return suspects
