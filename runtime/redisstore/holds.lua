-- Charges calls to buckets with limits that count what open leases hold. A call is charged to all its keys or to none.
-- Limits without holds are charged as by windows.lua, and have the same arguments and replies as there.
--
-- Holds are counted by epoch, a minute of this server's time, in two cells: h0 for even numbers, h1 for odd ones. e is
-- the lowest number that is counted. Lower ones are over, and what was held in them has come back.
--
-- KEYS   a hash for each limit of each bucket: that of windows.lua, or, of a limit with holds, the millitokens held, h0
--        and h1, and e; of a windowed one also those that are used, and not held, in the window that ends at end
-- ARGV   that of windows.lua, except for a key with holds. In front of the calls, such a key has its burst in
--        millitokens, and then -1 if it is in flight; else -2 and, from half on, what a windowed key has. A call begins
--        with 2, instead of 0 or 1, if it is an extension, which costs nothing. In a call, a key with holds has its
--        cost and the number of its lease's charges. Each charge has the millitokens that come back to used, below 0 to
--        charge them; the end of its window, 0 in flight; its epoch; and the millitokens held in that epoch, which a
--        settle gives back and an extension moves to a later one
-- reply  as that of windows.lua. Of a key with holds: its balance, the end of its window, 0 in flight, h0, h1 and e;
--        the epoch of what a call takes or extends; and the millitokens that came back since the last write, 0 if
--        nothing is written. Of an extension: 0 and, of each key, the epoch of its hold, -1 if that is over
local n, age = ARGV[1] + 0, ARGV[2] + 0
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local epoch = math.floor(now / 60000) + 1 -- the one that ends next

local burst, rate, stored, since, tokens, before = {}, {}, {}, {}, {}, {}
local used, ends, window, opened = {}, {}, {}, {} -- window is where ARGV has half
local h, low, last, swept, missing = {}, {}, {}, {}, {} -- h has the cells, last the epoch of what is taken
local of, whose, none = {}, {}, {} -- whose plan it is, and that as fields of the hash
local granted, stale = {}, {} -- granted is what used may be below 0; stale, that of a window that is over
local most = 9007199254740991 -- integers are exact up to that

local function shorten(k)
  local w = window[k]
  local length, longest = ARGV[w + 1] + 0, 4 * ARGV[w] + 86400000
  if length > 0 then
    longest = 2 * length
  end
  if ends[k] <= now + longest or length + ARGV[w] == 0 or not (ends[k] < math.huge) then
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

-- Reads the cells of a key, and sweeps those of epochs that are over.
local function sweep(k, bucket)
  low[k] = epoch
  if bucket[3] or bucket[4] or bucket[5] then
    local e = bucket[5] + 0
    low[k] = math.max(epoch, e)
    for i = 0, 1 do
      local held = bucket[3 + i] + 0
      if e + (e + i) % 2 < low[k] then
        swept[k] = swept[k] + held
      else
        h[k][i] = held
      end
    end
  elseif bucket[1] then
    low[k] = epoch + 3 -- the limit had no cells: no hold from before counts in them
  end
  last[k] = math.max(epoch + 1, low[k])
end

local function balance(k) return burst[k] - used[k] - h[k][0] - h[k][1] end

local at = 3
for k = 1, n do
  burst[k], rate[k], of[k], whose[k] = ARGV[at] + 0, tonumber(ARGV[at + 1]), '', none
  if not rate[k] then
    rate[k], of[k] = string.match(ARGV[at + 1], '^([^@]+)@(.*)$')
    rate[k], whose[k] = rate[k] + 0, {'of', of[k]}
  end
  if rate[k] <= 0 then
    local bucket = redis.call('HMGET', KEYS[k], 'used', 'end', 'h0', 'h1', 'e', 'granted')
    used[k], ends[k], h[k], swept[k], granted[k] = 0, 0, {[0] = 0, 0}, 0, (bucket[6] or 0) + 0
    missing[k] = not (bucket[1] or bucket[5])
    if rate[k] < 0 then
      sweep(k, bucket)
    end
    if rate[k] == -1 then
      at = at + 2
    else
      if bucket[1] or bucket[2] then
        used[k], ends[k] = bucket[1] + 0, bucket[2] + 0
      end
      if now >= ends[k] then
        used[k], h[k], swept[k] = 0, {[0] = 0, 0}, 0
        granted[k], stale[k] = 0, bucket[6]
      end
      window[k] = at + 2
      shorten(k)
      at = at + 8
    end
    tokens[k] = balance(k)
    before[k] = {used[k], h[k][0], h[k][1]}
  else
    local bucket = redis.call('HMGET', KEYS[k], 'tokens', 'lastRefill', 'filledBy', 'filledTo', 'filledAt', 'filledOf')
    stored[k], since[k] = burst[k], now
    if bucket[1] then
      stored[k], since[k] = bucket[1] + 0, bucket[2] + 0
    end
    if bucket[3] and bucket[3] + 0 > ARGV[at + 2] + 0 and now - bucket[5] <= age and (bucket[6] or '') == of[k] then
      burst[k] = bucket[4] + 0
    end
    if ARGV[at + 2] + 0 < 0 then
      burst[k] = math.max(burst[k], stored[k])
    end
    tokens[k] = math.min(burst[k], stored[k] + math.max(0, now - since[k]) * rate[k])
    before[k] = tokens[k]
    at = at + 3
  end
end

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

-- Reports whether the charge at ARGV[i] is of a window that is open, or in flight.
local function current(k, i) return ARGV[i + 1] + 0 == ends[k] and (not window[k] or now < ends[k]) end

