package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// member is a user with its project, both charged.
type member struct{ ID, Project string }

func (m member) Chain(dst []store.Link) []store.Link {
	return append(dst, store.Link{Kind: 0, ID: m.ID}, store.Link{Kind: 1, ID: m.Project})
}
func (member) gpt4() {}

// here returns what the bucket in this process holds, in whole tokens as of its last charge.
func here(lim *runtime.Limiter, entity string) cost {
	img := runtime.LocalImage(lim, "gpt-4", entity)
	if img == nil {
		return cost{}
	}
	return cost{img.Balances[0].Tokens / bucket.Milli, img.Balances[1].Tokens / bucket.Milli}
}

// TestLocalStarts from the last image and the parameters in force, or full.
func TestLocalStarts(t *testing.T) {
	image := func(rpm, tpm int64) *bucket.Image {
		balances := bucket.Full([]bucket.Limit{bucket.Per(60, time.Minute), bucket.Per(6000, time.Minute)})
		balances[0].Tokens, balances[1].Tokens = rpm*bucket.Milli, tpm*bucket.Milli
		return &bucket.Image{Balances: balances, Missing: make([]bool, 2)}
	}
	partial := image(10, 0)
	partial.Missing[1], partial.Balances[1] = true, bucket.Balance{}
	lowered := []bucket.Limit{bucket.Per(5, time.Minute), bucket.Per(12_000, time.Minute)}
	raised := image(10, 100)
	raised.Balances[0].Limit = bucket.Per(120, time.Minute)
	for _, test := range []struct {
		name   string
		seen   *bucket.Image
		limits []bucket.Limit
		left   cost // two seconds after seen, less one request
	}{
		{"nothing seen", nil, nil, cost{59, 6000}},
		{"nothing seen, overridden", nil, lowered, cost{4, 12_000}},
		{"an image", image(10, 100), nil, cost{11, 300}},
		{"in debt", image(10, -500), nil, cost{11, -300}},
		{"above its burst", image(70, 7000), nil, cost{59, 6000}},
		{"with parameters of its own", raised, nil, cost{13, 300}},
		{"with other parameters now", image(10, 100), lowered, cost{4, 300}},
		{"without a limit", partial, nil, cost{11, 6000}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &outages{fake: &fake{}, limits: test.limits}
				lim, r := openOn(t, store, runtime.Local)
				if test.seen != nil {
					test.seen.Refilled = time.Now().UnixMilli()
					store.buckets["user-1"] = test.seen
				}
				elapse(2 * time.Second)
				store.fail(down())
				lease := acquire(t, r, user{"1"}, cost{})
				equal(t, "left", here(lim, "user-1"), test.left)
				equal(t, "remaining", lease.Remaining(), cost{max(0, test.left.RPM), max(0, test.left.TPM)})
				equal(t, "degraded", lease.Degraded(), true)
			})
		})
	}
}

// TestLocalLease settles and releases on the bucket in this process, into debt too.
func TestLocalLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &outages{fake: &fake{}}
		lim, r := openOn(t, store, runtime.Local)
		store.fail(down())
		lease := acquire(t, r, user{"1"}, cost{TPM: 5000})
		equal(t, "acquired", here(lim, "user-1"), cost{59, 1000})
		check(t, lease.Settle(t.Context(), cost{TPM: 7500}), "")
		equal(t, "settled up", here(lim, "user-1"), cost{59, -1500})
		_, err := r.Acquire(t.Context(), user{"1"}, cost{TPM: 500})
		check(t, err, "denied gpt-4 user-1 tpm 0/500 20s")
		elapse(20 * time.Second)
		other := acquire(t, r, user{"1"}, cost{TPM: 500})
		equal(t, "remaining", other.Remaining(), cost{59, 0})
		other.Release(t.Context())
		equal(t, "released", other.Remaining(), cost{60, 500})
		_, err = r.Acquire(t.Context(), user{"1"}, cost{TPM: 6001})
		check(t, err, "exceeds burst gpt-4 user-1 tpm 6001/6000")
		equal(t, "settles of the store", slices.Contains(store.calls, "settle user-1"), false)
	})
}

