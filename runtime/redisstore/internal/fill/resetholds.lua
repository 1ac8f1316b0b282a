-- Resets one limit of a bucket that counts holds: nothing of its open window is used, and nothing is held. The window
-- ends 1 ms later, and epochs are counted from a later one on, so that leases from before give nothing back.
--
-- KEYS   the hash of the limit, as holds.lua has it
-- reply  the lowest epoch that is counted
local bucket = redis.call('HMGET', KEYS[1], 'used', 'end', 'e')
local used, ends, e = tonumber(bucket[1]), tonumber(bucket[2]), tonumber(bucket[3]) -- nil if malformed
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if not (e and e < math.huge) then
  e = 0
end
e = math.max(e, math.floor(now / 60000) + 2) + 2
local life = math.max((e + 2) * 60000, now + redis.call('PTTL', KEYS[1]) + 1)
if not (used and ends and ends < math.huge) then
  redis.call('DEL', KEYS[1])
elseif now < ends then
  redis.call('HSET', KEYS[1], 'used', 0, 'end', ends + 1)
  redis.call('HDEL', KEYS[1], 'granted')
end
redis.call('HSET', KEYS[1], 'h0', 0, 'h1', 0, 'e', e)
redis.call('PEXPIREAT', KEYS[1], life)
return e