-- Ends a hold, or what is left of it: a replica that took over may not have the write that took it.
local function release(k, of, held)
  if of >= low[k] and of <= low[k] + 1 then
    h[k][of % 2] = math.max(0, h[k][of % 2] - held)
  end
end

-- Gives the charges at ARGV[back] back to a key, and charges it. The cost of an acquire, whose fit is 1, is held.
-- Returns false if ARGV does not have the end of the window that is to open.
local function charge(k, fit, cost, back)
  local step = low[k] and 4 or 2
  for i = back + 1, back + step * ARGV[back], step do
    if current(k, i) then
      used[k] = math.max(0 - granted[k], math.min(used[k] - ARGV[i], most))
      if low[k] then
        release(k, ARGV[i + 2] + 0, ARGV[i + 3] + 0)
      end
    end
  end
  if cost > 0 then
    if window[k] and now >= ends[k] then
      local to = opening(k)
      if not to then
        return false
      end
      ends[k], opened[k] = to, true
    end
    if low[k] and fit == '1' then
      h[k][last[k] % 2] = h[k][last[k] % 2] + cost
    elseif window[k] then
      used[k] = math.min(used[k] + cost, most)
    end
  end
  tokens[k] = balance(k)
  return true
end

-- Extends the hold at ARGV[i], and returns its new epoch, or -1 if it is over. The new cell gets all of the hold, even
-- if the old cell has less (see release).
local function extend(k, i)
  local of, held = ARGV[i + 2] + 0, ARGV[i + 3] + 0
  if not current(k, i) and not missing[k] then -- nothing is held any more
    return last[k]
  elseif missing[k] or of < low[k] then
    return -1
  elseif of >= last[k] then
    return of
  end
  release(k, of, held)
  h[k][last[k] % 2] = h[k][last[k] % 2] + held
  tokens[k] = balance(k)
  return last[k]
end

local outcomes = {}
while at <= #ARGV do
  local fit, refused, each, cost, back = ARGV[at], false, {}, {}, {}
  at = at + 1
  for k = 1, n do
    cost[k], each[k] = ARGV[at] + 0, 0
    at = at + 1
    if fit == '1' and cost[k] > 0 and tokens[k] + 1e-9 < cost[k] then
      refused, each[k] = true, cost[k]
    end
    if rate[k] <= 0 then
      back[k] = at
      at = at + 1 + (low[k] and 4 or 2) * ARGV[at]
    end
  end
  for k = 1, refused and 0 or n do
    if fit == '2' then
      if low[k] and ARGV[back[k]] + 0 > 0 then
        each[k] = extend(k, back[k] + 1)
      end
    elseif rate[k] > 0 then
      tokens[k] = math.min(burst[k], tokens[k] - cost[k])
    elseif not charge(k, fit, cost[k], back[k]) then
      return {now}
    end
  end
  each.refused, each.extended = refused, fit == '2'
  outcomes[#outcomes + 1] = each
end

local reply = {now}
for k = 1, n do
  if rate[k] > 0 then
    if tokens[k] ~= before[k] then
      stored[k], since[k] = tokens[k], math.max(now, since[k])
      redis.call('HSET', KEYS[k], 'tokens', stored[k], 'lastRefill', since[k], unpack(whose[k]))
      local seconds = (burst[k] - math.min(0, tokens[k])) / rate[k] / 1000
      redis.call('EXPIRE', KEYS[k], 2 * math.min(1e11, math.max(1, math.ceil(seconds - 1e-6))))
    end
    reply[#reply + 1] = math.floor((tokens[k] + 1e-9) * 1000)
  else
    local h0, h1, life = h[k][0], h[k][1], 0
    if opened[k] or used[k] ~= before[k][1] or h0 ~= before[k][2] or h1 ~= before[k][3] then
      local fields = {}
      if low[k] then -- a minute longer than the last hold
        fields, life = {'h0', h0, 'h1', h1, 'e', low[k]}, (low[k] + 2) * 60000
      end
      if window[k] then
        fields[#fields + 1], fields[#fields + 2], fields[#fields + 3], fields[#fields + 4] =
          'used', used[k], 'end', ends[k]
        life = math.max(life, ends[k] + ARGV[window[k]])
      end
      if of[k] ~= '' then
        fields[#fields + 1], fields[#fields + 2] = 'of', of[k]
      end
      redis.call('HSET', KEYS[k], unpack(fields))
      if stale[k] then
        redis.call('HDEL', KEYS[k], 'granted')
      end
      redis.call('PEXPIREAT', KEYS[k], life)
    else
      swept[k] = 0
    end
    reply[#reply + 1], reply[#reply + 2] = tokens[k], ends[k]
    for _, number in ipairs(low[k] and {h0, h1, low[k], last[k], swept[k]} or {}) do
      reply[#reply + 1] = number
    end
  end
end
for _, each in ipairs(outcomes) do
  reply[#reply + 1] = each.refused and 1 or 0
  for k = 1, (each.refused or each.extended) and n or 0 do
    local wait = each[k]
    if each.extended or wait == 0 then
      -- as it is
    elseif window[k] then
      wait = math.max(1, ends[k] - now)
    elseif low[k] then
      wait = 1000 -- a hint: nobody knows when a call ends
    else
      wait = math.min(1e14, math.max(1, math.ceil((each[k] - 1e-9 - stored[k]) / rate[k]) + since[k] - now))
      while wait < 1e14 and stored[k] + (now + wait - since[k]) * rate[k] + 1e-9 < each[k] do wait = wait + 1 end
    end
    reply[#reply + 1] = wait
  end
end
return reply
