-- Makes acts real, in order, each by itself: its guards are read before it writes, then its steps run one by one. A
-- server does not take back what ran before a refused command, so permission for all of them is asked for first.
--
-- KEYS     every key that the acts touch
-- ARGV[1]  {forms, acts} (msgpack). An act {form, version, token, keys.., texts..} is made by its form: version is what
--          its record must hold, token the version that it brings, its keys are numbers of KEYS.
-- ARGV[2]  the fields of a snapshot (msgpack); ARGV[3] how many tokens a record remembers.
-- A form   {record, guards, steps}; record is the place in an act of the key of its task, 0 for an act on no task.
-- A guard  {'among', texts, command..}: what the command reads is one of the texts, numbers being places in the act;
--          {'below', limit, counts, command..}: counts {command, place of a key, ..} add up to less; what the last one,
--          if there is one, reads excuses if it is 1.
-- Steps    {command.., guard, ..}: each is left out where its guard does not hold; false is none.
-- Command  words, places, finds: the words; for those of an act's own the place in the words and in the act, in turn;
--          in the same way those that are found: {'field', name} is from the record; {'reply', n} of the n-th step;
--          {'tokens'} those that the record will remember; false is none. In a guard also 'reply', n.
-- Reply    seconds, microseconds, and one answer an act: {1, reply of the first step, steps left out} made; {2, snapshot} its token
--          is known; {3, snapshot} another version; {4, guard, what it found, snapshot} refused; {5, reason} stopped.

local MADE, KNOWN, MOVED, REFUSED, STOPPED = 1, 2, 3, 4, 5
-- Asked first: where the time may not be told, nothing is done either.
local now = redis.call('TIME')
local VERSION, TOKEN = 2, 3
local call, KEYS, unpack = redis.call, KEYS, unpack
local remembered = tonumber(ARGV[3])
local names
local may, permitted = redis.acl_check_cmd, {}
local numerals = {}
-- of the act that is being made
local act, record, tokens
local replies = {}
-- What the last command that read a key whole read of it. Nobody else writes meanwhile, so that it holds until an act
-- of this call touches the key.
local reader_of, reading_of = {}, {}

local function snapshot()
  if not record then return false end
  names = names or cmsgpack.unpack(ARGV[2])
  return call('HMGET', record, unpack(names))
end

local function numeral(number)
  local text = numerals[number]
  if not text then
    text = string.format('%.0f', number)
    numerals[number] = text
  end
  return text
end

