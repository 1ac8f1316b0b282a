// Package redisstore keeps buckets in Redis: one hash for each entity, resource and limit, and one script call for each acquire
// or settle, whatever it charges. It is not named redis, because every main that uses it imports go-redis too.
//
// A hash has two fields: tokens, and lastRefill, the instant in milliseconds at which they were there. What came since is worked
// out when a call needs it, by Redis's own clock, so that those of clients do not matter. A bucket that is missing is full: a
// hash expires when it would have been full twice over. A call takes from all its buckets, or from none.
package redisstore
