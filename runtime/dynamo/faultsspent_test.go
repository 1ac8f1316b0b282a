package dynamo

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestSpentRetriesBehindAnUnknownWrite has DynamoDB go down when a write to a hot bucket has just lost a
// race. The next attempt leaves newcomers out, and has no reply. They wait behind it. They do not make it go
// again and again once the process has no retries left.
func TestSpentRetriesBehindAnUnknownWrite(t *testing.T) {
	const beside = 400
	inBubble(t, 1, func(t *testing.T, b *bubble) {
		t.Helper()
		o := newOutage(t, b, func(api wire.API) store.Store { return New(api, "faults") }, beside)
		def := lineage(second(generated(t)), store.CascadeNone, minute(1_000_000))
		other := newPost(t, New(b.client, "faults"), nil, def)
		b.Faults().Latency(memdynamo.LogNormal(5*time.Millisecond, 0))
		hot := kin{"hot"}
		if _, err := other.at[0].Acquire(t.Context(), hot, tokens{1}); err != nil {
			t.Fatal(err)
		}
		lease, err := o.at[0].Acquire(t.Context(), hot, tokens{999_000})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Second) // more is available than is stored: newcomers' costs need that
		var all sync.WaitGroup
		failed := make([]error, 7)
		acquire := func(i int, p *post, cost int64) {
			all.Go(func() { _, failed[i] = p.at[0].Acquire(t.Context(), hot, tokens{cost}) })
		}
		acquire(0, other, 2_000)
		all.Wait()
		acquire(1, o.post, 2_000) // by an image from before the other's write: it is refused
		<-time.After(time.Millisecond)
		all.Go(func() { _ = lease.Settle(t.Context(), tokens{999_005}) }) // waits for longer than an acquire does
		for i := range 5 {
			acquire(2+i, o.post, 50_000)
		}
		<-time.After(8 * time.Millisecond)
		b.Faults().LoseRequests(1)
		_, _ = o.calls(t, beside) // they spend the retries
		all.Wait()
		sent := o.wire.sent.Load()
		<-time.After(10 * time.Second) // what is in doubt is given up
		t.Logf("%d callers beside sent %d requests in all", beside, sent)
		if sent > beside+retriesAtOnce+50 {
			t.Errorf("%d requests were sent, want at most %d", sent, beside+retriesAtOnce+50)
		}
		for i, err := range failed[2:] {
			if _, ok := errors.AsType[*store.UnavailableError](err); !ok {
				t.Errorf("newcomer %d: %v, want that the store is unavailable", i, err)
			}
		}
	})
}
