-- Fills one limit of a bucket. A bucket that has the burst already keeps what it has: by another limits.yaml, that
-- may be more. Calls cut it off at the burst that they go by.
--
-- KEYS   the hash of the limit: its tokens at lastRefill, in ms; filledBy, filledTo and filledAt, the version of the
--        overrides by which it was filled, to which burst, and when, in ms; of and filledOf, whose plan gave the numbers
--        of the last write, and those of the fill
-- ARGV   the burst in tokens, the refill in tokens per ms, and the version of the overrides that they are from; the
--        filledBy that the caller knew before it read these, else ''; the entity whose plan gives these numbers, if any
-- reply  '' if the limit is filled; else its filledBy, which is a higher version that the caller did not know
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'lastRefill', 'filledBy', 'filledOf')
local tokens, since, by = tonumber(bucket[1]), tonumber(bucket[2]), tonumber(bucket[3]) -- nil if malformed
if by and by > ARGV[3] + 0 and bucket[3] ~= ARGV[4] and bucket[4] == (ARGV[5] or false) then
  return bucket[3]
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local burst, rate = ARGV[1] + 0, ARGV[2] + 0
local full = tokens and since and tokens < math.huge and tokens + math.max(0, now - since) * rate >= burst
if not full then
  redis.call('HSET', KEYS[1], 'tokens', ARGV[1], 'lastRefill', now)
end
redis.call('HSET', KEYS[1], 'filledBy', ARGV[3], 'filledTo', ARGV[1], 'filledAt', now)
if ARGV[5] then
  redis.call('HSET', KEYS[1], 'of', ARGV[5], 'filledOf', ARGV[5])
else
  redis.call('HDEL', KEYS[1], 'filledOf')
end
local seconds = 2 * math.min(1e11, math.max(1, math.ceil(burst / rate / 1000 - 1e-6))) -- no longer than EXPIRE takes
if not full or redis.call('TTL', KEYS[1]) < seconds then
  redis.call('EXPIRE', KEYS[1], seconds)
end
return ''
