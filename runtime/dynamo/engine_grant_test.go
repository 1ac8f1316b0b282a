package dynamo

import (
	"net/http"
	"slices"
	"testing"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// raised returns a table with a bucket of 50 tokens, of which 10 are used, whose quota was raised to 300, and
// its sync. The bucket has taken the quota on.
func raised(t *testing.T) (*engine, sync1) {
	t.Helper()
	def := global(t)
	e := newEngine(t)
	s := e.sync(t, def)
	s.alive(1)
	d := e.desk(t, e.client, def)
	if _, err := d.Acquire(t.Context(), user("1"), tokens{9}); err != nil {
		t.Fatal(err)
	}
	s.gives(1, "user-1", 300)
	e.clock.set(window)
	if _, err := d.Acquire(t.Context(), user("1"), tokens{1}); err != nil {
		t.Fatal(err)
	}
	return e, s
}

// TestGrant: a raise adds no tokens, and a grant does, to a bucket that has taken the raise on. It is in the
// balance at once, for processes with an older image too. It costs a write unit and a consistent read.
func TestGrant(t *testing.T) {
	e, s := raised(t)
	d := e.desk(t, e.client, global(t))
	if n := drainOf(t, d, "1"); n != 40 {
		t.Errorf("%d admitted without a grant, want what is left of 50", n)
	}
	quota := []bucket.Limit{daily.Quota(300)}
	m := newMeter(t, e.client)
	r := sync1{e.regional(m, 0), t, e, s.spec}
	ok, err := r.Grant(t.Context(), s.spec, "user-1", quota, []int64{250_000})
	want := usage{Calls: 2, Reads: 1, Writes: 1, Units: 1 + 1}
	if got := m.take(); !ok || err != nil || got != want {
		t.Errorf("%v, %v, cost %+v, want %+v", ok, err, got, want)
	}
	e.clock.set(window + 2000) // denials by the cache are over
	if n := drainOf(t, d, "1"); n != 250 {
		t.Errorf("%d admitted, want 250 granted", n)
	}

	for name, test := range map[string]struct {
		entity string
		limit  bucket.Limit
	}{
		"another quota": {"user-1", daily.Quota(299)},
		"no bucket":     {"user-2", quota[0]},
	} {
		ok, err := r.Grant(t.Context(), s.spec, test.entity, []bucket.Limit{test.limit}, []int64{1000})
		if ok || err != nil {
			t.Errorf("%s: %v, %v; want nothing granted", name, ok, err)
		}
	}
}

// TestGrantOnce lets mishaps befall a grant: it is added once, and reported so. A copy that arrives late adds
// nothing.
func TestGrantOnce(t *testing.T) {
	throttle := reject("ProvisionedThroughputExceededException", "slow down")
	for name, mishaps := range map[string][]mishap{
		"lost reply": {loseReply}, "lost request": {loseRequest}, "500": {fail500},
		"throttled": {throttle, throttle}, "delayed": {delay}, "kept": {keep},
		"all of it": {throttle, loseRequest, loseReply, fail500},
	} {
		t.Run(name, func(t *testing.T) {
			e, s := raised(t)
			client, w := e.withNetwork(mishaps...)
			before, _ := e.balance(t, "embeddings", "rps")
			ok, err := e.regional(client, 0).Grant(t.Context(), s.spec, "user-1",
				[]bucket.Limit{daily.Quota(300)}, []int64{250_000})
			if !ok || err != nil || len(w.mishaps) > 0 {
				t.Errorf("%v, %v, with %d mishaps left", ok, err, len(w.mishaps))
			}
			if codes := w.arrive(t); len(codes) > 0 && !slices.Equal(codes, []int{http.StatusBadRequest}) {
				t.Errorf("the late copy was answered %v, want it refused", codes)
			}
			if after, _ := e.balance(t, "embeddings", "rps"); after-before != 250_000 {
				t.Errorf("%d millitokens were added, want 250,000", after-before)
			}
		})
	}
}

// TestGrantUnsure: a grant of unknown outcome is not tried again once another write has replaced its op. It
// counts as added.
func TestGrantUnsure(t *testing.T) {
	e, s := raised(t)
	d := e.desk(t, e.client, global(t))
	another := func() {
		if _, err := d.Acquire(t.Context(), user("1"), tokens{1}); err != nil {
			t.Error(err)
		}
	}
	client, _ := e.withNetwork(then(another, loseReply))
	before, _ := e.balance(t, "embeddings", "rps")
	ok, err := e.regional(client, 0).Grant(t.Context(), s.spec, "user-1",
		[]bucket.Limit{daily.Quota(300)}, []int64{250_000})
	if !ok || !isA[*store.ContendedError](err) {
		t.Errorf("%v, %v; want it to count as added, and an error", ok, err)
	}
	if after, _ := e.balance(t, "embeddings", "rps"); after-before != 249_000 {
		t.Errorf("%d millitokens more, want 250,000 less the charge", after-before)
	}
}
