package limittest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/internal/seal"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// deed is one of a history's.
type deed struct {
	what     string
	who      int   // of people; or which of the leases, counted around
	rpm, tpm int64 // what is asked, or used
	rps      int64
	ms       int64 // that pass
}

// people are few, and share a project.
var people = []limits.GPT4Entity{
	limits.User{ID: "1", Project: limits.Project{ID: "p"}},
	limits.User{ID: "2", Project: limits.Project{ID: "p"}}, limits.Project{ID: "p"},
}

func drawHistory(t *rapid.T) []deed {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) deed {
		return deed{
			what: rapid.SampledFrom([]string{"acquire", "acquire", "acquire", "both", "settle", "release",
				"pass"}).Draw(t, "what"),
			who: rapid.IntRange(0, 5).Draw(t, "who"),
			rpm: rapid.Int64Range(0, 60).Draw(t, "rpm"),
			tpm: rapid.SampledFrom([]int64{0, 1, 900, 4000, 9000, 15_000, 15_001, 140_000}).Draw(t, "tpm"),
			rps: rapid.SampledFrom([]int64{1, 7, 20, 21}).Draw(t, "rps"),
			ms:  rapid.SampledFrom([]int64{1, 400, 1000, 30_000, 1_000_000}).Draw(t, "ms"),
		}
	}), 5, 40).Draw(t, "deeds")
}

// hand is a clock that is moved by hand.
type hand struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) After(d time.Duration) <-chan time.Time {
	h.pass(d)
	over := make(chan time.Time)
	close(over)
	return over
}

func (h *hand) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// twin is a table, and a process whose calls of one history are in shadow, or not.
type twin struct {
	*limits.Limiter

	clock    *hand
	leases   []*limits.GPT4Lease // open ones; nil for those of calls that were refused
	shadowed int
}

// newTwin opens one; wrap makes of its store what is to be tested.
func newTwin(t testing.TB, wrap func(store.Store) store.Store, opts ...runtime.CallOption) *twin {
	t.Helper()
	w := &twin{clock: &hand{now: time.Unix(1_800_000_000, 0)}}
	lim, err := limits.New(wrap(limittest.Store(t, memdynamo.WithClock(w.clock))), runtime.WithClock(w.clock),
		runtime.WithCallDefaults(opts...))
	if err != nil {
		t.Fatal(err)
	}
	w.Limiter = lim
	return w
}

// do does d, and returns what came of it: how it was refused, or would have been, what that left, and what
// all buckets have.
func (w *twin) do(ctx context.Context, d deed) string {
	var err error
	cost := limits.GPT4Cost{RPM: d.rpm, TPM: d.tpm}
	left := limits.GPT4Cost{}
	keep := func(lease *limits.GPT4Lease) {
		if lease.Shadowed() != nil {
			err = lease.Shadowed()
			w.shadowed++
		} else {
			left = lease.Remaining()
		}
		w.leases = append(w.leases, lease)
	}
	switch d.what {
	case "acquire":
		var lease *limits.GPT4Lease
		lease, err = w.GPT4.Acquire(ctx, people[d.who%3], cost)
		keep(lease)
	case "both":
		one := w.GPT4.Claim(people[d.who%3], cost)
		err = w.AcquireAll(ctx, one, w.Embeddings.Claim(limits.Project{ID: "p"}, limits.EmbeddingsCost{RPS: d.rps}))
		keep(one.Lease())
	case "settle", "release":
		if len(w.leases) == 0 {
			break
		}
		at := d.who % len(w.leases)
		lease := w.leases[at]
		w.leases = append(w.leases[:at:at], w.leases[at+1:]...)
		switch {
		case lease == nil: // the call was refused
		case d.what == "settle":
			err = lease.Settle(ctx, cost)
		default:
			lease.Release(ctx)
		}
	case "pass":
		w.clock.pass(time.Duration(d.ms) * time.Millisecond)
	}
	said := fmt.Sprintf("%v, left %+v", err, left)
	for _, who := range people[:2] { // and the project with them
		snap, err := w.GPT4.Peek(ctx, who)
		said += fmt.Sprintf("; %+v, %v", snap, err)
	}
	snap, err := w.Embeddings.Peek(ctx, limits.Project{ID: "p"})
	return said + fmt.Sprintf("; %+v, %v", snap, err)
}

// differ plays history on a twin in shadow, of wrap's store, and on one that enforces, and returns the first
// step that they differ in.
func differ(t testing.TB, history []deed, wrap func(store.Store) store.Store) (difference string,
	shadowed int) {
	t.Helper()
	enforced := newTwin(t, func(s store.Store) store.Store { return s })
	shadow := newTwin(t, wrap, runtime.Shadow(true))
	for i, d := range history {
		if want, got := enforced.do(t.Context(), d), shadow.do(t.Context(), d); got != want {
			return fmt.Sprintf("step %d, %+v:\nin shadow %s\nwithout   %s", i, d, got, want), shadow.shadowed
		}
	}
	return "", shadow.shadowed
}

// TestShadowChargesAsItsTwin: whatever the history, a process in shadow charges what one that enforces does,
// and would refuse what that refuses, for the same reason.
func TestShadowChargesAsItsTwin(t *testing.T) {
	shadowed, played := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		difference, n := differ(t, drawHistory(rt), func(s store.Store) store.Store { return s })
		if difference != "" {
			rt.Fatal(difference)
		}
		shadowed, played = shadowed+n, played+1
	})
	// -short plays too few histories to expect one for each
	if shadowed == 0 || shadowed < played && !testing.Short() {
		t.Errorf("in %d histories %d calls were shadowed: this is no test", played, shadowed)
	}
}

// debtor is a store, and a session, that charges what it denies.
type debtor struct {
	store.Store
	store.Session
}

// Open implements store.Store.
func (d *debtor) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	session, err := d.Store.Open(env, defs...)
	return &debtor{Session: session}, err
}

// Sealed implements store.Store.
func (*debtor) Sealed(seal.Sealed) {}

// Acquire implements store.Session.
func (d *debtor) Acquire(ctx context.Context, call *store.Call) error {
	err := d.Session.Acquire(ctx, call)
	if _, denied := errors.AsType[*store.DeniedError](err); denied {
		deferred := store.Call{Called: call.Called, Parts: []store.Part{call.Parts[0]}}
		part := &deferred.Parts[0]
		part.Actual, part.Cost = part.Cost, make([]int64, len(part.Cost))
		if err := d.Settle(ctx, &deferred); err != nil {
			return err
		}
	}
	return err
}

// TestTwinsSeeWhatIsCharged: a shadow mode that charged what it spares would be seen.
func TestTwinsSeeWhatIsCharged(t *testing.T) {
	histories := rapid.Custom(drawHistory)
	for i := range 50 {
		difference, _ := differ(t, histories.Example(i),
			func(s store.Store) store.Store { return &debtor{Store: s} })
		if difference != "" {
			t.Logf("history %d: %s", i, difference)
			return
		}
	}
	t.Error("nobody has seen it")
}
