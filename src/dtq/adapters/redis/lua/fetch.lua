-- Takes entries for a worker in one sweep over the bands, highest first, without waiting.
--
-- KEYS     the streams in the order of their service, then the pause switch, the cancel marks, the queue registry
-- ARGV[1]  group, [2] worker, [3] how many entries, [4] idle milliseconds from which entries are reaped ('' none),
-- ARGV[5]  entries of one bite, [6] bytes after which no further bite is taken, [7] queue,
-- ARGV[8]  what the key of a task's record begins with,
-- ARGV[9]  ids that the worker holds already, one list a band (msgpack), '' none,
-- ARGV[10] the status and [11] the attempts of a task that waits for its first start,
-- ARGV[12] offers: lease, token, .. (msgpack), '' none, [13] their moment, in milliseconds and [14] as events have it,
-- ARGV[15] how the start of a task is made (msgpack), a list of commands: words, then for some of them the place and the
--          pieces, where numbers stand for the values of the task; [16] the lifetime of its record beside its timeout, in
--          milliseconds, [17] how many tokens a record remembers
-- Reply    seconds, microseconds, paused, faults if there are any, and the entries: each is {band, id, fields, snapshot,
--          marked}, with the reason in place of a snapshot that cannot be had; marks are read only where there is no
--          record. Where the short look is enough, it is {band, id, the entry's values.., what the snapshot says beside
--          them.., offer}: each list in a reply costs the server as much as ten texts. Offer is the number of the one that
--          the task was started by, 0 where it was not. A fault is {band, reason}. A band that
--          fails leaves what the others gave.

-- Asked first: where the time may not be told, nothing is done either.
local now = redis.call('TIME')
local call, try = redis.call, redis.pcall
local group, worker, room, idle = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local bite, budget, queue, prefix = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8]
local held = ARGV[9] ~= '' and cmsgpack.unpack(ARGV[9])
local bands = #KEYS - 3
local reply = {now[1], now[2], 0, false}
local usual = {'the fields of an entry'}
-- A number that is given to a command costs the server as much as the command.
local numerals = {'1', '2', '3', '4', '5', '6', '7', '8'}
local offers, used, at, commands = ARGV[12] ~= '' and cmsgpack.unpack(ARGV[12]) or {}, 0, tonumber(ARGV[13]), nil
local find, unpack = string.find, unpack

-- Answers nothing unless the record is that of a task that waits for its first start, and says what its entry says.
-- It has so many fields that there is none beside those that are looked at, its payload and its tokens.
local function short_look(id, entry)
  local key = prefix .. entry[2]
  local found = try('HMGET', key, 'version', 'created_at', 'available_at', 'metadata', 'ttl_at', 'entry_id', 'task_id',
    'queue', 'task_type', 'max_attempts', 'priority', 'timeout_ms', 'idempotency_key', 'status', 'attempt', 'tokens')
  if found[6] == id and found[7] == entry[2] and found[8] == entry[4] and found[9] == entry[6] and found[10] == entry[10]
    and found[11] == entry[12] and found[12] == entry[14] and (found[13] or '') == entry[16]
    and found[14] == ARGV[10] and found[15] == ARGV[11] and (found[1] or '') ~= '' and found[2] and found[3] and found[4]
    and try('HLEN', key) == 15 + (found[5] and 1 or 0) + (found[13] and 1 or 0) then
    return found
  end
end

-- Puts values into the words of a command, which the next task writes over.
local function fill(command, values)
  local words = command[1]
  for i = 2, #command do
    local hole, text = command[i], nil
    if #hole == 2 then
      text = values[hole[2]]
    else
      local pieces = {}
      for j = 2, #hole do pieces[j - 1] = values[hole[j]] or hole[j] end
      text = table.concat(pieces)
    end
    words[hole[1]] = text
  end
  return words
end

-- Makes the start that the next offer has for a task, and returns its number, or 0 where it needs another look: where it
-- may expire, has an idempotency key, is early, is not where its record has it, or is written in a way in which dtq
-- writes none.
local function start(band, entry, told)
  local id, task_type, timeout, created, available, tokens = entry[2], entry[6], entry[14], told[2], told[3], told[16]
  if used == #offers or told[5] or entry[16] ~= '' or entry[4] ~= queue or entry[12] ~= tostring(bands - band)
    or find(created .. available .. timeout, '%D') or find(id .. task_type, '[%c"\\]')
    or math.max(tonumber(created) or 1/0, tonumber(available) or 1/0) > at or not tonumber(timeout) or not tokens
    or select(2, string.gsub(tokens, ' ', '')) > tonumber(ARGV[17]) - 2 then
    return 0
  end
  local lease, token = offers[used + 1], offers[used + 2]
  local values = {id, task_type, lease, token, ARGV[13], ARGV[14], token .. ' ' .. tokens,
    string.format('%.0f', tonumber(ARGV[16]) + tonumber(timeout)), worker, queue}
  commands = commands or cmsgpack.unpack(ARGV[15])
  for i = 1, #commands do
    local words = fill(commands[i], values)
    -- a step that may not be made is found before the first one: all of them go another way then
    if used == 0 and not redis.acl_check_cmd(unpack(words)) then
      offers = {}
      return 0
    end
  end
  for i = 1, #commands do call(unpack(commands[i][1])) end
  used = used + 2
  return used / 2
