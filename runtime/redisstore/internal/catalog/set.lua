-- Replaces an entry of a template's catalog, if it still has the revision that the caller has read.
--
-- KEYS   the hash of the catalog: by name "<version> <id of the last write> <entry>", without an entry if it was
--        removed; the list of the records of its changes
-- ARGV   the name; the version that was read, '' if there may be no entry; an id of this write; the entry, '' to
--        remove it; the record of the change
-- reply  the new version as text; '' if the version is another one, or there is an entry against ARGV
local ver, op, entry = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '0  ', '^(%d+) (%S*) (.*)$')
if op == ARGV[3] then
  return ver
end
if ARGV[2] == '' and entry ~= '' or ARGV[2] ~= '' and (entry == '' or ver ~= ARGV[2]) then
  return ''
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
ver = string.format('%.0f', math.max(now, tonumber(ver) + 1))
-- first the record: if it fails, for want of a right for example, nothing changes
redis.call('RPUSH', KEYS[2], ver .. '\n' .. (entry or '') .. '\n' .. ARGV[5])
redis.call('LTRIM', KEYS[2], -1000, -1)
redis.call('EXPIRE', KEYS[2], 34560000)
redis.call('HSET', KEYS[1], ARGV[1], ver .. ' ' .. ARGV[3] .. ' ' .. ARGV[4])
return ver
