package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// busy is what a store returns if this process had no time to send the call.
func busy() *runtime.UnavailableError {
	return &runtime.UnavailableError{
		Resource: "gpt-4", Err: fmt.Errorf("%w: %w", store.ErrNotSent, context.DeadlineExceeded),
	}
}

// TestAllowNeedsSilence: Allow admits without a record only if the store has answered nothing for two
// seconds, and no probe is under way.
func TestAllowNeedsSilence(t *testing.T) {
	throttled := down()
	throttled.Throttled = true
	for _, test := range []struct {
		name       string
		before     error // of calls before
		calls      int
		after      time.Duration // since then
		err        error
		unrecorded bool
	}{
		{"never answered", nil, 0, 0, down(), true},
		{"just answered", nil, 1, 2*time.Second - 1, down(), false},
		{"just denied", &runtime.DeniedError{}, 1, 2*time.Second - 1, down(), false},
		{"just contended", &runtime.ContendedError{}, 1, 2*time.Second - 1, down(), false},
		{"just throttled", throttled, 1, 2*time.Second - 1, down(), false},
		{"answered two seconds ago", nil, 1, 2*time.Second + 1, down(), true},
		{"throttled", nil, 1, time.Hour, throttled, false},
		{"not sent", nil, 1, time.Hour, busy(), false},
		{"open", down(), 5, time.Second - 1, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend := &outages{fake: &fake{}}
				_, r := openOn(t, backend, runtime.Allow)
				backend.fail(test.before)
				for range test.calls {
					_, _ = r.Acquire(t.Context(), user{"2"}, cost{})
				}
				elapse(test.after)
				backend.fail(test.err)
				lease := acquire(t, r, user{"1"}, cost{})
				equal(t, "degraded", lease.Degraded(), true)
				equal(t, "unrecorded", runtime.Unrecorded(lease), test.unrecorded)
			})
		})
	}
}

// TestAllowWaitsForProbes: while calls find out whether the store is back, Allow decides as Local.
func TestAllowWaitsForProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &outages{fake: &fake{}}
		_, r := openOn(t, backend, runtime.Allow)
		backend.fail(down())
		for range 5 {
			equal(t, "closed: unrecorded", runtime.Unrecorded(acquire(t, r, user{"1"}, cost{})), true)
		}
		equal(t, "open: unrecorded", runtime.Unrecorded(acquire(t, r, user{"1"}, cost{})), true)
		elapse(time.Second)
		answer := make(chan error)
		backend.hook(func(context.Context, string, *store.Call) error { return <-answer })
		probes := make(chan *runtime.Lease[cost])
		for range 4 {
			go func() {
				lease, _ := r.Acquire(t.Context(), user{"1"}, cost{})
				probes <- lease
			}()
		}
		synctest.Wait()
		equal(t, "half-open: unrecorded", runtime.Unrecorded(acquire(t, r, user{"1"}, cost{})), false)
		for n := range 4 {
			answer <- down()
			equal(t, fmt.Sprintf("probe %d: unrecorded", n+1), runtime.Unrecorded(<-probes), n == 3)
		}
		equal(t, "open again: unrecorded", runtime.Unrecorded(acquire(t, r, user{"1"}, cost{})), true)
	})
}

// TestAllowNeverOutrunsAnswers: in no history of answers, failures and silence does Allow admit without a
// record within two seconds of an answer. Its control forgets each answer.
func TestAllowNeverOutrunsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sum, wrong := 0, 0
		for seed := range uint64(300) {
			unrecorded, early := outrun(t, seed, false)
			equal(t, fmt.Sprintf("seed %d: unrecorded within two seconds of an answer", seed), early, 0)
			sum += unrecorded
			_, early = outrun(t, seed, true)
			wrong += early
		}
		if sum < 1000 || wrong < 1000 {
			t.Errorf("%d calls were admitted without a record; the control admitted %d too early", sum, wrong)
		}
	})
}

// outrun sends calls through phases in which the store does one thing. It counts the calls that were admitted
// without a record, and those among them that ended within two seconds of an answer.
func outrun(t *testing.T, seed uint64, forgetful bool) (unrecorded, early int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 2))
	throttled := down()
	throttled.Throttled = true
	phases := []struct {
		err     error
		answers bool
	}{
		{nil, true}, {throttled, true}, {&runtime.ContendedError{}, true},
		{down(), false}, {down(), false}, {busy(), false},
	}
	backend := &outages{fake: &fake{}}
	lim, r := openOn(t, backend, runtime.Allow)
	answered := time.Time{}
	for range 30 {
		phase := phases[random.IntN(len(phases))]
		backend.hook(func(context.Context, string, *store.Call) error {
			elapse(time.Duration(random.IntN(100)) * time.Millisecond)
			if phase.answers {
				answered = time.Now()
			}
			return phase.err
		})
		for range random.IntN(12) {
			if forgetful {
				runtime.InvalidateAnswers(lim)
			}
			lease, err := r.Acquire(t.Context(), user{"1"}, cost{})
			if err == nil && runtime.Unrecorded(lease) {
				unrecorded++
				if time.Since(answered) < 2*time.Second {
					early++
				}
			}
			elapse(time.Duration(random.IntN(300)) * time.Millisecond)
		}
	}
	return unrecorded, early
}

// TestCrowdOfNewEntities: 1,000 invented users of one project, none of whose calls is answered, get what the
// project's bucket in this process has. Its control is a store that is silent: Allow admits them all.
func TestCrowdOfNewEntities(t *testing.T) {
	throttled := down()
	throttled.Throttled = true
	for _, test := range []struct {
		name     string
		err      error
		answers  bool  // to others, just before
		known    int64 // tokens of the project; 0 if its bucket was never seen
		admitted int   // at 100 tokens each
	}{
		{"throttled", throttled, false, 500, 5},
		{"throttled, project not seen", throttled, false, 0, 60},
		{"not sent", busy(), false, 500, 5},
		{"timed out, others are answered", down(), true, 500, 5},
		{"silent", down(), false, 500, 1000},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend := &outages{fake: &fake{}}
				_, r := openOn(t, backend, runtime.Allow)
				if test.known > 0 {
					balances := bucket.Full(gpt4().spec.Kinds[1].Limits)
					balances[1].Tokens = test.known * bucket.Milli
					backend.buckets["project-9"] = &bucket.Image{Refilled: time.Now().UnixMilli(), Balances: balances,
						Missing: make([]bool, 2)}
				}
				if test.answers {
					acquire(t, r, user{"1"}, cost{})
				}
				backend.fail(test.err)
				ended := make(chan error)
				for i := range 1000 {
					go func() {
						_, err := r.Acquire(t.Context(), member{fmt.Sprint("invented", i), "9"}, cost{TPM: 100})
						ended <- err
					}()
				}
				admitted := 0
				for range 1000 {
					err := <-ended
					if denied, ok := errors.AsType[*runtime.DeniedError](err); ok {
						equal(t, "denied by", denied.Entity, "project-9")
					} else if check(t, err, ""); err == nil {
						admitted++
					}
				}
				equal(t, "admitted", admitted, test.admitted)
			})
		})
	}
}
