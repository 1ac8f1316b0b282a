// Package redisstore keeps buckets in Redis: one hash for each entity, resource and limit, and one script call for each acquire
// or settle, whatever it charges. It is not named redis, because every main that uses it imports go-redis too.
//
// A hash has two fields: tokens, and lastRefill, the instant in milliseconds at which they were there. What came since is worked
// out when a call needs it, by Redis's own clock, so that those of clients do not matter. A bucket that is missing is full: a
// hash expires when it would have been full twice over. A call takes from all its buckets, or from none.
//
// Who comes while fewer than two pipelines are under way goes out at once. Those who come meanwhile go together with the next
// (line.go), and those of them who want the same keys as one script call, first come first served, each with an outcome of its
// own. One pipeline may overtake another: of calls that are under way at a time either may be served first.
//
// What Redis says that it has not run goes again, once. What had no answer does not, be it a charge or a give-back, and the
// client's own retries are off for it: two fields leave no room to tell whether it was applied. Such a charge stands, so that
// never more is admitted than there is.
package redisstore
