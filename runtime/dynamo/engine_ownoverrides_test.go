package dynamo

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// front is a Limiter of the demonstration that denies while the table does not answer.
func (b *bubble) front(t *testing.T, api wire.API) *limits.Limiter {
	t.Helper()
	l, err := limits.New(New(api, "faults"), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithCallDefaults(runtime.OnUnavailable(store.Deny)))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

type (
	gpt4Config   = runtime.Config[limits.GPT4Entity, limits.GPT4Cost, limits.GPT4Limits]
	gpt4Override = runtime.Override[limits.GPT4Limits]
)

// of is user-1 of a project.
var of = limits.User{ID: "1", Project: limits.Project{ID: "1"}}

// rpm is an override of so many calls a minute.
func rpm(n int64) limits.GPT4Limits { return limits.GPT4Limits{RPM: &runtime.Rate{Capacity: n}} }

// TestOwnOverride: a process goes by its own override at once, of an entity or of its kind. That holds if it
// knows the bucket, if a read that began before returns after, and if the write's outcome is unknown.
func TestOwnOverride(t *testing.T) {
	for name, at := range map[string]func(*gpt4Config) *gpt4Override{
		"an entity": func(c *gpt4Config) *gpt4Override { return c.Entity(of) },
		"a kind":    func(c *gpt4Config) *gpt4Override { return c.Kind(of) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, b *bubble) {
				t.Helper()
				api, arrives := &lateReply{API: b.client}, make(chan struct{})
				l := b.front(t, api)
				most := func(want int64) {
					t.Helper()
					balance, err := l.GPT4.Peek(t.Context(), of)
					if err != nil {
						t.Fatal(err)
					}
					lease, err := l.GPT4.Acquire(t.Context(), of, limits.GPT4Cost{RPM: want + 1})
					tooLarge, ok := errors.AsType[*store.CostTooLargeError](err)
					if !ok || tooLarge.Burst != want {
						t.Errorf("an acquire of %d of %v: %v, %v; want a burst of %d", want+1, balance, lease, err, want)
					}
				}
				most(100)
				rev, err := at(l.Config.GPT4).Set(t.Context(), rpm(5), "")
				if err != nil {
					t.Fatal(err)
				}
				most(5)
				elapse(time.Minute) // due: the read beside the next call begins before the next Set, and returns after
				api.holds.Store(&arrives)
				var late sync.WaitGroup
				late.Go(func() { _, _ = l.GPT4.Acquire(t.Context(), of, limits.GPT4Cost{RPM: 1}) })
				synctest.Wait()
				if rev, err = at(l.Config.GPT4).Set(t.Context(), rpm(7), rev); err != nil {
					t.Fatal(err)
				}
				close(arrives)
				late.Wait()
				most(7)
				if err := at(l.Config.GPT4).Delete(t.Context(), rev); err != nil {
					t.Fatal(err)
				}
				most(100)
				closeAll(t, l.Limiter)
			})
		})
	}
}

// TestUnreadOverrides: overrides cannot be read, and writes work. Calls are served although the policy
// denies: by cached overrides, also after an own Set, or by the bucket's own numbers if it can get no others.
func TestUnreadOverrides(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration
		act   func(*testing.T, *bubble, *limits.Limiter, *batches)
	}{
		"they are due": {time.Minute, func(*testing.T, *bubble, *limits.Limiter, *batches) {}},
		"after an own Set": {0, func(t *testing.T, _ *bubble, l *limits.Limiter, _ *batches) {
			t.Helper()
			if _, err := l.Config.GPT4.Entity(of).Set(t.Context(), rpm(1000), ""); err != nil {
				t.Fatal(err)
			}
		}},
		"another's are known, and not read for the bucket": {time.Minute, func(
			t *testing.T, b *bubble, _ *limits.Limiter, api *batches,
		) {
			t.Helper()
			other := b.front(t, b.client)
			if _, err := other.Config.GPT4.Entity(of).Set(t.Context(), rpm(1000), ""); err != nil {
				t.Fatal(err)
			}
			api.calls.Store(-1) // the first read has an answer
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, b *bubble) {
				t.Helper()
				var fails atomic.Bool
				api := &batches{API: b.client}
				api.answer = func(*dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
					if fails.Load() && api.calls.Load() > 0 {
						return nil, errWire
					}
					return nil, nil
				}
				l := b.front(t, api)
				acquire := func() {
					t.Helper()
					if _, err := l.GPT4.Acquire(t.Context(), of, limits.GPT4Cost{RPM: 1}); err != nil {
						t.Error(err)
					}
				}
				acquire()
				elapse(test.after)
				api.calls.Store(0)
				test.act(t, b, l, api)
				fails.Store(true)
				for range 3 {
					acquire()
				}
				if api.calls.Load() == 0 {
					t.Error("no overrides were asked for")
				}
				fails.Store(false)
				elapse(time.Minute)
				acquire()
				closeAll(t, l.Limiter)
			})
		})
	}
}

