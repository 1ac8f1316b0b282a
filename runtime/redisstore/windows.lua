-- Charges calls to buckets of which some have windowed limits, each call all or none, with any number of keys. Limits
-- that refill are charged as by any.lua, and without windows both take and return the same.
--
-- KEYS   a hash for each limit of each bucket: that of any.lua, or, of a windowed limit, the millitokens used in the
--        window that ends at end, in ms; at a missing one no window is open. granted is what grant.lua has added to
--        the window, by which used is lower
-- ARGV   the number of keys; the most ms since the caller read its overrides; of each key, its burst in tokens, its
--        refill in tokens per ms and the version of these overrides. Of a windowed one instead: its burst in
--        millitokens; 0; half the length of a window in ms, which is how long its hash lives after its end; the
--        length if the first use opens it, else 0; an instant, and the three boundaries that come first after it.
--        If a plan gives the numbers, @ and the entity whose plan it is follow the refill, or the 0 in its place. A
--        version below 0 is of numbers that stand in for those of an unknown plan. Then of each call, in their order: 1 if it has to fit, 0 if it is charged in any case, and its cost of each
--        key, negative for a refund; of a windowed one instead, its cost in millitokens, 0 or more; the number of
--        its give-backs; and of each the millitokens, and the end of the window from which they were taken
-- reply  now, in ms; of each key, its balance in millitokens, and of a windowed one the end of its window, 0 before
--        the first; of each call, 0 if it is charged, else 1 and, of each key, the ms until it would not deny, 0 if
--        it does not. If a window opens and ARGV does not have its end: now alone, and nothing is charged
local n, age = ARGV[1] + 0, ARGV[2] + 0
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local burst, rate, stored, since, tokens, before = {}, {}, {}, {}, {}, {}
local window, ends, opened = {}, {}, {} -- window is where ARGV has half; it is nil for a limit that refills
local of, whose, none = {}, {}, {} -- whose plan it is, and that as fields of the hash
local top, stale = {}, {} -- the most that an open window holds; granted is of one that is over

-- Ends an open window of a key that is too long for the limit: it is of longer ones that the limit had. The usage
-- stays. Two windows, and a day for a zone that moves, are the longest that a changed start or zone makes. One that
-- never ends has neither half nor a length.
local function shorten(k)
  local w = window[k]
  local length, longest = ARGV[w + 1] + 0, 4 * ARGV[w] + 86400000
  if length > 0 then
    longest = 2 * length
  end
  if ends[k] <= now + longest or length + ARGV[w] == 0 or not (ends[k] < math.huge) then -- the reply tells of what is no time
    return
  end
  if length > 0 then
    ends[k], opened[k] = now + length, true
  elseif now >= ARGV[w + 2] + 0 then
    for i = w + 3, w + 5 do
      if ARGV[i] + 0 > now then
        ends[k], opened[k] = ARGV[i] + 0, true
        return
      end
    end
  end
end

local at = 3
for k = 1, n do
  burst[k], rate[k], of[k], whose[k] = ARGV[at] + 0, tonumber(ARGV[at + 1]), '', none
  if not rate[k] then
    rate[k], of[k] = string.match(ARGV[at + 1], '^([^@]+)@(.*)$')
    rate[k], whose[k] = rate[k] + 0, {'of', of[k]}
  end
  if rate[k] == 0 then
    local bucket = redis.call('HMGET', KEYS[k], 'used', 'end', 'granted')
    tokens[k], ends[k], top[k] = burst[k], 0, burst[k]
    if bucket[1] or bucket[2] then
      local used = bucket[1] + 0
      ends[k] = bucket[2] + 0
      if now < ends[k] then
        tokens[k], top[k] = burst[k] - used, burst[k] + (bucket[3] or 0)
      else
        stale[k] = bucket[3]
      end
    end
    window[k] = at + 2
    shorten(k)
    at = at + 8
  else
    local bucket = redis.call('HMGET', KEYS[k], 'tokens', 'lastRefill', 'filledBy', 'filledTo', 'filledAt', 'filledOf')
    stored[k], since[k] = burst[k], now
    if bucket[1] then
      stored[k], since[k] = bucket[1] + 0, bucket[2] + 0
    end
    if bucket[3] and bucket[3] + 0 > ARGV[at + 2] + 0 and now - bucket[5] <= age and (bucket[6] or '') == of[k] then
      burst[k] = bucket[4] + 0
    end
    if ARGV[at + 2] + 0 < 0 then -- the bucket keeps what it has by its plan
      burst[k] = math.max(burst[k], stored[k])
    end
    tokens[k] = math.min(burst[k], stored[k] + math.max(0, now - since[k]) * rate[k])
    at = at + 3
  end
  before[k] = tokens[k]
