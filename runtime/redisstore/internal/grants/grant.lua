-- Adds to windowed limits of a bucket, once for each id of a grant.
--
-- KEYS   the text of the grant, if it was made; the hash of each limit: that of windows.lua, or, of one that counts
--        holds, that of holds.lua. granted is what was added in its open window, up to which used may be below 0
-- ARGV   the text; how long it is kept, in s; of each limit, the millitokens; 1 if it counts holds, else 0; and, as
--        windows.lua has them, half the length of a window, its length, an instant and three boundaries
-- reply  the text of the grant that counts, of this or an earlier call. If a window opens and ARGV does not have its
--        end: now, in ms. If a sum would not be exact: the number of the key. Then nothing is added
local before = redis.call('GET', KEYS[1])
if before then
  return before
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local used, ends, granted, life, opened, e = {}, {}, {}, {}, {}, {}
for k = 2, #KEYS do
  local at = 8 * k - 14
  local bucket = redis.call('HMGET', KEYS[k], 'used', 'end', 'granted', 'h0', 'h1', 'e')
  local amount, half = ARGV[at + 1] + 0, ARGV[at + 3] + 0
  used[k], ends[k], granted[k], e[k] = 0, 0, 0, 0
  if bucket[1] or bucket[2] then
    used[k], ends[k], granted[k] = bucket[1] + 0, bucket[2] + 0, (bucket[3] or 0) + 0
  end
  if bucket[6] then
    e[k] = bucket[6] + 0
  end
  if now >= ends[k] then
    local to, length, after = 0, ARGV[at + 4] + 0, math.max(now, ends[k] + half)
    if length > 0 then
      to = now + length
    elseif after >= ARGV[at + 5] + 0 then
      for i = at + 8, at + 6, -1 do
        if ARGV[i] + 0 > after then
          to = ARGV[i] + 0
        end
      end
    end
    if to == 0 then
      return now
    end
    used[k], ends[k], granted[k], opened[k] = 0, to, 0, true
  end
  used[k], granted[k] = used[k] - amount, granted[k] + amount
  if used[k] < -9007199254740991 or granted[k] > 9007199254740991 then
    return k
  end
  life[k] = ends[k] + half
end
for k = 2, #KEYS do
  redis.call('HSET', KEYS[k], 'used', used[k], 'end', ends[k], 'granted', granted[k])
  if ARGV[8 * k - 12] == '1' and opened[k] then -- what was held in the window that is over is not held any more
    e[k] = math.max(e[k], math.floor(now / 60000) + 1)
    redis.call('HSET', KEYS[k], 'h0', 0, 'h1', 0, 'e', e[k])
    life[k] = math.max(life[k], (e[k] + 2) * 60000)
  end
  if opened[k] then
    redis.call('PEXPIREAT', KEYS[k], life[k])
  end
end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return ARGV[1]
