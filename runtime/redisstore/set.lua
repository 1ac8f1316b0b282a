-- Replaces an override, if its hash still has the revision that the caller has read.
--
-- KEYS   the hash of the override, or of all plans: the numbers of limits; ver, its version; op, the id of its last
--        write; the list of the records of its changes
-- ARGV   the version that was read, '' if none of these limits may be overridden so far; an id of this write; the
--        start of all fields of limits at that place; the record of the change; then, of each limit, its field and
--        the field's new text, '' to remove it. Without a limit left, all fields of limits at that place go
-- reply  the new version as text; '' if the version is another one, or a limit is overridden against ARGV
local key = KEYS[1]
local ver = redis.call('HGET', key, 'ver')
if ver and redis.call('HGET', key, 'op') == ARGV[2] then
  return ver
end
if ARGV[1] ~= '' and ver ~= ARGV[1] then
  return ''
end
local overrides, ours = false, {}
for i = 5, #ARGV, 2 do
  if ARGV[1] == '' and redis.call('HEXISTS', key, ARGV[i]) == 1 then
    return ''
  end
  overrides, ours[ARGV[i]] = overrides or ARGV[i + 1] ~= '', true
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
ver = string.format('%.0f', math.max(now, tonumber(ver or 0) + 1))
local before, gone = {}, {}
for _, field in ipairs(redis.call('HKEYS', key)) do
  if string.sub(field, 1, #ARGV[3]) == ARGV[3] and (ours[field] or not overrides) then
    before[string.sub(field, #ARGV[3] + 1)] = redis.call('HGET', key, field)
    gone[#gone + 1] = field
  end
end
-- first the record: if it fails, for want of a right for example, nothing changes
redis.call('RPUSH', KEYS[2], ver .. '\n' .. (next(before) and cjson.encode(before) or '') .. '\n' .. ARGV[4])
redis.call('LTRIM', KEYS[2], -1000, -1)
redis.call('EXPIRE', KEYS[2], 34560000)
for _, field in ipairs(gone) do
  redis.call('HDEL', key, field)
end
redis.call('HSET', key, 'ver', ver, 'op', ARGV[2])
for i = 5, #ARGV, 2 do
  if ARGV[i + 1] ~= '' then
    redis.call('HSET', key, ARGV[i], ARGV[i + 1])
  end
end
return ver