// TestLocalEnds with the first call that the store decides on once what was taken here is refilled, and not
// before.
func TestLocalEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		ends bool
	}{
		{"admitted", nil, true},
		{"denied", &runtime.DeniedError{}, true},
		{"contended", &runtime.ContendedError{}, true},
		{"down", down(), false},
		{"setup", &runtime.SetupError{What: "no table"}, false},
		{"above the burst", &runtime.CostTooLargeError{}, false}, // which takes no look at the bucket
		{"invalid", &runtime.InvalidError{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &outages{fake: &fake{}}
				lim, r := openOn(t, store, runtime.Local)
				store.fail(down())
				lease, others := acquire(t, r, user{"1"}, cost{TPM: 5000}), acquire(t, r, user{"2"}, cost{TPM: 5000})
				elapse(time.Minute)
				store.fail(test.err)
				_, _ = r.Acquire(t.Context(), user{"1"}, cost{TPM: 1}, runtime.OnUnavailable(runtime.Deny))
				equal(t, "ended", runtime.LocalImage(lim, "gpt-4", "user-1") == nil, test.ends)
				equal(t, "another's", here(lim, "user-2"), cost{59, 1000})

				// The charge of a bucket that has ended is not given back to the next.
				store.fail(down())
				acquire(t, r, user{"1"}, cost{TPM: 500})
				before := here(lim, "user-1")
				lease.Release(t.Context())
				after := here(lim, "user-1")
				equal(t, "given back", after.TPM-before.TPM, map[bool]int64{true: 0, false: 5000}[test.ends])
				others.Release(t.Context())
				equal(t, "given back to another's, full by now", here(lim, "user-2"), cost{61, 11000})
			})
		})
	}
}

// TestLocalGrantsOnce: a store that answers only now and then, as for a flooded bucket, does not grant the
// balance again each time. The charges made here count until they are refilled, beside what the store has
// granted.
func TestLocalGrantsOnce(t *testing.T) {
	throttled := down()
	throttled.Throttled = true
	for name, test := range map[string]struct {
		policy runtime.Policy
		err    error
	}{"throttled": {runtime.Allow, throttled}, "down": {runtime.Local, down()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &outages{fake: &fake{}}
				_, r := openOn(t, store, test.policy)
				flood := func() (byStore, here int) {
					for range 20 {
						store.fail(nil)
						if _, err := r.Acquire(t.Context(), user{"1"}, cost{}); err == nil {
							byStore++
						}
						store.fail(test.err)
						for range 4 { // the breaker stays closed
							if _, err := r.Acquire(t.Context(), user{"1"}, cost{}); err == nil {
								here++
							}
						}
					}
					return byStore, here
				}
				byStore, here := flood()
				equal(t, "admitted by the store", byStore, 20)
				equal(t, "admitted here", here, 59)
				elapse(30 * time.Second)
				byStore, here = flood()
				equal(t, "half a minute later, by the store", byStore, 20)
				equal(t, "half a minute later, here", here, 30)
			})
		})
	}
}

// TestLocalEndsBucketByBucket: each when the store decides on it.
func TestLocalEndsBucketByBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &outages{fake: &fake{}}
		lim, r := openOn(t, store, runtime.Local)
		store.fail(down())
		for _, id := range []string{"1", "2", "3"} {
			acquire(t, r, user{id}, cost{})
		}
		store.fail(nil)
		for i, id := range []string{"1", "2", "3"} {
			acquire(t, r, user{id}, cost{})
			for j, other := range []string{"1", "2", "3"} {
				equal(t, "after "+id+": here is "+other, runtime.LocalImage(lim, "gpt-4", "user-"+other) != nil, j > i)
			}
		}
	})
}

