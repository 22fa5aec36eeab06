-- Makes acts real, and then takes entries: what commit.lua and fetch.lua do, in one call. These two stand before this
-- text, each as the body of a function of its keys and arguments.
--
-- KEYS     those of fetch.lua, then those of commit.lua
-- ARGV[1]  how many keys, [2] how many arguments fetch.lua has; then its arguments, then those of commit.lua
-- Reply    that of commit.lua, and behind it that of fetch.lua, or the reason why it found nothing.
--          Each act that is made adds one to how many entries are taken.

local MADE, LIMIT = 1, 3
local keys, arguments = tonumber(ARGV[1]), tonumber(ARGV[2])

local function part(list, first, last)
  return {unpack(list, first, last)}
end

local made = commit(part(KEYS, keys + 1, #KEYS), part(ARGV, arguments + 3, #ARGV))
local asked = part(ARGV, 3, arguments + 2)
for i = 3, #made do
  local answer = made[i]
  if type(answer) == 'string' or answer[1] == MADE then asked[LIMIT] = asked[LIMIT] + 1 end
end
-- below zero nothing fits, of what the worker holds already neither
asked[LIMIT] = math.max(0, asked[LIMIT])
-- what was made is told of whatever happens then
local fetched, found = pcall(fetch, part(KEYS, 1, keys), asked)
if not fetched then found = type(found) == 'table' and found.err or tostring(found) end
made[#made + 1] = found
return made
