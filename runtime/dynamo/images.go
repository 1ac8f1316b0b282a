package dynamo

import (
	"sync/atomic"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// bucketKey names a bucket within a session.
type bucketKey struct {
	resource *resource
	entity   string
}

// memory is what a process remembers of one bucket. It is shared by concurrent calls; the newest to learn wins.
type memory struct {
	image atomic.Pointer[bucket.Image] // nil: unknown, or gone
	shape atomic.Pointer[shape]        // nil: unknown
	yield atomic.Int64                 // until when Normals leave room at the top, ms
}

// contention is how long a process that lost a Normal leaves room, in milliseconds.
const contention = 1000

// recall returns the memory of a bucket, a fresh one where there is none.
func (s *session) recall(key bucketKey) *memory {
	if m, ok := s.images.Get(key); ok {
		return m
	}
	fresh := &memory{}
	if m, ok, _ := s.images.PeekOrAdd(key, fresh); ok {
		return m
	}
	return fresh
}
