// Package redisstore keeps buckets in Redis: one hash for each entity, resource and limit.
//
//	client := redis.NewClient(&redis.Options{Addr: addr}) // or NewFailoverClient, NewClusterClient
//	lim, err := limits.New(redisstore.New(client))        // no I/O; Prefix("billing:") keeps several apart
//	if err != nil {
//		return nil, err
//	}
//	return lim, lim.Check(ctx) // before serving: version, rights, a cluster's slots, eviction
//
// Each acquire or settle is one script call. It takes from all its buckets, or from none. A hash has the
// fields tokens and lastRefill, the instant in milliseconds at which that many tokens were there, and after a
// fill the overrides that it used. The refill since lastRefill is by Redis's own clock, so clients' clocks do
// not matter. A missing bucket is full: a hash expires after twice the time that filling it takes.
//
// A windowed limit has the fields used, in millitokens of the open window, and end, when that window ends.
// Each call brings the capacity, so a changed number needs no write. Redis's clock decides whether the window
// is over, and calls bring the boundaries that may be its next end. A give-back counts only in the window
// that it was taken from. The hash lives for half a window after its end.
//
// A request that comes while fewer than two pipelines are under way is sent at once. Later requests go
// together in the next pipeline; one may overtake the other. Those that charge the same keys share a call.
//
// A call that Redis reports as not run is sent once more. A charge or refund without a reply is not repeated,
// and the client's own retries are off: two fields leave no room to record whether it was applied. Such a
// charge stands, so the store never admits more than there is.
package redisstore
