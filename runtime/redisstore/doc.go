// Package redisstore keeps buckets in Redis: one hash for each entity, resource and limit.
//
//	// or NewFailoverClient for a Sentinel, NewClusterClient
//	client := redis.NewClient(&redis.Options{Addr: addr})
//	// no I/O; redisstore.Prefix("billing:") keeps several apart
//	lim, err := limits.New(redisstore.New(client))
//	if err != nil {
//		return nil, err
//	}
//	return lim, lim.Check(ctx) // before serving: version, rights, a cluster's slots, eviction
//
// Each acquire or settle is one script call, whatever it charges. The package is not named redis, because
// every main that uses it imports go-redis too.
//
// A hash has two fields: tokens, and lastRefill, the instant in milliseconds at which that many tokens were
// there. A fill adds fields that say by which overrides it was. A call that needs the bucket computes the
// refill since lastRefill by Redis's own clock, so clients' clocks do not matter. A missing bucket is full: a
// hash expires after twice the time that filling it takes. A call takes from all its buckets, or from none.
//
// A request that comes while fewer than two pipelines are under way is sent at once. Later requests wait
// and go together in the next pipeline (queue.go). Those that charge the same keys share one script call:
// they are served first come first served, and each has an outcome of its own. One pipeline may overtake
// another, so of two requests under way at the same time either may be served first.
//
// A call that Redis reports as not run is sent once more. A call without a reply is not repeated, be it a
// charge or a refund, and the client's own retries are off for it. Two fields leave no room to record
// whether it was applied. Such a charge stands, so the store never admits more than there is.
package redisstore