-- An array counts as its length, nothing as the empty text, an error as its code.
local function text_of(reply)
  local kind = type(reply)
  if kind == 'string' then return reply end
  if kind == 'number' then return numeral(reply) end
  if not reply then return '' end
  if reply.err then return string.match(reply.err, '^%S+') end
  return reply.ok or numeral(#reply)
end

-- Each text that is made costs the server as much as it is long, so none is made for each token.
local function joined()
  if tokens == '' then return act[TOKEN] end
  local stop = 0
  for _ = 2, remembered do
    stop = string.find(tokens, ' ', stop + 1, true)
    if not stop then return act[TOKEN] .. ' ' .. tokens end
  end
  return act[TOKEN] .. ' ' .. string.sub(tokens, 1, stop - 1)
end

local function is_known(token)
  -- mostly it is in there nowhere, not even as a part of another
  return string.find(tokens, token, 1, true)
    and string.find(' ' .. tokens .. ' ', ' ' .. token .. ' ', 1, true)
end

local function found(wanted)
  if wanted[1] == 'field' then return call('HGET', record, wanted[2]) end
  if wanted[1] == 'reply' then return replies[wanted[2]] end
  return joined()
end

-- Fills in what is the act's own: a number in an act is that of a key. The words are written over by the next act of
-- the form, which fills the same places.
local function filled(words, places, finds)
  for i = 1, #places, 2 do
    local own = act[places[i + 1]]
    local key = KEYS[own]
    if key then
      own = key
      if reader_of[key] then reader_of[key] = nil end
    end
    words[places[i]] = own
  end
  if finds then
    for i = 1, #finds, 2 do words[finds[i]] = found(finds[i + 1]) end
  end
  return words
end

local function whole(name, key)
  if reader_of[key] == name then return reading_of[key] end
  local reply = redis.pcall(name, key)
  if type(reply) ~= 'table' then reader_of[key], reading_of[key] = name, reply end
  return reply
end

-- Reads what the command at a place of a guard reads.
local function read(guard, at)
  local words, places, reply = guard[at], guard[at + 1]
  if words == 'reply' then return text_of(replies[places]) end
  if #words == 2 and #places == 2 then
    words[2] = KEYS[act[places[2]]]
    reply = whole(words[1], words[2])
  else
    reply = redis.pcall(unpack(filled(words, places, guard[at + 2])))
  end
  -- what may not be read says nothing of the guard: the act stops
  if type(reply) == 'table' and reply.err and not may(unpack(words)) then error(reply) end
  return text_of(reply)
end

-- Answers nil where the guard holds, and what it found where it does not.
local function against(guard)
  if guard[1] == 'among' then
    local text = read(guard, 3)
    local texts = guard[2]
    for i = 1, #texts do
      local allowed = texts[i]
      if text == allowed or text == act[allowed] then return nil end
    end
    return text
  end
  local sum, counts = 0, guard[3]
  for i = 1, #counts, 2 do
    local count = whole(counts[i], KEYS[act[counts[i + 1]]])
    if type(count) == 'table' then error(count) end
    sum = sum + count
  end
  if sum < guard[2] or (guard[4] and read(guard, 4) == '1') then return nil end
  return sum
end

-- Asks by name and the first words, once a form: an act is refused whole, or not for its permissions.
local function ask(words, places)
  local name = words[1]
  if permitted[name] then return end
  filled(words, places)
  local is_permitted
  if words[3] then
    is_permitted = may(name, words[2], words[3])
  else
    is_permitted = may(unpack(words))
  end
  if not is_permitted then error({err = 'NOPERM this user may not run ' .. string.lower(name)}) end
  permitted[name] = true
end

local function demand(steps)
  for at = 1, #steps, 4 do
    local guard = steps[at + 3]
    ask(steps[at], steps[at + 1])
    -- what a step's own guard reads is read between the writes
    if guard and guard[3] ~= 'reply' then ask(guard[3], guard[4]) end
  end
end

local function make(form)
  local guards, steps = form[2], form[3]
  record, tokens = KEYS[act[form[1]]], ''
  if record then
    local stored = call('HMGET', record, 'version', 'tokens')
    tokens = stored[2] or ''
    if is_known(act[TOKEN]) then return {KNOWN, snapshot()} end
    if (stored[1] or '') ~= act[VERSION] then return {MOVED, snapshot()} end
  end
  for number = 1, #guards do
    local text = against(guards[number])
    if text then return {REFUSED, number, text, snapshot()} end
  end
  if not form[4] then
    demand(steps)
    form[4] = true
  end
  local number, left_out = 0, 0
  for at = 1, #steps, 4 do
    local guard = steps[at + 3]
    number = number + 1
    if guard and against(guard) then
      replies[number] = false
      left_out = left_out + 1
    else
      replies[number] = call(unpack(filled(steps[at], steps[at + 1], steps[at + 2])))
    end
  end
  return {MADE, text_of(replies[1]), left_out}
end

local forms, acts = unpack(cmsgpack.unpack(ARGV[1]))
local answers = {}
for number = 1, #acts do
  act = acts[number]
  local made, answer = pcall(make, forms[act[1]])
  if not made then answer = {STOPPED, type(answer) == 'table' and answer.err or tostring(answer)} end
  answers[number] = answer
end
return {now[1], now[2], answers}