end

-- Whoever adds an entry by hand may give it other fields, or the same in another order.
local function is_usual(entry)
  for i = 1, 9 do
    if entry[2 * i - 1] ~= usual[i] then return false end
  end
  return #entry == 18
end

local function add(band, entry)
  local id, fields = entry[1], entry[2]
  room = room - 1
  local told = is_usual(fields) and short_look(id, fields)
  if told then
    budget = budget - #fields[18]
    reply[#reply + 1] = {band, id, fields[2], fields[4], fields[6], fields[8], fields[10], fields[12], fields[14],
      fields[16], fields[18], told[1], told[2], told[3], told[4], told[5], start(band, fields, told)}
    return
  end
  local task_id = ''
  for i = 2, #fields, 2 do
    if fields[i - 1] == 'task_id' then task_id = fields[i] end
    budget = budget - #fields[i]
  end
  -- a key of another type spoils its own entry only: the reason stands where the snapshot would
  local record = try('HMGET', prefix .. task_id, 'the fields of a snapshot')
  record = record.err or record
  local is_gone = type(record) == 'table' and (record[1] or '') == ''
  local marked = is_gone and call('SISMEMBER', KEYS[bands + 2], task_id) or 0
  reply[#reply + 1] = {band, id, fields, record, marked}
end

local function wanted()
  if budget <= 0 then return 0 end
  return math.min(bite, room)
end

-- What is taken looks new, even if it was handed back meanwhile: else the next who reaps would take it from its run.
local function take_held(band, stream)
  for _, id in ipairs(held[band]) do
    if wanted() == 0 then return end
    local owned = #call('XPENDING', stream, group, id, id, 1, worker) == 1
    local claimed = owned and call('XCLAIM', stream, group, worker, 0, id)
    if claimed and #claimed == 1 then add(band, claimed[1]) end
  end
end

-- No entry is looked at twice, so that the loop ends whatever the claims answer.
local function reap(band, stream)
  local start = '-'
  while wanted() > 0 do
    local listed = call('XPENDING', stream, group, 'IDLE', idle, start, '+', wanted())
    if #listed == 0 then return end
    for _, one in ipairs(listed) do
      start = '(' .. one[1]
      local claimed = call('XCLAIM', stream, group, worker, idle, one[1])
      if #claimed == 1 then add(band, claimed[1]) end
    end
  end
end

local function read(band, stream)
  local count = wanted()
  while count > 0 do
    local found = call('XREADGROUP', 'GROUP', group, worker, 'COUNT', numerals[count] or count, 'STREAMS', stream, '>')
    if not found then return end
    local taken = found[1][2]
    for i = 1, #taken do add(band, taken[i]) end
    if #taken < count then return end
    count = wanted()
  end
end

local function sweep(band)
  local stream = KEYS[band]
  if held then take_held(band, stream) end
  if idle ~= '' then reap(band, stream) end
  read(band, stream)
end

local function reason_of(fault)
  return type(fault) == 'table' and fault.err or tostring(fault)
end

-- The groups of all bands get lost together (a flush, a failover), so all are made, from the first entry on.
local function repair()
  try('HINCRBY', KEYS[bands + 3], queue, 0)
  for band = 1, bands do try('XGROUP', 'CREATE', KEYS[band], group, '0', 'MKSTREAM') end
end

if call('EXISTS', KEYS[bands + 1]) == 1 then return {now[1], now[2], 1, false} end
for band = 1, bands do
  if wanted() == 0 then break end
  -- Most bands are empty, which costs less to ask than to read. The last one is read all the same: who reads notices
  -- that the groups are lost.
  if held or idle ~= '' or band == bands or try('XLEN', KEYS[band]) ~= 0 then
    local swept, fault = pcall(sweep, band)
    if not swept and string.find(reason_of(fault), '^NOGROUP') then
      repair()
      swept, fault = pcall(sweep, band)
    end
    if not swept then
      reply[4] = reply[4] or {}
      table.insert(reply[4], {band, reason_of(fault)})
    end
  end
end
return reply
