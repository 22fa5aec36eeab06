-- Makes acts real, in order, each by itself: its guards are read before it writes, then its steps run one by one. A
-- server does not take back what ran before a refused command, so permission for all of them is asked for first.
--
-- KEYS     every key that the acts touch
-- ARGV[1]  the acts (msgpack), each {record, version, token, guards, steps}. record is the number of a task's key, 0
--          for an act on no task; version is what the record must hold; token is the version that the act brings.
-- ARGV[2]  the fields of a snapshot (msgpack); ARGV[3] how many tokens a record remembers; ARGV[4..] long texts.
-- A guard  {'among', texts, {command}}: what the command reads is one of the texts;
--          {'below', limit, commands, command?}: what they read adds up to less; the last one, if it reads 1, excuses.
-- A step   {command, guard?}: it is left out where its guard does not hold.
-- An argument is text; n: KEYS[n]; -n: ARGV[n]; {'field', name}: from the record; {'reply', n}: of the n-th step;
--          {'tokens'}: the tokens that the record will remember.
-- Reply    seconds, microseconds, and one answer an act: {1, reply of the first step, steps left out} made; {2, snapshot} its token
--          is known; {3, snapshot} another version; {4, guard, what it found, snapshot} refused; {5, reason} stopped.

local MADE, KNOWN, MOVED, REFUSED, STOPPED = 1, 2, 3, 4, 5
-- Asked first: where the time may not be told, nothing is done either.
local now = redis.call('TIME')
local remembered = tonumber(ARGV[3])
local names
local may, permitted = redis.acl_check_cmd, {}

local function snapshot(record)
  if record == 0 then return false end
  names = names or cmsgpack.unpack(ARGV[2])
  return redis.call('HMGET', KEYS[record], unpack(names))
end

-- An array counts as its length, nothing as the empty text, an error as its code.
local function text_of(reply)
  if type(reply) == 'table' then
    if reply.err then return string.match(reply.err, '^%S+') end
    return reply.ok or tostring(#reply)
  end
  if not reply then return '' end
  if type(reply) == 'number' then return string.format('%.0f', reply) end
  return reply
end

local function joined(act)
  local list, count = act.token, 1
  for token in string.gmatch(act.tokens, '%S+') do
    if count == remembered then break end
    list, count = list .. ' ' .. token, count + 1
  end
  return list
end

local function resolved(argument, act)
  if type(argument) == 'number' then
    if argument > 0 then return KEYS[argument] end
    return ARGV[-argument]
  end
  if argument[1] == 'field' then return redis.call('HGET', KEYS[act.record], argument[2]) end
  if argument[1] == 'reply' then return act.replies[argument[2]] end
  return joined(act)
end

local function words(command, act)
  for i = 1, #command do
    -- most arguments are text: this loop is where the time of a large batch goes
    if type(command[i]) ~= 'string' then command[i] = resolved(command[i], act) end
  end
  return unpack(command)
end

local function read(command, act)
  if command[1] == 'reply' then return text_of(act.replies[command[2]]) end
  local reply = redis.pcall(words(command, act))
  -- what may not be read says nothing of the guard: the act stops
  if type(reply) == 'table' and reply.err and not may(unpack(command)) then error(reply) end
  return text_of(reply)
end

-- Answers nil where the guard holds, and what it found where it does not.
local function against(guard, act)
  if guard[1] == 'among' then
    local found = read(guard[3][1], act)
    for _, text in ipairs(guard[2]) do
      if text == found then return nil end
    end
    return found
  end
  local sum = 0
  for _, command in ipairs(guard[3]) do
    local found = read(command, act)
    sum = sum + (tonumber(found) or error({err = found .. ' where a number was expected'}))
  end
  if sum < guard[2] or (guard[4] and read(guard[4], act) == '1') then return nil end
  return sum
end

-- Asks by name, key and perhaps a second word, once a call: an act is refused whole, or not for its permissions.
local function ask(command)
  local name = command[1]
  if permitted[name] then return end
  local first, second = KEYS[command[2]] or command[2], KEYS[command[3]]
  local is_permitted
  if second then
    is_permitted = may(name, first, second)
  elseif first then
    is_permitted = may(name, first)
  else
    is_permitted = may(name)
  end
  if not is_permitted then error({err = 'NOPERM this user may not run ' .. string.lower(name)}) end
  permitted[name] = true
end

local function demand(steps)
  for _, step in ipairs(steps) do
    ask(step[1])
    -- what a step's own guard reads is read between the writes
    for _, command in ipairs(step[2] and step[2][3] or {}) do
      if command[1] ~= 'reply' then ask(command) end
    end
  end
end

local function make(description)
  local act = {record = description[1], token = description[3], tokens = '', replies = {}}
  if act.record > 0 then
    local stored = redis.call('HMGET', KEYS[act.record], 'version', 'tokens')
    act.tokens = stored[2] or ''
    if string.find(' ' .. act.tokens .. ' ', ' ' .. act.token .. ' ', 1, true) then
      return {KNOWN, snapshot(act.record)}
    end
    if (stored[1] or '') ~= description[2] then return {MOVED, snapshot(act.record)} end
  end
  for number, guard in ipairs(description[4]) do
    local found = against(guard, act)
    if found then return {REFUSED, number, found, snapshot(act.record)} end
  end
  demand(description[5])
  local left_out = 0
  for number, step in ipairs(description[5]) do
    if step[2] and against(step[2], act) then
      act.replies[number] = false
      left_out = left_out + 1
    else
      act.replies[number] = redis.call(words(step[1], act))
    end
  end
  return {MADE, text_of(act.replies[1]), left_out}
end

local answers = {}
for number, description in ipairs(cmsgpack.unpack(ARGV[1])) do
  local made, answer = pcall(make, description)
  if not made then answer = {STOPPED, type(answer) == 'table' and answer.err or tostring(answer)} end
  answers[number] = answer
end
return {now[1], now[2], answers}
