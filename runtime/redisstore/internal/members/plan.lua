-- Puts an entity on a plan, unless it is on it already.
--
-- KEYS   the hash of the entity: plan, its plan, '' for none; pv, the version of its last change, in ms; the list of
--        the records of its changes
-- ARGV   the plan; the record of the change; the plan that the entity has to be on, left out for any
-- reply  1; 0 if the entity is on another plan
local key = KEYS[1]
local old = redis.call('HGET', key, 'plan') or ''
if old == ARGV[1] then
  return 1
end
if ARGV[3] and old ~= ARGV[3] then
  return 0
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local pv = math.max(now, tonumber(redis.call('HGET', key, 'pv') or 0) + 1)
pv = string.format('%.0f', pv)
local before = {}
if old ~= '' then
  before.plan = old
end
-- first the record: if it fails, for want of a right for example, nothing changes
redis.call('RPUSH', KEYS[2], pv .. '\n' .. (next(before) and cjson.encode(before) or '') .. '\n' .. ARGV[2])
redis.call('LTRIM', KEYS[2], -1000, -1)
redis.call('EXPIRE', KEYS[2], 34560000)
redis.call('HSET', key, 'plan', ARGV[1], 'pv', pv)
return 1
