-- Takes entries for a worker in one sweep over the bands, highest first, without waiting.
--
-- KEYS     the streams in the order of their service, then the pause switch, the cancel marks, the queue registry
-- ARGV[1]  group, [2] worker, [3] how many entries, [4] idle milliseconds from which entries are reaped ('' none),
-- ARGV[5]  entries of one bite, [6] bytes after which no further bite is taken, [7] queue,
-- ARGV[8]  what the key of a task's record begins with, [9] the fields of a snapshot (msgpack),
-- ARGV[10] ids that the worker holds already, one list a band (msgpack)
-- Reply    seconds, microseconds, {paused, entries, faults}: an entry is {band, id, fields, snapshot, marked},
--          with the reason in place of a snapshot that cannot be had; a fault is {band, reason}. A band that fails
--          leaves what the others gave.

-- Asked first: where the time may not be told, nothing is done either.
local now = redis.call('TIME')
local group, worker, room, idle = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local bite, budget, queue, prefix = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8]
local names, held = cmsgpack.unpack(ARGV[9]), cmsgpack.unpack(ARGV[10])
local bands = #KEYS - 3
local switch, marks, registry = KEYS[bands + 1], KEYS[bands + 2], KEYS[bands + 3]
local entries, faults = {}, {}

local function answer(paused)
  return {now[1], now[2], {paused, entries, faults}}
end

local function add(band, entry)
  local id, fields = entry[1], entry[2]
  local task_id = ''
  for i = 1, #fields, 2 do
    if fields[i] == 'task_id' then task_id = fields[i + 1] end
    budget = budget - #fields[i + 1]
  end
  -- a key of another type spoils its own entry only: the reason stands where the snapshot would
  local record = redis.pcall('HMGET', prefix .. task_id, unpack(names))
  record = record.err or record
  entries[#entries + 1] = {band, id, fields, record, redis.call('SISMEMBER', marks, task_id)}
  room = room - 1
end

local function wanted()
  if budget <= 0 then return 0 end
  return math.min(bite, room)
end

local function owns(stream, id)
  return #redis.call('XPENDING', stream, group, id, id, 1, worker) == 1
end

-- What is taken looks new, even if it was handed back meanwhile: else the next who reaps would take it from its run.
local function take_held(band, stream)
  for _, id in ipairs(held[band]) do
    if wanted() == 0 then return end
    local claimed = owns(stream, id) and redis.call('XCLAIM', stream, group, worker, 0, id)
    if claimed and #claimed == 1 then add(band, claimed[1]) end
  end
end

-- No entry is looked at twice, so that the loop ends whatever the claims answer.
local function reap(band, stream)
  local start = '-'
  while wanted() > 0 do
    local listed = redis.call('XPENDING', stream, group, 'IDLE', idle, start, '+', wanted())
    if #listed == 0 then return end
    for _, one in ipairs(listed) do
      start = '(' .. one[1]
      local claimed = redis.call('XCLAIM', stream, group, worker, idle, one[1])
      if #claimed == 1 then add(band, claimed[1]) end
    end
  end
end

local function read(band, stream)
  while wanted() > 0 do
    local count = wanted()
    local found = redis.call('XREADGROUP', 'GROUP', group, worker, 'COUNT', count, 'STREAMS', stream, '>')
    if not found then return end
    for _, entry in ipairs(found[1][2]) do add(band, entry) end
    if #found[1][2] < count then return end
  end
end

local function sweep(band)
  local stream = KEYS[band]
  take_held(band, stream)
  if idle ~= '' then reap(band, stream) end
  read(band, stream)
end

local function reason_of(fault)
  return type(fault) == 'table' and fault.err or tostring(fault)
end

-- The groups of all bands get lost together (a flush, a failover), so all are made, from the first entry on.
local function repair()
  redis.pcall('HINCRBY', registry, queue, 0)
  for band = 1, bands do redis.pcall('XGROUP', 'CREATE', KEYS[band], group, '0', 'MKSTREAM') end
end

if redis.call('EXISTS', switch) == 1 then return answer(1) end
for band = 1, bands do
  if wanted() == 0 then break end
  local swept, fault = pcall(sweep, band)
  if not swept and string.find(reason_of(fault), '^NOGROUP') then
    repair()
    swept, fault = pcall(sweep, band)
  end
  if not swept then faults[#faults + 1] = {band, reason_of(fault)} end
end
return answer(0)
