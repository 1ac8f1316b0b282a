-- Resets one windowed limit of a bucket: nothing of its open window is used. The window ends 1 ms later, so that it
-- is another one: leases from before give nothing back to it.
--
-- KEYS   the hash of the limit: the millitokens used in the window that ends at end, in ms
-- reply  1 if a window is open, else 0: then the next call opens one
local bucket = redis.call('HMGET', KEYS[1], 'used', 'end')
local used, ends = tonumber(bucket[1]), tonumber(bucket[2]) -- nil if malformed
if not (used and ends and ends < math.huge) then
  redis.call('DEL', KEYS[1])
  return 0
end
local clock = redis.call('TIME')
if clock[1] * 1000 + math.floor(clock[2] / 1000) >= ends then
  return 0
end
local life = redis.call('PTTL', KEYS[1])
redis.call('HSET', KEYS[1], 'used', 0, 'end', ends + 1)
redis.call('HDEL', KEYS[1], 'granted')
if life > 0 then
  redis.call('PEXPIRE', KEYS[1], life + 1)
end
return 1
