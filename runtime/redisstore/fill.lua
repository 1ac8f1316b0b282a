-- Fills one limit of a bucket, unless newer overrides have filled it.
--
-- KEYS   the hash of the limit: its tokens at lastRefill, in ms; filled, the version of the overrides that filled it
-- ARGV   the burst in tokens, the refill in tokens per ms, and the version of the overrides that they are from
local filled = redis.call('HGET', KEYS[1], 'filled')
if filled and filled + 0 > ARGV[3] + 0 then
  return
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('HSET', KEYS[1], 'tokens', ARGV[1], 'lastRefill', now, 'filled', ARGV[3])
local seconds = math.ceil(ARGV[1] / ARGV[2] / 1000 - 1e-6)
redis.call('EXPIRE', KEYS[1], 2 * math.min(1e11, math.max(1, seconds))) -- no longer than EXPIRE takes
