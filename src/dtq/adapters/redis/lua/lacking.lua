-- Tells which records have no payload, or an empty one; it may be long, and does not leave the server.
--
-- KEYS     records of tasks
-- Reply    seconds, microseconds, and the numbers of the records without one among KEYS

local now = redis.call('TIME')
local lacking = {now[1], now[2]}

for number = 1, #KEYS do
  -- what is wrong with a key is told of elsewhere
  local payload = redis.pcall('HGET', KEYS[number], 'payload')
  if not payload or payload == '' then lacking[#lacking + 1] = number end
end
return lacking
