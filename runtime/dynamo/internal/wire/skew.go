package wire

import (
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"

	"github.com/aws/smithy-go/middleware"

	"github.com/sluice-go/sluice/runtime/store"
)

// tolerated is how far a host's clock may be off: design section 3.
const tolerated = time.Second

// SkewWatch reports a clock that is off, at most once a minute.
type SkewWatch struct{ next atomic.Int64 }

// Watch compares the service's Date with the times between which a call was made.
func (w *SkewWatch) Watch(env *store.Env, began time.Time, metadata middleware.Metadata) {
	if env.Observer.Skew == nil {
		return
	}
	now := env.Clock.Now()
	ahead := Skew(began, now, metadata)
	if ahead == 0 {
		return
	}
	next := w.next.Load()
	if now.UnixMilli() >= next && w.next.CompareAndSwap(next, now.Add(time.Minute).UnixMilli()) {
		env.Observer.Skew(ahead)
	}
}

// Skew returns by how much at least this host's clock is ahead of the service's (negative: behind), or 0 if that is
// within what is tolerated or not known. The Date has whole seconds and was made between began and ended.
func Skew(began, ended time.Time, metadata middleware.Metadata) time.Duration {
	date, ok := awsmiddleware.GetServerTime(metadata)
	if !ok {
		return 0
	}
	if ahead := began.Sub(date.Add(time.Second)); ahead > tolerated {
		return ahead
	}
	if behind := date.Sub(ended); behind > tolerated {
		return -behind
	}
	return 0
}