// TestLocalTakesAllOrNone over a chain and over claims, and adds up what meets in one bucket.
func TestLocalTakesAllOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &outages{fake: &fake{}}
		lim, r := openOn(t, backend, runtime.Local)
		backend.fail(down())
		lease := acquire(t, r, member{"1", "9"}, cost{RPM: 5, TPM: 4000})
		equal(t, "user", here(lim, "user-1"), cost{55, 2000})
		equal(t, "project", here(lim, "project-9"), cost{115, 2000})
		_, err := r.Acquire(t.Context(), member{"2", "9"}, cost{TPM: 2500})
		check(t, err, "denied gpt-4 project-9 tpm 2000/2500 5s")
		if runtime.LocalImage(lim, "gpt-4", "user-2") != nil {
			t.Error("a refused call has left a bucket")
		}
		_, err = r.Acquire(t.Context(), member{"1", "9"}, cost{TPM: 2600})
		denied, _ := errors.AsType[*runtime.DeniedError](err)
		refusal := func(entity string) store.Refusal {
			return store.Refusal{
				Resource: "gpt-4", Entity: entity, Limit: "tpm", Requested: 2600, Available: 2000,
				RetryAfter: 6 * time.Second,
			}
		}
		want := []store.Refusal{refusal("user-1"), refusal("project-9")}
		if !slices.Equal(denied.Refusals, want) {
			t.Errorf("refusals: %v, want %v", denied.Refusals, want)
		}
		equal(t, "project after the refusals", here(lim, "project-9"), cost{115, 2000})
		check(t, lease.Settle(t.Context(), cost{RPM: 5, TPM: 1000}), "")
		equal(t, "settled user", here(lim, "user-1"), cost{55, 5000})
		equal(t, "settled project", here(lim, "project-9"), cost{115, 5000})

		one, two := r.Claim(member{"1", "9"}, cost{TPM: 2000}), r.Claim(member{"2", "9"}, cost{TPM: 3001})
		err = lim.AcquireAll(t.Context(), one, two)
		check(t, err, "denied gpt-4 project-9 tpm 5000/5001 10ms")
		equal(t, "user after the refusal", here(lim, "user-1"), cost{55, 5000})
		one, two = r.Claim(member{"1", "9"}, cost{TPM: 2000}), r.Claim(member{"2", "9"}, cost{TPM: 3000})
		check(t, lim.AcquireAll(t.Context(), one, two), "")
		equal(t, "both claims", here(lim, "project-9"), cost{113, 0})
		equal(t, "degraded", two.Lease().Degraded(), true)
		two.Lease().Release(t.Context())
		equal(t, "one given back", here(lim, "project-9"), cost{114, 3000})
		equal(t, "the other's user", here(lim, "user-1"), cost{54, 3000})
		equal(t, "its own user", here(lim, "user-2"), cost{60, 6000})
	})
}

// TestWaitOverLocal sleeps until the bucket here has enough, first come first served, and notices what is
// given back.
func TestWaitOverLocal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &outages{fake: &fake{}}
		lim, r := openOn(t, store, runtime.Local)
		w := &waits{t: t, lim: lim, r: r, start: time.Now(), ended: make(chan outcome, 100)}
		store.fail(down())
		lease := acquire(t, r, user{"1"}, cost{TPM: 6000})
		w.join(t.Context(), "a", 300)
		w.join(t.Context(), "b", 100)
		w.join(within(t, 2*time.Second), "c", 1)
		w.next("c", 0, "denied gpt-4 user-1 tpm 0/1 4.01s deadline")
		w.next("a", 3*time.Second, "")
		w.next("b", 4*time.Second, "")
		w.join(t.Context(), "d", 1000)
		lease.Release(t.Context())
		w.next("d", 4*time.Second, "")
		equal(t, "left", here(lim, "user-1"), cost{59, 5000})

		// The bucket is read again while e sleeps. Once the store answers, it takes over.
		w.join(t.Context(), "e", 5500)
		store.fail(nil)
		elapse(2 * time.Second) // until the breaker lets it
		w.next("e", 5*time.Second, "")
		if runtime.LocalImage(lim, "gpt-4", "user-1") != nil {
			t.Error("the store has decided, and yet there is a bucket here")
		}
	})
}

// TestAllowedReleaseIsNoNews: nothing came back, and the image it has is old.
func TestAllowedReleaseIsNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &outages{fake: &fake{}}
		lim, r := openOn(t, store, runtime.Allow)
		store.put(0, 60, 0)
		w := &waits{t: t, lim: lim, r: r, start: time.Now(), ended: make(chan outcome, 100)}
		store.fail(down())
		lease := acquire(t, r, user{"1"}, cost{TPM: 1000})
		store.fail(nil)
		store.put(0, 60, 200)
		w.join(t.Context(), "a", 300)
		lease.Release(t.Context())
		w.next("a", time.Second, "")
	})
}

// TestLocalClockStepsBack: the time that it goes through a second time is refilled once.
func TestLocalClockStepsBack(t *testing.T) {
	clock := &shifted{}
	store := &outages{fake: &fake{}}
	_, r := openOn(t, store, runtime.Local, runtime.WithClock(clock))
	store.fail(down())
	acquire(t, r, user{"1"}, cost{TPM: 6000})
	clock.set(10 * time.Second)
	acquire(t, r, user{"1"}, cost{TPM: 1000})
	clock.set(-10 * time.Second)
	for range 3 {
		_, err := r.Acquire(t.Context(), user{"1"}, cost{TPM: 100})
		check(t, err, "denied gpt-4 user-1 tpm 0/100 11s")
	}
	acquire(t, r, user{"1"}, cost{RPM: 5}).Release(t.Context()) // writes that must not set it back
	clock.set(10 * time.Second)
	_, err := r.Acquire(t.Context(), user{"1"}, cost{TPM: 100})
	check(t, err, "denied gpt-4 user-1 tpm 0/100 1s")
}

