-- Puts an entity on a plan, unless it is on it already.
--
-- KEYS   the hash of the entity: plan, its plan, '' for none; pv, the version of its last change, in ms
-- ARGV   the plan; the plan that the entity has to be on, left out for any
-- reply  1; 0 if the entity is on another plan
local key = KEYS[1]
local old = redis.call('HGET', key, 'plan') or ''
if old == ARGV[1] then
  return 1
end
if ARGV[2] and old ~= ARGV[2] then
  return 0
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local pv = math.max(now, tonumber(redis.call('HGET', key, 'pv') or 0) + 1)
redis.call('HSET', key, 'plan', ARGV[1], 'pv', string.format('%.0f', pv))
return 1
