-- Moves ids that are due from the schedule to the claims, for the leader alone.
--
-- KEYS     the lock, the schedule, the claims
-- ARGV[1]  the leader's token, [2] now (milliseconds), [3] how many, [4] what the key of a task's record begins with
-- Reply    seconds, microseconds, and of each id, earliest first, {id, snapshot}

-- Asked first: where the time may not be told, nothing is done either.
local time = redis.call('TIME')
local lock, schedule, claims = KEYS[1], KEYS[2], KEYS[3]
local leader, now, count, prefix = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local taken = {time[1], time[2]}
if redis.call('GET', lock) == leader then
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', schedule, '-inf', now, 'LIMIT', 0, count)) do
    redis.call('ZADD', claims, now, id)
    redis.call('ZREM', schedule, id)
    -- a key of another type spoils its own id only: the reason stands where the snapshot would
    local record = redis.pcall('HMGET', prefix .. id, 'the fields of a snapshot')
    taken[#taken + 1] = {id, record.err or record}
  end
end
return taken
