-- Makes acts real, in order, each by itself: its guards are read before it writes, then its steps run one by one. A
-- server does not take back what ran before a refused command, so permission for all of them is asked for first.
--
-- Acts and forms are flat lists: the server builds such a one at one go, while an array that it reads member by member
-- grows and grows. All are members (msgpack) one after the other, with nothing around them.
--
-- KEYS     every key that the acts touch
-- ARGV[1]  acts: form, version, token, texts.., keys... An act is made by its form, which says how many there are:
--          version is what its record must hold, token the version that it brings, its keys are numbers of KEYS.
-- ARGV[2]  how many tokens a record remembers; from ARGV[3] on the forms.
-- A form   record, where in it begin its texts, keys, copies, touched, asked, guards, steps, and what is behind them,
--          whether it was asked for, a place for what no command names, then what these name by its first and last
--          place in the form: words, texts, counts, finds, and the guards of steps. Record is the place of the key of
--          its task, 0 for an act on no task.
-- Texts    the places of the token and the texts of an act, in their order. Keys likewise.
-- Copies   place, first place, ..: where else what an act fills in there stands.
-- Touched  the places of the keys that the steps name.
-- Asked    first place, last place, ..: by what permission for each command of the steps is asked for.
-- Guards   limit, counts, command: counts (a command, key, ..) add up to less than limit; what the command reads, if
--          there is one, excuses if it is 1. Where limit is -1: texts, command: what it reads is one of the texts.
-- Steps    command, guard, shared: it is left out where the guard in this place does not hold; 0 is none. Shared is 0
--          where each act has the command run. Above 0 it is the place of the first word that is an act's own, or that
--          behind the last: when all acts are made, the command is run once for those that begin it alike, by command
--          and key. Below 0 it is the place, without its sign, of the word behind the key of the last act that had it
--          run: another act with this word leaves it out.
-- Command  words, and the place of finds: its own last place, then for some of the words the place, and 'field', name:
--          from the record; 'reply': of the first step; 'tokens': those that the record will remember; 0 is none. In a
--          guard also 0, 0, 0: the reply of the first step; -1 is none.
-- Reply    seconds, microseconds, and one answer for each act. One that was made is the reply of its first step: the server
--          looks at an answer in more parts for longer than at all of these. {1, that reply, steps left out} was made
--          but for some; {2, snapshot} its token is known; {3, snapshot} another version; {4, guard, what it found, snapshot} refused;
--          {5, reason} stopped.

local MADE, KNOWN, MOVED, REFUSED, STOPPED = 1, 2, 3, 4, 5
-- Asked first: where the time may not be told, nothing is done either.
local now = redis.call('TIME')
local VERSION, TOKEN = 1, 2
local ASKED = 10
-- Members that are unpacked together: of more the server has no room.
local TOGETHER = 4000
local call, try, may = redis.call, redis.pcall, redis.acl_check_cmd
local KEYS, unpack, find = KEYS, unpack, string.find
local remembered = tonumber(ARGV[2])
-- Those that mostly are read; the server takes long to write one.
local numerals = {[0] = '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'}
local acts = {cmsgpack.unpack_limit(ARGV[1], TOGETHER)}
-- of the act that is being made: where it begins and the next one, and the reply of its first step
local at, following, form, record, tokens, reply = 2
-- What the last command that read a key whole read of it. Nobody else writes meanwhile, so that it holds until the
-- steps of an act touch the key.
local reader_of, reading_of, has_read = {}, {}, false
-- What is run for several acts: by command and key, and in order.
local gathered, shared = {}, {}
local answers, forms = {now[1], now[2]}, {}

local function snapshot()
  if not record then return false end
  return call('HMGET', record, 'the fields of a snapshot')
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
  local token, stop = acts[at + TOKEN], 0
  if tokens == '' then return token end
  for _ = 2, remembered do
    stop = find(tokens, ' ', stop + 1, true)
    if not stop then return token .. ' ' .. tokens end
  end
  return token .. ' ' .. string.sub(tokens, 1, stop - 1)
end

-- Puts what is the act's own into its form. It is written over by the next act of the form, which has the same places.
local function fill()
  local form, acts, from = form, acts, at + TOKEN
  for i = form[2], form[3] - 1 do
    form[form[i]] = acts[from]
    from = from + 1
  end
  for i = form[3], form[4] - 1 do
    form[form[i]] = KEYS[acts[from]]
    from = from + 1
  end
  for i = form[4], form[5] - 1, 2 do form[form[i]] = form[form[i + 1]] end
  following = from
end

local function find_words(finds)
  local form = form
  for i = finds + 1, form[finds], 3 do
    local kind = form[i + 1]
    if kind == 'tokens' then form[form[i]] = joined()
    elseif kind == 'reply' then form[form[i]] = reply
    else form[form[i]] = call('HGET', record, form[i + 2]) end
  end
end

