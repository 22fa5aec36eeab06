-- Tells what the connected user may not do; nothing of it is done.
--
-- ARGV[1]  commands (msgpack)
-- Reply    seconds, microseconds, and the numbers of the commands that are refused, or that the server does not know

local now = redis.call('TIME')
local refused = {now[1], now[2]}
for number, command in ipairs(cmsgpack.unpack(ARGV[1])) do
  local is_known, is_permitted = pcall(redis.acl_check_cmd, unpack(command))
  if not (is_known and is_permitted) then refused[#refused + 1] = number end
end
return refused
