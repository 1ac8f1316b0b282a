package dynamo

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/internal/item"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// half is a bucket with half its rpm.
func half() row {
	return row{CV: 1, Op: "before", TTL: 180, Limits: holds(50_000, 50_000, 15_000_000, 0)}
}

// wired is a demonstration process behind a wire, which knows the half full bucket of user-1. At 0 it takes
// by retry, and at a second more than 50 by normal.
func wired(t *testing.T) (*engine, demo, *network) {
	t.Helper()
	e := newEngine(t)
	e.put(t, half().Item(t))
	client, w := e.withNetwork()
	process := e.demo(t, client)
	if _, err := process.GPT4.Peek(t.Context(), alice); err != nil {
		t.Fatal(err)
	}
	process.calls(t, "read found")
	return e, process, w
}

// charged holds user-1's rpm: what was charged on top of half's, and the balance that goes with it.
func (e *engine) charged(t *testing.T, want int64) {
	t.Helper()
	tk, tc := e.balance(t, "gpt-4", "rpm")
	item := e.get(t, item.BucketKey("user-1", "gpt-4"))
	fill := bucket.Refill(userRPM, t0, number(item["rf"]))
	if tc != 50_000+want || tk != 50_000+fill-want {
		t.Errorf("charged %d, leaving %d of %d; want %d", tc-50_000, tk, 50_000+fill, want)
	}
}

// TestChargedOnce lets each way in which a reply is lost befall each path of a charge: the caller is
// admitted, and the bucket charged once.
func TestChargedOnce(t *testing.T) {
	for path, cost := range map[string]int64{"retry": 10, "normal": 51} {
		for name, test := range map[string]struct {
			mishap mishap
			calls  []string
		}{
			"lost reply":   {loseReply, []string{" unknown", " refused"}},
			"cut reply":    {cutReply, []string{" unknown", " refused"}},
			"lost request": {loseRequest, []string{" unknown", " applied"}},
			"500":          {fail500, []string{" unknown", " refused"}},
			"502":          {proxy502, []string{" unknown", " refused"}},
			"duplicate":    {duplicate, []string{" refused"}},
			"throttled": {
				reject("ProvisionedThroughputExceededException", "slow down"),
				[]string{" throttled", " applied"},
			},
			"throttled another way": {reject("ThrottlingException", "slow down"), []string{" throttled", " applied"}},
			"an account's limit":    {reject("RequestLimitExceeded", "slow down"), []string{" throttled", " applied"}},
		} {
			t.Run(path+"/"+name, func(t *testing.T) {
				e, process, w := wired(t)
				e.clock.set(1000)
				w.expect(test.mishap)
				lease, err := process.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: cost})
				if err != nil {
					t.Fatal(err)
				}
				var calls []string
				for _, outcome := range test.calls {
					calls = append(calls, path+outcome)
				}
				process.calls(t, calls...)
				w.writes(t, len(calls))
				e.charged(t, cost*bucket.Milli)
				if got := lease.Remaining().RPM; got != 51-cost {
					t.Errorf("remaining %d, want %d", got, 51-cost)
				}
			})
		}
	}
}

// TestCreatedOnce is the same for a bucket's creation, whose repetition begins with a read.
func TestCreatedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		mishap mishap
		calls  []string
	}{
		"lost reply":   {loseReply, []string{"read missing", "create unknown", "read found"}},
		"lost request": {loseRequest, []string{"read missing", "create unknown", "read missing", "create applied"}},
		"duplicate":    {duplicate, []string{"read missing", "create refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			client, w := e.withNetwork(test.mishap)
			s := script{t, e, e.demo(t, client)}
			s.acquire(10, 100)
			s.demo.calls(t, test.calls...)
			e.stored(t, row{CV: 1, TTL: 180, Limits: holds(90_000, 10_000, 14_900_000, 100_000)})
			s.acquire(10, 100) // and the image is right
			if n := len(w.mishaps); n > 0 {
				t.Error("the mishap did not happen")
			}
			e.stored(t, row{CV: 1, TTL: 180, Limits: holds(80_000, 20_000, 14_800_000, 200_000)})
		})
	}
}

