package runtime

import "time"

// Snapshot is what Peek saw, in whole tokens. A limit that a kind does not have is 0 in its buckets.
type Snapshot[C any] struct {
	// the least of the chain, rounded down and 0 in debt; 0 too for a limit that no bucket of it has
	Available C
	Buckets   []BucketSnapshot[C] // nearest first
}

// BucketSnapshot is one bucket of a chain, in whole tokens. A bucket that does not exist is full.
type BucketSnapshot[C any] struct {
	Entity                     string        // as stored: user-123
	Available, Capacity, Burst C             // Available is rounded down, 0 in debt
	Prefetched                 C             // taken by this process and not used yet; not in Available
	Full                       time.Duration // until the slowest limit is full; in-flight limits do not count
	Exists                     bool
}
