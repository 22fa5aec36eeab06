-- Makes acts real, in order, each by itself: its guards are read before it writes, then its steps run one by one. A
-- server does not take back what ran before a refused command, so permission for all of them is asked for first.
--
-- Acts and forms are flat lists: the server builds such a one at one go, while an array that it reads member by member
-- grows and grows. All are members (msgpack) one after the other, with nothing around them.
--
-- KEYS     every key that the acts touch
-- ARGV[1]  acts: form, length, version, token, keys.., texts.. An act is made by its form: version is what its record
--          must hold, token the version that it brings, its keys are numbers of KEYS.
-- ARGV[2]  the fields of a snapshot (msgpack); ARGV[3] how many tokens a record remembers; from ARGV[4] on the forms.
-- A form   record, where in it begin its keys, texts, touched, guards, steps, and what is behind them, whether it was
--          asked for, then what these name by its first and last place in the form: words, texts, counts, finds, and
--          the guards of steps. Record is the place in an act of the key of its task, 0 for an act on no task.
-- Keys     place in the form, place in the act, ..: where an act's own are filled in.
-- Texts    likewise.
-- Touched  the places in an act of the keys that the steps name.
-- Guards   'among', texts, 0, command: what it reads is one of the texts, numbers being places in the act;
--          'below', counts, limit, command: counts (a command, place of a key, ..) add up to less; what the command
--          reads, if there is one, excuses if it is 1.
-- Steps    command, guard: it is left out where the guard in this place does not hold; 0 is none.
-- Command  words, and finds: for some of the words the place, and 'field', name: from the record; 'reply', n: of the
--          n-th step; 'tokens', 0: those that the record will remember; 0 is none. In a guard also 0, n, finds: the
--          reply of the n-th step; -1 is none.
-- Reply    seconds, microseconds, and one answer an act. One that was made is the reply of its first step: the server
--          looks at an answer in more parts for longer than at all of these. {1, that reply, steps left out} was made
--          but for some; {2, snapshot} its token is known; {3, snapshot} another version; {4, guard, what it found, snapshot} refused;
--          {5, reason} stopped.

local MADE, KNOWN, MOVED, REFUSED, STOPPED = 1, 2, 3, 4, 5
-- Asked first: where the time may not be told, nothing is done either.
local now = redis.call('TIME')
local LENGTH, VERSION, TOKEN = 2, 3, 4
local ASKED = 8
-- Members that are unpacked together: of more the server has no room.
local TOGETHER = 4000
local call, try, may = redis.call, redis.pcall, redis.acl_check_cmd
local KEYS, unpack, find = KEYS, unpack, string.find
local remembered = tonumber(ARGV[3])
local names
local permitted, numerals = {}, {}
local acts = {cmsgpack.unpack_limit(ARGV[1], TOGETHER)}
-- of the act that is being made; before it, as many members stand
local before, form, record, tokens = 1, nil, nil, nil
local forms, replies = {}, {}
-- What the last command that read a key whole read of it. Nobody else writes meanwhile, so that it holds until the
-- steps of an act touch the key.
local reader_of, reading_of, has_read = {}, {}, false

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

-- Puts what is the act's own into its form. It is written over by the next act of the form, which has the same places.
local function fill()
  local form, acts, before = form, acts, before
  for i = form[2], form[3] - 1, 2 do form[form[i]] = KEYS[acts[before + form[i + 1]]] end
  for i = form[3], form[4] - 1, 2 do form[form[i]] = acts[before + form[i + 1]] end
end

local function found(kind, which)
  if kind == 'field' then return call('HGET', record, which) end
  if kind == 'reply' then return replies[which] end
  return joined()
end

local function find_words(first, last)
  local form = form
  for i = first, last, 3 do form[form[i]] = found(form[i + 1], form[i + 2]) end
end

local function whole(name, key)
  if reader_of[key] == name then return reading_of[key] end
  local reply = try(name, key)
  if type(reply) ~= 'table' then reader_of[key], reading_of[key], has_read = name, reply, true end
  return reply
end