// TestReshapedOnce is the same for a reshape, with its cost and bare.
func TestReshapedOnce(t *testing.T) {
	gpt4, _ := generated(t)
	for name, cost := range map[string]int64{"with its cost": 10, "bare": 60} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			e.put(t, half().Item(t))
			client, _ := e.withNetwork(loseReply)
			d := e.desk(t, client, withNumbers(gpt4, 2, userRPM, userTPM))
			_, err := d.Acquire(t.Context(), "1", tokens{cost, 0})
			d.calls(
				t,
				"read found",
				"reshape unknown",
				"reshape refused",
			) // whose image shows that it had been applied
			want := half()
			want.CV = 2
			if cost == 60 {
				if !isA[*store.DeniedError](err) {
					t.Errorf("got %v, want a denial", err)
				}
			} else {
				want.Limits = holds(40_000, 60_000, 15_000_000, 0)
				if err != nil {
					t.Error(err)
				}
			}
			want.Op = ""
			e.stored(t, want)
		})
	}
}

// TestLateCopy lets a request arrive after all, once its repetition has been applied: it is refused.
func TestLateCopy(t *testing.T) {
	for path, cost := range map[string]int64{"retry": 10, "normal": 51} {
		t.Run(path, func(t *testing.T) {
			e, process, w := wired(t)
			e.clock.set(1000)
			w.expect(delay)
			if _, err := process.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: cost}); err != nil {
				t.Fatal(err)
			}
			if codes := w.arrive(t); !slices.Equal(codes, []int{http.StatusBadRequest}) {
				t.Errorf("the late copy was answered %v, want it refused", codes)
			}
			process.calls(t, path+" unknown", path+" applied")
			e.charged(t, cost*bucket.Milli)
		})
	}
}

// TestOthersBetween has another process write between a charge without reply and its repetition, which then
// cannot tell and charges again: the bucket is charged too much, never too little.
func TestOthersBetween(t *testing.T) {
	e, process, w := wired(t)
	other := e.demo(t, e.client)
	w.expect(then(func() {
		if _, err := other.GPT4.Acquire(context.Background(), alice, limits.GPT4Cost{RPM: 1}); err != nil {
			t.Error(err)
		}
	}, loseReply))
	if _, err := process.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: 10}); err != nil {
		t.Fatal(err)
	}
	process.calls(t, "retry unknown", "retry applied")
	e.charged(t, 21_000)
}

// TestSettledUpOnce charges the difference once, whatever happens to the reply.
func TestSettledUpOnce(t *testing.T) {
	for name, test := range map[string]struct {
		mishap mishap
		calls  []string
	}{
		"lost reply":   {loseReply, []string{"settle unknown", "settle refused"}},
		"lost request": {loseRequest, []string{"settle unknown", "settle applied"}},
		"duplicate":    {duplicate, []string{"settle refused"}},
		"throttled": {reject("ProvisionedThroughputExceededException", ""),
			[]string{"settle throttled", "settle applied"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, process, w := wired(t)
			s := script{t, e, process}
			lease := s.acquire(10, 0)
			process.calls(t, "retry applied")
			w.expect(test.mishap)
			s.settle(lease, 90, 0)
			process.calls(t, test.calls...)
			e.charged(t, 90_000)
		})
	}
}