// TestRaisedLimitAdmits: an override that is raised with Refill admits at once, and so does a Reset of a
// bucket in debt. Totals stay exact, and a lease from before gives back no more than fits below the burst.
func TestRaisedLimitAdmits(t *testing.T) {
	daily := func(n int64) limits.GPT4Limits {
		return limits.GPT4Limits{RPM: &runtime.Rate{Capacity: n, Every: 24 * time.Hour}}
	}
	inBubble(t, 1, func(t *testing.T, b *bubble) {
		t.Helper()
		l, other := b.front(t, b.client), b.front(t, b.client)
		acquire := func(l *limits.Limiter, n int64) (*limits.GPT4Lease, error) {
			return l.GPT4.Acquire(t.Context(), of, limits.GPT4Cost{RPM: n})
		}
		must := func(l *limits.Limiter, n int64) *limits.GPT4Lease {
			t.Helper()
			lease, err := acquire(l, n)
			if err != nil {
				t.Fatal(err)
			}
			return lease
		}
		consumed := func(want, left int64) {
			t.Helper()
			img, err := operator.Inspect(t.Context(), b.client, "faults", "user-1", "gpt-4")
			if err != nil {
				t.Fatal(err)
			}
			rpm := img.Extra[0].Balance
			if got := bucket.Available(rpm, img.Refilled, time.Now().UnixMilli()); rpm.Consumed != 1000*want ||
				got != 1000*left || img.TTL*1000 < bucket.ReadyAt(rpm, img.Refilled, rpm.Burst) {
				t.Errorf("%d consumed and %d left, want %d and %d: %v", rpm.Consumed, got, want, left, img)
			}
		}
		must(l, 1)
		scope := l.Config.GPT4.Entity(of)
		rev, err := scope.Set(t.Context(), daily(10), "")
		if err != nil {
			t.Fatal(err)
		}
		held := must(l, 9)
		must(other, 1) // knows the bucket too
		if _, err := acquire(l, 1); !isA[*store.DeniedError](err) {
			t.Fatalf("got %v, want a denial: nothing is left", err)
		}
		if rev, err = scope.Set(t.Context(), daily(100), rev); err != nil {
			t.Fatal(err)
		}
		if _, err := acquire(l, 1); !isA[*store.DeniedError](err) {
			t.Fatalf("got %v, want a denial: a raised limit alone brings no tokens", err)
		}
		if _, err = scope.Set(t.Context(), daily(101), rev, runtime.Refill()); err != nil {
			t.Fatal(err)
		}
		consumed(11, 101)
		must(l, 100)
		elapse(time.Second) // the other denies by what it saw for no longer
		must(other, 1)
		if err := held.Settle(t.Context(), limits.GPT4Cost{RPM: 109}); err != nil { // into debt
			t.Fatal(err)
		}
		if err := l.Config.GPT4.Reset(t.Context(), of); err != nil {
			t.Fatal(err)
		}
		consumed(212, 101)
		before := must(l, 50)
		if err := l.Config.GPT4.Reset(t.Context(), of); err != nil {
			t.Fatal(err)
		}
		before.Release(t.Context())
		consumed(212, 101)
		must(l, 101)
		if _, err := acquire(l, 1); !isA[*store.DeniedError](err) {
			t.Errorf("got %v, want a denial: the lease from before gave back what the bucket cannot hold", err)
		}
		if err := l.Config.GPT4.Reset(t.Context(), limits.User{ID: "2", Project: of.Project}); err != nil {
			t.Error(err)
		}
		closeAll(t, l.Limiter, other.Limiter)
	})
}
