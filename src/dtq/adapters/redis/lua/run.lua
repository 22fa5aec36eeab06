-- Runs commands as one step and answers each of them; one that fails answers its error and stops none of the others.
--
-- KEYS     every key that the commands touch
-- ARGV[1]  the commands (msgpack); an argument is text, or n for KEYS[n]
-- Reply    seconds, microseconds, and the reply of each command

-- Asked first: where the time may not be told, nothing is done either.
local now = redis.call('TIME')
local replies = {now[1], now[2]}
for number, command in ipairs(cmsgpack.unpack(ARGV[1])) do
  local words = {}
  for i, argument in ipairs(command) do
    words[i] = type(argument) == 'number' and KEYS[argument] or argument
  end
  replies[number + 2] = redis.pcall(unpack(words))
end
return replies
