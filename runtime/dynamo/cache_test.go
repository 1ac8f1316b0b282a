package dynamo

import (
	"context"
	"fmt"
	stdruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// countedReads counts reads of a bucket with its overrides.
type countedReads struct {
	wire.API
	reads int
}

func (c *countedReads) BatchGetItem(
	ctx context.Context,
	in *dynamodb.BatchGetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	c.reads++
	return c.API.BatchGetItem(ctx, in, opts...)
}

// TestMemoryPerBucket holds what ImageCache's documentation says that a bucket takes which nobody uses, and
// that a flood of others does not add to it.
func TestMemoryPerBucket(t *testing.T) {
	skipOnLocal(t)
	longform.NoRace(t, "it measures memory")
	gpt4, _ := generated(t)
	const most = 1100
	buckets := longform.Count(t, "buckets", 20_000, 5000)
	def := withNumbers(gpt4, 1, perSecond(100), perSecond(100))
	table := newSimTable(1, gpt4.Decode)
	table.minDelay, table.maxDelay, table.quiet = 0, 0, true
	api := &countedReads{API: table}
	p := newProcess(t, api, 1, 0, option(ImageCache(buckets)), def)
	heap := func() int64 {
		clear(table.items)
		stdruntime.GC()
		stdruntime.GC()
		var m stdruntime.MemStats
		stdruntime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	use := func(from, to int) {
		for i := range to - from {
			call := &store.Call{Called: time.Now(), Parts: []store.Part{{
				Def: def, Cost: []int64{1000, 0}, Buckets: []store.Bucket{{Entity: fmt.Sprintf("user-%08d", from+i)}},
			}}}
			if err := p.session.Acquire(t.Context(), call); err != nil {
				t.Fatal(err)
			}
		}
	}
	use(0, 10) // what is made once
	before := heap()
	use(10, buckets)
	each := float64(heap()-before) / float64(buckets-10)
	t.Logf("%.0f bytes for each of %d buckets with two limits", each, buckets)
	if each > most {
		t.Errorf("%.0f bytes per bucket, want at most %d", each, most)
	}
	use(buckets, 3*buckets)
	flooded := float64(heap()-before) / float64(buckets)
	t.Logf("%.0f bytes after a flood of others", flooded)
	if flooded > 1.1*each { // the map has grown
		t.Errorf("%.0f bytes each after a flood of others, want at most a tenth above %.0f", flooded, each)
	}
	api.reads = 0
	if use(2*buckets, 3*buckets); api.reads != 0 {
		t.Errorf("%d of the last %d buckets were read again", api.reads, buckets)
	}
	if use(0, 10); api.reads != 10 {
		t.Errorf("%d of 10 buckets used before were read again", api.reads)
	}
}

// TestClockSetBack: a process whose clock is set back learns anew what it learnt under the future one. A
// denial then costs nothing again. The first reply moves the clock to DynamoDB's time. That may seem up to a
// second older than what was learnt before, as dates are rounded down. Half a second back is not noticed, and
// so each denial costs a write until the clock has caught up.
func TestClockSetBack(t *testing.T) {
	for name, test := range map[string]struct {
		back    time.Duration
		passes  time.Duration // after the first denial
		refused []int         // writes, of 20 denials
	}{
		"an hour":                {time.Hour, time.Second, []int{1, 2}},
		"a little over a second": {1100 * time.Millisecond, time.Second, []int{1, 2}},
		"control: half a second": {500 * time.Millisecond, 0, []int{20}},
	} {
		t.Run(name, func(t *testing.T) {
			onHosts(t, 100, func(h *hosts) {
				clock := &steppedClock{}
				other, p := h.open(h.client, offsetClock(0)), h.open(h.client, clock)
				h.acquire(p, 10)
				h.acquire(other, 90)
				clock.ahead.Store(-int64(test.back))
				for i := range 20 {
					if i == 1 && test.passes > 0 {
						time.Sleep(test.passes) //nolint:forbidigo // in a bubble
						h.acquire(other, 100)   // the refill since
					}
					if _, err := p.Acquire(h.t.Context(), "1", tokens{10}); !isA[*store.DeniedError](err) {
						t.Errorf("got %v", err)
					}
				}
				if n := p.count("refused"); !slices.Contains(test.refused, n) {
					t.Errorf("%d writes were refused, want one of %d", n, test.refused)
				}
			})
		})
	}
}