// ideal is a token bucket of one limit, in millitokens and ms (docs/design.md, "Arithmetic"). Writes come at
// instants that do not go back, reads at any.
type ideal struct {
	bucket.Limit
	level, at int64
	refill    refill
}

type refill func(l bucket.Limit, from, to int64) int64

// exactly is what limit l has yielded up to an instant.
func exactly(l bucket.Limit, from, to int64) int64 {
	return to*l.Refill/l.Period - from*l.Refill/l.Period
}

// lossy is the refill of the seeds.
func lossy(l bucket.Limit, from, to int64) int64 { return (to - from) * l.Refill / l.Period }

func (i *ideal) levelAt(now int64) int64 {
	level := i.level
	if now > i.at {
		level += i.refill(i.Limit, i.at, now)
	}
	return min(level, i.Burst)
}

func (i *ideal) take(now, cost int64) { i.level, i.at = i.levelAt(now)-cost, max(now, i.at) }

// until returns how long after now i has want.
func (i *ideal) until(want, now int64) int64 {
	lo, hi := int64(0), int64(1)
	for i.levelAt(now+hi) < want {
		lo, hi = hi, hi*2
	}
	for lo+1 < hi {
		if mid := (lo + hi) / 2; i.levelAt(now+mid) < want {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// walk sends acquires, settles and releases on two users of one project through Local, on a clock that jumps,
// and returns how the buckets differ from ideal ones.
func walk(ctx context.Context, t *rapid.T, yield refill) error {
	def := gpt4()
	limit := rapid.Custom(func(t *rapid.T) bucket.Limit {
		l := bucket.Limit{Refill: rapid.Int64Range(1, 30_000).Draw(t, "refill"),
			Period: rapid.Int64Range(1, 3000).Draw(t, "period")}
		l.Burst = rapid.Int64Range(1, 50).Draw(t, "burst") * bucket.Milli
		l.Capacity = l.Burst
		return l
	})
	for i := range def.spec.Kinds {
		def.spec.Kinds[i].Limits = []bucket.Limit{limit.Draw(t, "rpm"), limit.Draw(t, "tpm")}
		def.spec.Kinds[i].PerCall = []int64{0, 0}
	}
	clock := &shifted{}
	store := &outages{fake: &fake{}}
	b := runtime.NewBuilder(store, runtime.WithClock(clock), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithCallDefaults(runtime.OnUnavailable(runtime.Local)))
	r := runtime.Bind[entity](b, def, toVector, fromVector)
	lim, err := b.Limiter()
	if err != nil {
		return err
	}
	store.fail(down())

	ideals := map[string][]*ideal{}
	chain := func(m member) (all []*ideal) {
		for i, name := range []string{"user-" + m.ID, "project-" + m.Project} {
			if ideals[name] == nil {
				for _, l := range def.spec.Kinds[i].Limits {
					ideals[name] = append(ideals[name], &ideal{l, l.Burst, clock.Now().UnixMilli(), yield})
				}
			}
			all = append(all, ideals[name]...)
		}
		return all
	}
	type open struct {
		*runtime.Lease[cost]
		of   member
		took cost
	}
	var leases []open
	costs := rapid.Custom(func(t *rapid.T) cost {
		return cost{rapid.Int64Range(0, 20).Draw(t, "rpm"), rapid.Int64Range(0, 20).Draw(t, "tpm")}
	})
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		clock.set(time.Duration(rapid.Int64Range(-300, 1000).Draw(t, "elapsed")) * time.Millisecond)
		now := clock.Now().UnixMilli()
		m := member{rapid.SampledFrom([]string{"1", "2"}).Draw(t, "user"), "9"}
		if len(leases) > 0 && rapid.Bool().Draw(t, "close") {
			lease := leases[0]
			leases = leases[1:]
			actual := costs.Draw(t, "actual")
			if rapid.Bool().Draw(t, "release") {
				actual = cost{}
				lease.Release(ctx)
			} else if err := lease.Settle(ctx, actual); err != nil {
				return err
			}
			for i, one := range chain(lease.of) {
				one.take(now, (vector(actual)[i%2]-vector(lease.took)[i%2])*bucket.Milli)
			}
		} else if asked := costs.Draw(t, "cost"); asked != (cost{}) {
			for _, name := range []string{"user-" + m.ID, "project-" + m.Project} {
				if runtime.LocalImage(lim, "gpt-4", name) == nil {
					delete(ideals, name) // it is full until something is taken, whatever the clock did
				}
			}
			lease, err := r.Acquire(ctx, m, asked)
			missing, exceeds := int64(0), false // missing: until it could be served, ms
			for i, one := range chain(m) {
				want := vector(asked)[i%2] * bucket.Milli
				exceeds = exceeds || want > one.Burst
				if want > 0 && !exceeds && one.levelAt(now) < want {
					missing = max(missing, one.until(want, now))
				}
			}
			denied, _ := errors.AsType[*runtime.DeniedError](err)
			_, over := errors.AsType[*runtime.CostTooLargeError](err)
			switch {
			case over != exceeds:
				return fmt.Errorf("%v of %v: %w, exceeds the burst: %v", m, asked, err, exceeds)
			case over:
			case denied != nil && denied.RetryAfter != time.Duration(missing)*time.Millisecond:
				return fmt.Errorf("%v of %v: %w, ideal %d ms", m, asked, err, missing)
			case (denied == nil) != (missing == 0) || denied == nil && err != nil:
				return fmt.Errorf("%v of %v: %w, ideal %d ms", m, asked, err, missing)
			case err == nil:
				leases = append(leases, open{lease, m, asked})
				for i, one := range chain(m) {
					one.take(now, vector(asked)[i%2]*bucket.Milli)
				}
			}
		}
		for name, all := range ideals {
			img := runtime.LocalImage(lim, "gpt-4", name)
			for i, one := range all {
				if img == nil {
					continue // nothing was taken of it yet
				}
				if got, want := bucket.Available(img.Balances[i], img.Refilled, now), one.levelAt(now); got != want {
					return fmt.Errorf("%s of %s: %d, ideal %d", def.spec.Limits[i], name, got, want)
				}
			}
		}
	}
	return nil
}

func vector(c cost) []int64 { return toVector(c, nil) }

func TestLocalIsIdeal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if err := walk(t.Context(), rt, exactly); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestLossyIsCaught: an ideal bucket with the seeds' refill is another.
func TestLossyIsCaught(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	const enough = 300 // -short would walk 20 times, of which too few may be caught by chance: 46 of 100 are
	walks, caught := 0, 0
	for walks < enough {
		rapid.Check(t, func(rt *rapid.T) {
			walks++
			err := walk(t.Context(), rt, lossy)
			if err != nil && !strings.Contains(err.Error(), ", ideal ") {
				rt.Errorf("%v, want a difference from the ideal", err)
			}
			if err != nil {
				caught++
			}
		})
	}
	if 10*caught < 3*walks {
		t.Errorf("caught in %d of %d walks, want three of ten", caught, walks)
	}
}

// TestLocalIsSafe for concurrent use; the race detector watches. No more is admitted than the bucket has.
func TestLocalIsSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &outages{fake: &fake{}}
		lim, r := openOn(t, store, runtime.Local)
		store.fail(down())
		type result struct {
			lease *runtime.Lease[cost]
			err   error
		}
		results := make(chan result, 20)
		for range cap(results) {
			go func() {
				lease, err := r.Acquire(context.WithoutCancel(t.Context()), member{"1", "9"}, cost{TPM: 500})
				results <- result{lease, err}
			}()
		}
		admitted := 0
		for range cap(results) {
			if one := <-results; one.err == nil {
				admitted++
				if admitted%2 == 0 {
					go one.lease.Release(t.Context())
				}
			}
		}
		synctest.Wait()
		if left := here(lim, "user-1").TPM; left < 0 || left > 6000 || admitted < 12 {
			t.Errorf("%d admitted, %d tokens left", admitted, left)
		}
	})
}

// TestLocalIsBounded: of more buckets than a process keeps, the one that was longest out of use starts again.
func TestLocalIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &outages{fake: &fake{}}
		lim, r := openOn(t, store, runtime.Local)
		store.fail(down())
		acquire(t, r, user{"first"}, cost{TPM: 6000})
		acquire(t, r, user{"second"}, cost{})
		if _, err := r.Acquire(t.Context(), user{"first"}, cost{TPM: 1}); err == nil {
			// in use: flooding it must not fill it up
			t.Error("admitted")
		}
		for i := range 100_000 - 1 {
			acquire(t, r, user{fmt.Sprint(i)}, cost{})
		}
		equal(t, "second", here(lim, "user-second"), cost{})
		equal(t, "first", here(lim, "user-first"), cost{59, 0})
	})
}