local function whole(name, key)
  if reader_of[key] == name then return reading_of[key] end
  local found = try(name, key)
  -- after the last act nobody reads again
  if acts[following] and type(found) ~= 'table' then reader_of[key], reading_of[key], has_read = name, found, true end
  return found
end

-- Reads what the command that stands at a place of the form reads. Early is before the first step of the act.
local function read(place, is_early)
  local form = form
  local first, last, finds = form[place], form[place + 1], form[place + 2]
  if first == 0 then return text_of(reply) end
  local found
  if is_early and last == first + 1 then
    found = whole(form[first], form[last])
  else
    if finds > 0 then find_words(finds) end
    found = try(unpack(form, first, last))
  end
  -- what may not be read says nothing of the guard: the act stops
  if type(found) == 'table' and found.err and not may(unpack(form, first, last)) then error(found) end
  return text_of(found)
end

-- Answers nil where the guard holds, and what it found where it does not.
local function against(place, is_early)
  local form = form
  local limit, first, last = form[place], form[place + 1], form[place + 2]
  if limit < 0 then
    local text = read(place + 3, is_early)
    for i = first, last do
      if text == form[i] then return nil end
    end
    return text
  end
  local sum = 0
  for i = first, last, 2 do
    local name, key = form[i], form[i + 1]
    local count = is_early and whole(name, key) or call(name, key)
    if type(count) == 'table' then error(count) end
    sum = sum + count
  end
  if sum < limit or (form[place + 3] >= 0 and read(place + 3, is_early) == '1') then return nil end
  return sum
end

-- An act is refused whole, or not for its permissions.
local function demand()
  for i = form[6], form[7] - 1, 2 do
    if not may(unpack(form, form[i], form[i + 1])) then
      error({err = 'NOPERM this user may not run ' .. string.lower(form[form[i]])})
    end
  end
end

local function forget()
  if not has_read then return end
  for i = form[5], form[6] - 1 do
    local key = form[form[i]]
    if reader_of[key] then reader_of[key] = nil end
  end
end

local function gather(first, last, from)
  local form = form
  local name, key = form[first], form[first + 1]
  gathered[name] = gathered[name] or {}
  local one = gathered[name][key]
  if not one then
    one = {words = {unpack(form, first, from - 1)}, by = {}}
    gathered[name][key] = one
    shared[#shared + 1] = one
  end
  local words = one.words
  for i = from, last do words[#words + 1] = form[i] end
  one.by[#one.by + 1] = #answers + 1
end

local function make()
  local form = form
  record, tokens, reply = form[1] > 0 and form[form[1]], '', nil
  if record then
    local stored, token = call('HMGET', record, 'version', 'tokens'), acts[at + TOKEN]
    tokens = stored[2] or ''
    -- mostly it is in there nowhere, not even as a part of another
    if find(tokens, token, 1, true) and find(' ' .. tokens .. ' ', ' ' .. token .. ' ', 1, true) then
      return {KNOWN, snapshot()}
    end
    if (stored[1] or '') ~= acts[at + VERSION] then return {MOVED, snapshot()} end
  end
  local number = 0
  for place = form[7], form[8] - 1, 6 do
    number = number + 1
    local text = against(place, true)
    if text then return {REFUSED, number, text, snapshot()} end
  end
  if not form[ASKED] then
    demand()
    form[ASKED] = true
  end
  forget()
  local left_out, first = 0, form[8]
  for place = first, form[9] - 1, 5 do
    local finds, guard, from = form[place + 2], form[place + 3], form[place + 4]
    if guard > 0 and against(guard) then
      left_out = left_out + 1
    elseif from > 0 and (shared[1] or acts[following]) then
      gather(form[place], form[place + 1], from)
    elseif from >= 0 or form[-from] ~= form[form[place] + 2] then
      if finds > 0 then find_words(finds) end
      local made = call(unpack(form, form[place], form[place + 1]))
      if place == first then reply = made end
      if from < 0 then
        form[-from], reader_of[form[form[place] + 1]] = form[form[place] + 2], nil
      end
    end
  end
  local text = text_of(reply)
  return left_out == 0 and text or {MADE, text, left_out}
end

-- The first one that is unpacked is where the others went on, -1 at the end.
while acts[1] ~= -1 do
  local more = {cmsgpack.unpack_limit(ARGV[1], TOGETHER, acts[1])}
  acts[1] = more[1]
  for i = 2, #more do acts[#acts + 1] = more[i] end
end

while acts[at] do
  local number = acts[at]
  form = forms[number] or {cmsgpack.unpack(ARGV[2 + number])}
  forms[number] = form
  fill()
  local made, answer = pcall(make)
  if not made then answer = {STOPPED, type(answer) == 'table' and answer.err or tostring(answer)} end
  answers[#answers + 1] = answer
  at = following
end
for _, one in ipairs(shared) do
  local done = try(unpack(one.words))
  if type(done) == 'table' and done.err then
    for _, number in ipairs(one.by) do answers[number] = {STOPPED, done.err} end
  end
end
return answers
