-- Looks at stream entries without moving their payloads out of the server.
--
-- KEYS     streams
-- ARGV[1]  XRANGE or XREVRANGE, [2] how many entries in all, [3] what the key of a task's record begins with,
-- ARGV[4]  1 if records are read, then of each stream where to begin and to end
-- Reply    seconds, microseconds, and of each entry, stream by stream, {stream, id, task id, 1 if it has a payload,
--          snapshot}

-- Entries are read in bites, since the server holds their payloads meanwhile.

local BITE = 16
local direction, left, prefix, looks = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4] == '1'
local now = redis.call('TIME')
local seen = {now[1], now[2]}

local function see(number, entry)
  local task_id, has_payload = '', 0
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'task_id' then task_id = entry[2][i + 1] end
    if entry[2][i] == 'payload' then has_payload = entry[2][i + 1] ~= '' and 1 or 0 end
  end
  -- a key of another type spoils its own entry only: the reason stands where the snapshot would
  local record = looks and redis.pcall('HMGET', prefix .. task_id, 'the fields of a snapshot')
  seen[#seen + 1] = {number, entry[1], task_id, has_payload, record and record.err or record}
end

for number = 1, #KEYS do
  local begin = ARGV[2 * number + 3]
  while left > 0 do
    local count = math.min(BITE, left)
    local found = redis.call(direction, KEYS[number], begin, ARGV[2 * number + 4], 'COUNT', count)
    for _, entry in ipairs(found) do see(number, entry) end
    left = left - #found
    if #found < count then break end
    begin = '(' .. found[#found][1]
  end
end
return seen