end

-- The end of the window of a key that opens now, nil if ARGV does not have it: a caller whose clock is off may have
-- left out an earlier boundary, or all that are still to come. half keeps callers with other boundaries from opening
-- a short window.
local function opening(k)
  local w = window[k]
  if ARGV[w + 1] + 0 > 0 then
    return now + ARGV[w + 1]
  end
  local after = math.max(now, ends[k] + ARGV[w])
  if after < ARGV[w + 2] + 0 then
    return nil
  end
  for i = w + 3, w + 5 do
    if ARGV[i] + 0 > after then
      return ARGV[i] + 0
    end
  end
end

-- Charges a windowed key, and takes the give-backs at ARGV[back] of charges of its open window. It reports whether
-- ARGV has the end of the window that it opens.
local function charge(k, cost, back)
  for i = back + 1, back + 2 * ARGV[back], 2 do
    if ARGV[i + 1] + 0 == ends[k] then -- one that is over has all its tokens
      tokens[k] = math.min(tokens[k] + ARGV[i], top[k])
    end
  end
  if cost > 0 then
    if now >= ends[k] then
      local to = opening(k)
      if not to then
        return false
      end
      ends[k], opened[k] = to, true
    end
    tokens[k] = math.max(tokens[k] - cost, burst[k] - 9007199254740991) -- integers are exact up to that
  end
  return true
end

local outcomes = {}
while at <= #ARGV do
  local fit, refused, denied, cost, back = ARGV[at], false, {}, {}, {}
  at = at + 1
  for k = 1, n do
    cost[k], denied[k] = ARGV[at] + 0, 0
    at = at + 1
    if fit == '1' and cost[k] > 0 and tokens[k] + 1e-9 < cost[k] then
      refused, denied[k] = true, cost[k]
    end
    if window[k] then
      back[k] = at
      at = at + 1 + 2 * ARGV[at]
    end
  end
  outcomes[#outcomes + 1] = refused and denied
  for k = 1, refused and 0 or n do
    if not window[k] then
      tokens[k] = math.min(burst[k], tokens[k] - cost[k])
    elseif not charge(k, cost[k], back[k]) then
      return {now}
    end
  end
end

local reply = {now}
for k = 1, n do
  if window[k] then
    if opened[k] or tokens[k] ~= before[k] then
      redis.call('HSET', KEYS[k], 'used', burst[k] - tokens[k], 'end', ends[k], unpack(whose[k]))
      if stale[k] then
        redis.call('HDEL', KEYS[k], 'granted')
      end
      redis.call('PEXPIREAT', KEYS[k], ends[k] + ARGV[window[k]])
    end
    reply[#reply + 1], reply[#reply + 2] = tokens[k], ends[k]
  else
    if tokens[k] ~= before[k] then
      stored[k], since[k] = tokens[k], math.max(now, since[k])
      redis.call('HSET', KEYS[k], 'tokens', stored[k], 'lastRefill', since[k], unpack(whose[k]))
      local seconds = (burst[k] - math.min(0, tokens[k])) / rate[k] / 1000
      redis.call('EXPIRE', KEYS[k], 2 * math.min(1e11, math.max(1, math.ceil(seconds - 1e-6))))
    end
    reply[#reply + 1] = math.floor((tokens[k] + 1e-9) * 1000)
  end
end
for _, denied in ipairs(outcomes) do
  reply[#reply + 1] = denied and 1 or 0
  for k = 1, denied and n or 0 do
    local wait = 0
    if denied[k] > 0 and window[k] then
      wait = math.max(1, ends[k] - now) -- no window is open if the cost is above the burst
    elseif denied[k] > 0 then
      wait = math.min(1e14, math.max(1, math.ceil((denied[k] - 1e-9 - stored[k]) / rate[k]) + since[k] - now))
      while wait < 1e14 and stored[k] + (now + wait - since[k]) * rate[k] + 1e-9 < denied[k] do wait = wait + 1 end
    end
    reply[#reply + 1] = wait
  end
end
return reply
