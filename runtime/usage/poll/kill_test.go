package poll_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluice-go/sluice/internal/test/longform"
)

// death is how a Poller ends in the middle of a call.
type death string

const (
	unsent    death = "before the call"
	unheard   death = "before its reply"
	cancelled death = "ctx ends before the call" // what is called later is done, if its own context lasts
)

var errKilled = errors.New("killed")

// mortal has p die at its nth call. dead tells whether it did.
func mortal(p *tap, how death, nth int, cancel context.CancelFunc) (dead func() bool) {
	var mu sync.Mutex
	died := false
	die := func(c call) bool {
		mu.Lock()
		defer mu.Unlock()
		died = died || c.number >= nth
		if died {
			cancel()
		}
		return died
	}
	more := p.after
	p.before = func(ctx context.Context, c call) error {
		small(c)
		switch {
		case how == unsent && die(c), how == unheard && c.number > nth && die(c): // the client sees an error reply
			return errKilled
		case how == cancelled && die(c):
			return ctx.Err() // as the SDK does
		}
		return nil
	}
	p.after = func(ctx context.Context, c call) error {
		if how == unheard && die(c) {
			return errKilled
		}
		if more != nil {
			return more(ctx, c)
		}
		return nil
	}
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		return died
	}
}

// killings has Pollers die at their first call, the next ones at the second, and so on, while the table is
// used and shards are split, until one gets through. It returns what the table has in the end.
func killings(t *testing.T, seed uint64, how death, change func(*world, *tap)) (sums totals, deaths int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dice := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		for {
			for range 4 + dice.IntN(12) {
				w.consume(dice.IntN(6), 1+dice.IntN(3000))
			}
			if dice.IntN(12) == 0 && len(w.checkpoints()) < 12 {
				w.split()
			}
			later(time.Duration(dice.IntN(120)) * time.Minute / 60)
			p := w.tap()
			if change != nil {
				change(w, p)
			}
			ctx, cancel := context.WithCancel(t.Context())
			dead := mortal(p, how, deaths+1, cancel)
			err := w.poller(p).Drain(ctx)
			cancel()
			if !dead() {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("death %d: got %v", deaths+1, err)
			}
			deaths++
		}
		sums = w.totals()
	})
	return sums, deaths
}

// TestKilled: wherever a Poller ends, nothing is lost and nothing is counted twice.
func TestKilled(t *testing.T) {
	seeds := longform.Count[uint64](t, "histories of each way to end", 2, 1)
	ways := []death{unheard, unsent, cancelled}
	for _, how := range ways[:longform.Histories(t, "ways to end", len(ways), len(ways))] {
		for seed := range seeds {
			sums, deaths := killings(t, seed, how, nil)
			if wrong := sums.wrong(); wrong != "" {
				t.Errorf("killed %s, seed %d: %s", how, seed, wrong)
			}
			if deaths < 15 {
				t.Errorf("killed %s, seed %d: only %d deaths", how, seed, deaths)
			}
		}
	}
}

// TestKilledControl: a Poller that writes its checkpoint before it counts loses, and counts nothing twice.
func TestKilledControl(t *testing.T) {
	longform.Control(t)
	for _, how := range []death{unsent, unheard} {
		var sums totals
		for seed := uint64(100); seed < 104 && sums.wrong() == ""; seed++ {
			sums, _ = killings(t, seed, how, func(w *world, p *tap) { p.after = w.eager(p, ofBuckets) })
		}
		if !sums.lose() {
			t.Errorf("killed %s: want windows that have less, and none that has more, got %q", how, sums.wrong())
		}
	}
}

// TestLastCheckpoint: a Poller that is told to end leaves nothing to be read again of what it counted.
func TestLastCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		for n := range 50 {
			w.consume(n%3, 10)
		}
		p := w.tap()
		p.before = func(ctx context.Context, c call) error {
			switch small(c); {
			case c.operation == "PutItem" && ctx.Err() == nil: // the first checkpoint
				cancel()
				return ctx.Err()
			default:
				return nil
			}
		}
		if err := w.poller(p).Drain(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		first := w.progress().Counted
		kept := w.checkpoints()
		if first != 7 || len(kept) != 1 {
			t.Fatalf("%d counted, and %d checkpoints", first, len(kept))
		}
		w.drain(w.tap())
		if got := w.progress(); got.Counted != 50-first {
			t.Errorf("%d records counted after %d of 50", got.Counted, first)
		}
		w.exact()
	})
}

// TestTwo: two Pollers at once count what one does, and a checkpoint never moves back.
func TestTwo(t *testing.T) {
	for seed := range longform.Count[uint64](t, "histories of two readers", 3, 1) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 2))
			w := newWorld(t)
			var stops []func() error
			for i := range 2 {
				p := w.tap()
				p.before = func(_ context.Context, c call) error {
					if _, reads := c.in.(*dynamodbstreams.GetRecordsInput); reads && i == 1 {
						later(40 * time.Second) // far behind the other
					}
					small(c)
					return nil
				}
				stops = append(stops, w.run(p))
			}
			furthest := map[string]string{}
			for range 40 {
				for range dice.IntN(10) {
					w.consume(dice.IntN(5), 1+dice.IntN(100))
				}
				if dice.IntN(15) == 0 {
					w.split()
				}
				later(time.Duration(dice.IntN(20)) * time.Second)
				for shard, item := range w.checkpoints() {
					if at := text(item["sequence"]) + text(item["done"]); at < furthest[shard] {
						t.Errorf("the checkpoint of %s moved from %s to %s", shard, furthest[shard], at)
					} else {
						furthest[shard] = at
					}
				}
			}
			later(20 * time.Minute)
			w.exact()
			for _, stop := range stops {
				if err := stop(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
