-- Makes acts real, in order, each by itself: its guards are read before it writes, then its steps run one by one. A
-- server does not take back what ran before a refused command, so permission for all of them is asked for first.
--
-- KEYS     every key that the acts touch
-- ARGV[1]  {forms} (msgpack)
-- ARGV[2]  acts (msgpack, one member after the other, nothing around them): form, length, version, token, keys..,
--          texts.. An act is made by its form: version is what its record must hold, token the version that it brings,
--          its keys are numbers of KEYS.
-- ARGV[3]  the fields of a snapshot (msgpack); ARGV[4] how many tokens a record remembers.
-- A form   {record, guards, steps, words, keys, texts, touched}: record is the place in an act of the key of its task,
--          0 for an act on no task; words are those of all its commands, one after the other; keys are the place in the
--          words and in the act, in turn; texts the first place in the words, in every second of which one is filled in,
--          the first in the act and the last, in turn; touched are the places in an act of the keys its steps name.
-- A guard  {'among', texts, command..}: what the command reads is one of the texts, numbers being places in the act;
--          {'below', limit, counts, command..}: counts {command, place of a key, ..} add up to less; what the last one,
--          if there is one, reads excuses if it is 1.
-- Steps    {command.., guard, ..}: each is left out where its guard does not hold; false is none.
-- Command  first, last, finds: which of the words are its own, and of those that are found: the place, and 'field',
--          name: from the record; 'reply', n: of the n-th step; 'tokens', false: those that the record will remember;
--          in turn; false is none. In a guard also 0, n, false: the reply of the n-th step.
-- Reply    seconds, microseconds, and one answer an act: {1, reply of the first step, steps left out} made;
--          {2, snapshot} its token is known; {3, snapshot} another version; {4, guard, what it found, snapshot} refused;
--          {5, reason} stopped.

local MADE, KNOWN, MOVED, REFUSED, STOPPED = 1, 2, 3, 4, 5
-- Asked first: where the time may not be told, nothing is done either.
local now = redis.call('TIME')
local LENGTH, VERSION, TOKEN = 2, 3, 4
-- Unpacked together: so many are put into an array at one go, which grows and grows if it is read member by member.
local TOGETHER = 4000
local call, try, may = redis.call, redis.pcall, redis.acl_check_cmd
local KEYS, unpack, find = KEYS, unpack, string.find
local remembered = tonumber(ARGV[4])
local names
local permitted, numerals = {}, {}
local acts = {cmsgpack.unpack_limit(ARGV[2], TOGETHER)}
-- of the act that is being made; before it, as many members stand
local before, record, tokens, words = 1, nil, nil, nil
local replies = {}
-- What the last command that read a key whole read of it. Nobody else writes meanwhile, so that it holds until the
-- steps of an act touch the key.
local reader_of, reading_of = {}, {}

local function snapshot()
  if not record then return false end
  names = names or cmsgpack.unpack(ARGV[3])
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
  local token, stop = acts[before + TOKEN], 0
  if tokens == '' then return token end
  for _ = 2, remembered do
    stop = find(tokens, ' ', stop + 1, true)
    if not stop then return token .. ' ' .. tokens end
  end
  return token .. ' ' .. string.sub(tokens, 1, stop - 1)
end

local function is_known(token)
  -- mostly it is in there nowhere, not even as a part of another
  return find(tokens, token, 1, true) and find(' ' .. tokens .. ' ', ' ' .. token .. ' ', 1, true)
end

-- Puts what is the act's own among the words of its form. It is written over by the next act of the form, which has
-- the same places.
local function fill(keys, texts)
  local words, acts, before = words, acts, before
  for i = 1, #keys, 2 do words[keys[i]] = KEYS[acts[before + keys[i + 1]]] end
  for i = 1, #texts, 3 do
    local at = texts[i]
    for own = before + texts[i + 1], before + texts[i + 2] do
      words[at] = acts[own]
      at = at + 2
    end
  end
end

local function found(kind, which)
  if kind == 'field' then return call('HGET', record, which) end
  if kind == 'reply' then return replies[which] end
  return joined()
end

local function find_words(finds)
  for i = 1, #finds, 3 do words[finds[i]] = found(finds[i + 1], finds[i + 2]) end