// TestGivenBackAtMostOnce: a release, a settle down, and a settle that gives anything back are not sent again
// when their outcome is unknown, and say so. Writes known not to have been applied are sent again.
func TestGivenBackAtMostOnce(t *testing.T) {
	down := func(ctx context.Context, l *limits.GPT4Lease) error {
		return l.Settle(ctx, limits.GPT4Cost{RPM: 4, TPM: 1000})
	}
	mixed := func(ctx context.Context, l *limits.GPT4Lease) error {
		return l.Settle(ctx, limits.GPT4Cost{RPM: 4, TPM: 3000})
	}
	release := func(ctx context.Context, l *limits.GPT4Lease) error { l.Release(ctx); return nil }
	const kept = 10_000
	for name, test := range map[string]struct {
		do      func(context.Context, *limits.GPT4Lease) error
		mishap  mishap
		writes  int
		fails   bool
		charged int64 // of rpm, in the end
	}{
		"release, lost reply":       {release, loseReply, 1, true, 0},
		"release, lost request":     {release, loseRequest, 1, true, kept},
		"release, 500":              {release, fail500, 1, true, 0},
		"release, throttled":        {release, reject("ThrottlingException", ""), 2, false, 0},
		"release, duplicate":        {release, duplicate, 1, false, 0},
		"settle down, lost reply":   {down, loseReply, 1, true, 4000},
		"settle down, lost request": {down, loseRequest, 1, true, kept},
		"settle down, throttled":    {down, reject("RequestLimitExceeded", ""), 2, false, 4000},
		"mixed, lost reply":         {mixed, loseReply, 1, true, 4000},
		"mixed, lost request":       {mixed, loseRequest, 1, true, kept},
		"mixed, duplicate":          {mixed, duplicate, 1, false, 4000},
	} {
		t.Run(name, func(t *testing.T) {
			e, process, w := wired(t)
			lease := script{t, e, process}.acquire(10, 2000)
			w.expect(test.mishap)
			err := test.do(t.Context(), lease)
			w.writes(t, test.writes)
			e.charged(t, test.charged)
			var reported error
			if len(process.Failures) > 0 {
				reported = process.Failures[0]
			}
			if !test.fails {
				if err != nil || reported != nil {
					t.Errorf("returned %v, observed %v; want neither", err, reported)
				}
				return
			}
			failure, ok := errors.AsType[*store.UnavailableError](reported)
			if !ok || failure.Attempts != 1 {
				t.Errorf("observed %v, want an UnavailableError after 1 attempt", reported)
			}
			if silent := strings.HasPrefix(name, "release"); !silent && !errors.Is(err, reported) ||
				silent && err != nil {
				t.Errorf("returned %v, observed %v", err, reported)
			}
		})
	}
}

// TestCopiesOfAGiveBack shows what a repeated give-back would do once others have written, if it were not
// guarded: it mints tokens. This is why it is never sent again, and what the checks above would see.
func TestCopiesOfAGiveBack(t *testing.T) {
	e, _, _ := wired(t)
	client, w := e.withNetwork()
	s := script{t, e, e.demo(t, unguarded{client})}
	lease := s.acquire(10, 0)
	w.expect(keep)
	lease.Release(t.Context())
	e.charged(t, 0)
	w.arrive(t) // op is still its own
	e.charged(t, 0)
	s.acquire(1, 0)
	w.arrive(t)
	e.charged(t, 1000-10_000)
}

// TestAbandonedCaller: a caller who gives up while the outcome is unknown has its charge given back, by one
// write that applies only where the charge was the last.
func TestAbandonedCaller(t *testing.T) {
	for name, test := range map[string]struct {
		reply   mishap // of the charge, whose caller is gone then
		between int64  // taken by another process
		calls   []string
		charged int64
	}{
		"lost reply":             {loseReply, 0, []string{"retry unknown", "undo applied"}, 0},
		"lost request":           {loseRequest, 0, []string{"retry unknown", "undo refused"}, 0},
		"another one in between": {loseReply, 1, []string{"retry unknown", "undo refused"}, 11_000},
	} {
		t.Run(name, func(t *testing.T) {
			e, process, w := wired(t)
			other := script{t, e, e.demo(t, e.client)}
			e.clock.set(1000)
			ctx, cancel := context.WithCancel(t.Context())
			w.expect(func(w *network, apply func() (*http.Response, error)) (*http.Response, error) {
				defer cancel()
				_, err := test.reply(w, apply)
				if test.between > 0 {
					other.acquire(test.between, 0)
				}
				return nil, err
			})
			_, err := process.GPT4.Acquire(ctx, alice, limits.GPT4Cost{RPM: 10})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			wantErr(t, err, "context canceled gpt-4 user-1")
			if err := process.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			process.calls(t, test.calls...)
			w.writes(t, 2)
			e.charged(t, test.charged)
		})
	}
}

