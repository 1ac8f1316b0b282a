-- Charges calls to buckets, each call all or none, with any number of keys. Generated code has the same script
-- written out for its keys.
--
-- KEYS   a hash for each limit of each bucket: the tokens that were there at lastRefill, in ms; a missing one is full
-- ARGV   the number of keys; the most ms since the caller read its overrides; of each key, its burst in tokens, its
--        refill in tokens per ms and the version of these overrides; then of each call, in their order: 1 if it has
--        to fit, 0 if it is charged in any case, and its cost of each key, negative for a refund
-- reply  now, in ms; of each key, its balance in millitokens; of each call, 0 if it is charged, else 1 and, of each
--        key, the ms until it would not deny, 0 if it does not
local n, age = ARGV[1] + 0, ARGV[2] + 0
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local burst, rate, stored, since, tokens, before = {}, {}, {}, {}, {}, {}
for k = 1, n do
  burst[k], rate[k] = ARGV[3 * k] + 0, ARGV[3 * k + 1] + 0
  local bucket = redis.call('HMGET', KEYS[k], 'tokens', 'lastRefill', 'filledBy', 'filledTo', 'filledAt')
  stored[k], since[k] = burst[k], now
  if bucket[1] then
    stored[k], since[k] = bucket[1] + 0, bucket[2] + 0
  end
  -- A caller that may have older overrides than those that filled the bucket takes the burst of that fill.
  if bucket[3] and bucket[3] + 0 > ARGV[3 * k + 2] + 0 and now - bucket[5] <= age then
    burst[k] = bucket[4] + 0
  end
  tokens[k] = math.min(burst[k], stored[k] + math.max(0, now - since[k]) * rate[k])
  before[k] = tokens[k]
end

local outcomes = {}
for i = 3 * n + 3, #ARGV, n + 1 do
  local refused, denied = false, {}
  for k = 1, n do
    local cost = ARGV[i + k] + 0
    denied[k] = 0
    if ARGV[i] == '1' and cost > 0 and tokens[k] + 1e-9 < cost then
      refused, denied[k] = true, cost
    end
  end
  if refused then
    outcomes[#outcomes + 1] = denied
  else
    outcomes[#outcomes + 1] = false
    for k = 1, n do
      tokens[k] = math.min(burst[k], tokens[k] - ARGV[i + k])
    end
  end
end

local reply = {now}
for k = 1, n do
  if tokens[k] ~= before[k] then
    stored[k], since[k] = tokens[k], math.max(now, since[k])
    redis.call('HSET', KEYS[k], 'tokens', stored[k], 'lastRefill', since[k])
    local seconds = (burst[k] - math.min(0, tokens[k])) / rate[k] / 1000
    redis.call('EXPIRE', KEYS[k], 2 * math.min(1e11, math.max(1, math.ceil(seconds - 1e-6)))) -- no longer than EXPIRE takes
  end
  reply[#reply + 1] = math.floor((tokens[k] + 1e-9) * 1000)
end
for _, denied in ipairs(outcomes) do
  reply[#reply + 1] = denied and 1 or 0
  for k = 1, denied and n or 0 do
    local wait = 0
    if denied[k] > 0 then
      wait = math.min(1e14, math.max(1, math.ceil((denied[k] - 1e-9 - stored[k]) / rate[k]) + since[k] - now))
      -- Compute the sum exactly as the next call will, so that rounding does not deny a call after its wait. A wait
      -- is at most 1e14 ms, 3,000 years: debt may take any time, and from 2^53 on adding 1 to a float changes
      -- nothing, so this loop would not end.
      while wait < 1e14 and stored[k] + (now + wait - since[k]) * rate[k] + 1e-9 < denied[k] do wait = wait + 1 end
    end
    reply[#reply + 1] = wait
  end
end
return reply