end

local function whole(name, key)
  if reader_of[key] == name then return reading_of[key] end
  local reply = try(name, key)
  if type(reply) ~= 'table' then reader_of[key], reading_of[key] = name, reply end
  return reply
end

local function read(first, last, finds, is_early)
  if first == 0 then return text_of(replies[last]) end
  local reply
  if is_early and last == first + 1 then
    reply = whole(words[first], words[last])
  else
    if finds then find_words(finds) end
    reply = try(unpack(words, first, last))
  end
  -- what may not be read says nothing of the guard: the act stops
  if type(reply) == 'table' and reply.err and not may(unpack(words, first, last)) then error(reply) end
  return text_of(reply)
end

-- Answers nil where the guard holds, and what it found where it does not. Early is before the first step of the act.
local function against(guard, is_early)
  if guard[1] == 'among' then
    local text, texts = read(guard[3], guard[4], guard[5], is_early), guard[2]
    for i = 1, #texts do
      local allowed = texts[i]
      if type(allowed) == 'number' then allowed = acts[before + allowed] end
      if text == allowed then return nil end
    end
    return text
  end
  local sum, counts = 0, guard[3]
  for i = 1, #counts, 2 do
    local name, key = counts[i], KEYS[acts[before + counts[i + 1]]]
    sum = sum + (is_early and whole or call)(name, key)
  end
  if sum < guard[2] or (guard[4] and read(guard[4], guard[5], guard[6], is_early) == '1') then return nil end
  return sum
end

-- Asks by name and the next two words, once a form: an act is refused whole, or not for its permissions.
local function ask(first, last)
  local name = words[first]
  if permitted[name] then return end
  if not may(unpack(words, first, math.min(last, first + 2))) then
    error({err = 'NOPERM this user may not run ' .. string.lower(name)})
  end
  permitted[name] = true
end

local function demand(steps)
  for i = 1, #steps, 4 do
    local guard = steps[i + 3]
    ask(steps[i], steps[i + 1])
    -- what a step's own guard reads is read between the writes
    if guard and guard[3] ~= 0 then ask(guard[3], guard[4]) end
  end
end

local function forget(touched)
  for i = 1, #touched do
    local key = KEYS[acts[before + touched[i]]]
    if reader_of[key] then reader_of[key] = nil end
  end
end

local function make(form)
  local guards, steps = form[2], form[3]
  record, tokens, words = form[1] > 0 and KEYS[acts[before + form[1]]], '', form[4]
  if record then
    local stored = call('HMGET', record, 'version', 'tokens')
    tokens = stored[2] or ''
    if is_known(acts[before + TOKEN]) then return {KNOWN, snapshot()} end
    if (stored[1] or '') ~= acts[before + VERSION] then return {MOVED, snapshot()} end
  end
  fill(form[5], form[6])
  for number = 1, #guards do
    local text = against(guards[number], true)
    if text then return {REFUSED, number, text, snapshot()} end
  end
  if not form.is_permitted then
    demand(steps)
    form.is_permitted = true
  end
  forget(form[7])
  local number, left_out = 0, 0
  for i = 1, #steps, 4 do
    local finds, guard = steps[i + 2], steps[i + 3]
    number = number + 1
    if guard and against(guard) then
      replies[number] = false
      left_out = left_out + 1
    else
      if finds then find_words(finds) end
      replies[number] = call(unpack(words, steps[i], steps[i + 1]))
    end
  end
  return {MADE, text_of(replies[1]), left_out}
end

-- The first one that is unpacked is where the others went on, -1 at the end.
while acts[1] ~= -1 do
  local more = {cmsgpack.unpack_limit(ARGV[2], TOGETHER, acts[1])}
  acts[1] = more[1]
  for i = 2, #more do acts[#acts + 1] = more[i] end
end

local forms = cmsgpack.unpack(ARGV[1])
local answers = {}
while acts[before + 1] do
  local made, answer = pcall(make, forms[acts[before + 1]])
  if not made then answer = {STOPPED, type(answer) == 'table' and answer.err or tostring(answer)} end
  answers[#answers + 1] = answer
  before = before + acts[before + LENGTH]
end
return {now[1], now[2], answers}