// TestAbandonedCallerGeneric is the same on a bucket where a limit is missing: its expressions are built from
// the item.
func TestAbandonedCallerGeneric(t *testing.T) {
	gpt4, _ := generated(t)
	e := newEngine(t)
	left := map[string]bucket.Balance{"rpm": {Limit: userRPM, Tokens: 50_000, Consumed: 50_000}}
	e.put(t, row{CV: 3, Op: "before", Limits: left}.Item(t))
	client, w := e.withNetwork()
	d := e.desk(t, client, withNumbers(gpt4, 2, userRPM, userTPM))
	ctx, cancel := context.WithCancel(t.Context())
	w.expect(then(cancel, loseReply))
	if _, err := d.Acquire(ctx, "1", tokens{10, 500}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.calls(t, "read found", "generic retry unknown", "generic undo applied")
	e.charged(t, 0)
}

// TestCloseWaits shows that Close waits for a charge that is being given back, and that the context it is
// given ends that.
func TestCloseWaits(t *testing.T) {
	e, process, w := wired(t)
	ctx, cancel := context.WithCancel(t.Context())
	arrived, goOn := make(chan struct{}), make(chan struct{})
	w.expect(
		then(cancel, loseReply),
		func(_ *network, apply func() (*http.Response, error)) (*http.Response, error) {
			close(arrived)
			<-goOn
			return apply()
		},
	)
	if _, err := process.GPT4.Acquire(ctx, alice, limits.GPT4Cost{RPM: 10}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	<-arrived
	if err := process.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Close with a context that is over: %v", err)
	}
	e.charged(t, 10_000)
	close(goOn)
	if err := process.Close(t.Context()); err != nil {
		t.Error(err)
	}
	e.charged(t, 0)
}

// TestReverseChargeGoesAgain until its outcome is known: it applies to the charge's op alone, and so once.
func TestReverseChargeGoesAgain(t *testing.T) {
	for name, test := range map[string]struct {
		mishap  mishap
		writes  int
		charged int64
	}{
		"lost reply":   {loseReply, 3, 0},
		"lost request": {loseRequest, 3, 0},
		"throttled":    {reject("ThrottlingException", ""), 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e, process, w := wired(t)
			ctx, cancel := context.WithCancel(t.Context())
			w.expect(then(cancel, loseReply), test.mishap)
			if _, err := process.GPT4.Acquire(ctx, alice, limits.GPT4Cost{RPM: 10}); !errors.Is(
				err,
				context.Canceled,
			) {
				t.Errorf("got %v, want context.Canceled", err)
			}
			if err := process.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.writes(t, test.writes)
			e.charged(t, test.charged)
		})
	}
}

// TestAbandonedCallerOfOtherPaths gives back what a create, a normal and a reshape charged, of limits that
// the reshape added as well.
func TestAbandonedCallerOfOtherPaths(t *testing.T) {
	gpt4, _ := generated(t)
	withoutTPM := half()
	delete(withoutTPM.Limits, "tpm")
	for name, test := range map[string]struct {
		before *row
		cost   tokens
		calls  []string
		after  row
	}{
		"create": {
			cost:  tokens{10, 500},
			calls: []string{"read missing", "create unknown", "undo applied"},
			after: row{RF: 1000, CV: 2, TTL: 181, Limits: holds(100_000, 0, 15_000_000, 0)},
		},
		"normal": {
			before: &row{CV: 2, Op: "before", Limits: half().Limits},
			cost:   tokens{51, 500},
			calls:  []string{"read found", "normal unknown", "undo applied"},
			after:  row{RF: 1000, CV: 2, TTL: 181, Limits: holds(51_666, 50_000, 15_000_000, 0)},
		},
		"reshape": {
			before: &withoutTPM,
			cost:   tokens{10, 500},
			calls:  []string{"read found", "reshape unknown", "undo applied"},
			after:  row{RF: 1000, CV: 2, TTL: 181, Limits: holds(51_666, 50_000, 15_000_000, 0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			if test.before != nil {
				e.put(t, test.before.Item(t))
			}
			e.clock.set(1000)
			ctx, cancel := context.WithCancel(t.Context())
			client, _ := e.withNetwork(then(cancel, loseReply))
			d := e.desk(t, client, withNumbers(gpt4, 2, userRPM, userTPM))
			if _, err := d.Acquire(ctx, "1", test.cost); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", err)
			}
			if err := d.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			d.calls(t, test.calls...)
			e.stored(t, test.after)
		})
	}
}