-- Reads what the command that stands at a place of the form reads. Early is before the first step of the act.
local function read(at, is_early)
  local form = form
  local first, last, finds = form[at], form[at + 1], form[at + 2]
  if first == 0 then return text_of(replies[last]) end
  local reply
  if is_early and last == first + 1 then
    reply = whole(form[first], form[last])
  else
    if finds > 0 then find_words(finds, form[at + 3]) end
    reply = try(unpack(form, first, last))
  end
  -- what may not be read says nothing of the guard: the act stops
  if type(reply) == 'table' and reply.err and not may(unpack(form, first, last)) then error(reply) end
  return text_of(reply)
end

-- Answers nil where the guard holds, and what it found where it does not.
local function against(at, is_early)
  local form, acts, before = form, acts, before
  local first, last = form[at + 1], form[at + 2]
  if form[at] == 'among' then
    local text = read(at + 4, is_early)
    for i = first, last do
      local allowed = form[i]
      if type(allowed) == 'number' then allowed = acts[before + allowed] end
      if text == allowed then return nil end
    end
    return text
  end
  local sum = 0
  for i = first, last, 2 do
    local name, key = form[i], KEYS[acts[before + form[i + 1]]]
    local count = is_early and whole(name, key) or call(name, key)
    if type(count) == 'table' then error(count) end
    sum = sum + count
  end
  if sum < form[at + 3] or (form[at + 4] >= 0 and read(at + 4, is_early) == '1') then return nil end
  return sum
end

-- Asks by name and the next two words, once a form: an act is refused whole, or not for its permissions.
local function ask(at)
  local first, last = form[at], form[at + 1]
  local name = form[first]
  if permitted[name] then return end
  if not may(unpack(form, first, math.min(last, first + 2))) then
    error({err = 'NOPERM this user may not run ' .. string.lower(name)})
  end
  permitted[name] = true
end

local function demand()
  for at = form[6], form[7] - 1, 5 do
    local guard = form[at + 4]
    ask(at)
    -- what a step's own guard reads is read between the writes
    if guard > 0 and form[guard + 4] > 0 then ask(guard + 4) end
  end
end

local function forget()
  if not has_read then return end
  for i = form[4], form[5] - 1 do
    local key = KEYS[acts[before + form[i]]]
    if reader_of[key] then reader_of[key] = nil end
  end
end

local function make()
  local form = form
  record, tokens = form[1] > 0 and KEYS[acts[before + form[1]]], ''
  if record then
    local stored = call('HMGET', record, 'version', 'tokens')
    tokens = stored[2] or ''
    if is_known(acts[before + TOKEN]) then return {KNOWN, snapshot()} end
    if (stored[1] or '') ~= acts[before + VERSION] then return {MOVED, snapshot()} end
  end
  fill()
  local number = 0
  for at = form[5], form[6] - 1, 8 do
    number = number + 1
    local text = against(at, true)
    if text then return {REFUSED, number, text, snapshot()} end
  end
  if not form[ASKED] then
    demand()
    form[ASKED] = true
  end
  forget()
  local left_out = 0
  number = 0
  for at = form[6], form[7] - 1, 5 do
    local finds, guard = form[at + 2], form[at + 4]
    number = number + 1
    if guard > 0 and against(guard) then
      replies[number] = false
      left_out = left_out + 1
    else
      if finds > 0 then find_words(finds, form[at + 3]) end
      replies[number] = call(unpack(form, form[at], form[at + 1]))
    end
  end
  local text = text_of(replies[1])
  return left_out == 0 and text or {MADE, text, left_out}
end

-- The first one that is unpacked is where the others went on, -1 at the end.
while acts[1] ~= -1 do
  local more = {cmsgpack.unpack_limit(ARGV[1], TOGETHER, acts[1])}
  acts[1] = more[1]
  for i = 2, #more do acts[#acts + 1] = more[i] end
end

local answers = {}
while acts[before + 1] do
  local number = acts[before + 1]
  form = forms[number] or {cmsgpack.unpack(ARGV[3 + number])}
  forms[number] = form
  local made, answer = pcall(make)
  if not made then answer = {STOPPED, type(answer) == 'table' and answer.err or tostring(answer)} end
  answers[#answers + 1] = answer
  before = before + acts[before + LENGTH]
end
return {now[1], now[2], answers}
