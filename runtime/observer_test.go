package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// report is one call to an observer; the error as text.
type report struct {
	Which string
	Event runtime.Event
	Err   string
}

// watch notes what is callback. An Operation that goes without saying, and a LimitKind that is the entity's
// own, are left out.
func watch(into *[]report) *runtime.Observer {
	usual := map[string]string{"acquired": store.OperationAcquire, "denied": store.OperationAcquire,
		"degraded": store.OperationAcquire,
		"shadowed": store.OperationAcquire, "failed": store.OperationAcquire, "settled": store.OperationSettle,
		"released": store.OperationRelease}
	note := func(which string) func(_ context.Context, _ runtime.Event) {
		return func(_ context.Context, e runtime.Event) {
			text := errtext.Of(e.Err)
			e.Err = nil
			if e.Operation == usual[which] {
				e.Operation = ""
			}
			if e.LimitKind == e.Kind {
				e.LimitKind = ""
			}
			*into = append(*into, report{which, e, text})
		}
	}
	return &runtime.Observer{
		Acquired: note("acquired"), Denied: note("denied"), Shadowed: note("shadowed"), Failed: note("failed"),
		Settled: note("settled"), Released: note("released"),
		LeaseLost: note("leaselost"),
	}
}

func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip = 30 * time.Millisecond
		var got []report
		var failure error
		backend := &fake{before: func(context.Context, string, *store.Call) error {
			elapse(trip)
			return failure
		}}
		_, r := open(t, backend, runtime.WithObserver(watch(&got)),
			runtime.WithLogger(slog.New(slog.DiscardHandler)))
		ctx := t.Context()
		of := func(took time.Duration, limit string) runtime.Event {
			return runtime.Event{Resource: "gpt-4", Kind: "user", Entity: "user-1", Limit: limit, Took: took}
		}
		as := func(operation string, e runtime.Event) runtime.Event {
			e.Operation = operation
			return e
		}
		const denied = "denied gpt-4 user-1 tpm 3/100 "
		for _, step := range []struct {
			name string
			do   func()
			want []report
		}{
			{"acquire and settle", func() {
				_ = acquire(t, r, user{"1"}, cost{TPM: 6000}).Settle(ctx, cost{TPM: 6000})
			},
				[]report{{"acquired", of(trip, ""), ""}, {"settled", of(trip, ""), ""}}},
			{"denied", func() {
				backend.put(0, 60, 0)
				_, _ = r.Acquire(ctx, user{"1"}, cost{TPM: 100})
			}, []report{{"denied", of(trip, "tpm"), denied + "970ms"}}},
			{"wait, served", func() {
				backend.put(0, 60, 0)
				_, _ = r.Wait(ctx, user{"1"}, cost{TPM: 100})
			}, []report{{"acquired", as("wait", of(1000*time.Millisecond+trip, "")), ""}}},
			{"wait, no time", func() {
				backend.put(0, 60, 0)
				_, _ = r.Wait(ctx, user{"1"}, cost{TPM: 100}, runtime.MaxWait(500*time.Millisecond))
			}, []report{{"denied", as("wait", of(trip, "tpm")), denied + "970ms deadline"}}},
			{"released by Do", func() {
				backend.put(0, 60, 6000)
				_ = r.Do(ctx, user{"1"}, cost{}, func(context.Context, *runtime.Lease[cost]) error {
					return errors.New("failed")
				})
			}, []report{{"acquired", of(trip, ""), ""}, {"released", of(trip, ""), ""}}},
			{"above the burst", func() { _, _ = r.Acquire(ctx, user{"1"}, cost{TPM: 6001}) },
				[]report{{"failed", of(trip, "tpm"), "exceeds burst gpt-4 user-1 tpm 6001/6000"}}},
			{"invalid cost", func() { _, _ = r.Acquire(ctx, user{"1"}, cost{TPM: -1}) },
				[]report{{"failed", of(0, ""),
					`invalid gpt-4 cost tpm "-1"`}}},
			{"invalid id", func() { _, _ = r.Acquire(ctx, user{}, cost{}) },
				[]report{{"failed", runtime.Event{Resource: "gpt-4", Kind: "user", Entity: "user-"},
					"invalid gpt-4 id user"}}},
			{"no entity", func() { _, _ = r.Acquire(ctx, nil, cost{}) },
				[]report{{"failed", runtime.Event{Resource: "gpt-4"}, "invalid gpt-4 entity"}}},
			{"invalid settle", func() { _ = acquire(t, r, user{"1"}, cost{TPM: 5}).Settle(ctx, cost{RPM: -1}) },
				[]report{{"acquired", of(trip, ""), ""}, {"failed", as("settle", of(0, "")),
					`invalid gpt-4 cost rpm "-1"`}}},
			{"settle and release that do not get through", func() {
				one, two := acquire(t, r, user{"1"}, cost{TPM: 5}), acquire(t, r, user{"1"}, cost{TPM: 5})
				failure = errors.New("down")
				_ = one.Settle(ctx, cost{})
				one.Release(ctx)
				two.Release(ctx)
			}, []report{{"acquired", of(trip, ""), ""}, {"acquired", of(trip, ""), ""},
				{"failed", as("settle", of(trip, "")), "down"}, {"failed", as("release", of(trip, "")), "down"}}},
			{"store down", func() {
				_, _ = r.Acquire(ctx, user{"1"}, cost{TPM: 5})
			}, []report{{"failed", of(trip, ""), "down"}}},
			{"peek is nobody's outcome", func() { _, _ = r.Peek(ctx, user{"1"}) }, nil},
		} {
			got = nil
			step.do()
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step.name, diff)
			}
		}
	})
}

// TestObserverGetsTheError: as it is, for errors.Is and AsType.
func TestObserverGetsTheError(t *testing.T) {
	down := &runtime.UnavailableError{Resource: "gpt-4", Attempts: 1, Err: errors.New("reset")}
	var got error
	_, r := open(t, &fake{before: func(context.Context, string, *store.Call) error { return down }},
		runtime.WithObserver(&runtime.Observer{Failed: func(_ context.Context, e runtime.Event) { got = e.Err }}))
	_, err := r.Acquire(t.Context(), user{"1"}, cost{}, runtime.OnUnavailable(runtime.Deny))
	if !errors.Is(got, down) || !errors.Is(err, down) {
		t.Errorf("observer got %v, caller %v", got, err)
	}
}

type contextKey struct{}

// TestObserverContext: an acquire is reported with its caller's context. Work that may outlive the caller is
// reported with the context's values, without its end.
func TestObserverContext(t *testing.T) {
	var got []string
	note := func(which string) func(context.Context, runtime.Event) {
		return func(ctx context.Context, _ runtime.Event) {
			got = append(got, fmt.Sprint(which, " ", ctx.Value(contextKey{}), " ", ctx.Err()))
		}
	}
	all := &runtime.Observer{
		Acquired: note("acquired"), Denied: note("denied"), Failed: note("failed"), Settled: note("settled"),
		Released: note("released"),
	}
	lim, r := open(t, &fake{}, runtime.WithObserver(all), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), contextKey{}, "caller"))
	one, _ := r.Acquire(ctx, user{"1"}, cost{TPM: 1})
	two, _ := r.Wait(ctx, user{"1"}, cost{TPM: 1})
	_, _ = r.Acquire(ctx, user{"1"}, cost{TPM: 6000})
	claim := r.Claim(user{"1"}, cost{TPM: 1})
	_ = lim.AcquireAll(ctx, claim)
	cancel()
	_ = one.Settle(ctx, cost{TPM: 2})
	two.Release(ctx)
	_, _ = r.Acquire(ctx, user{"1"}, cost{TPM: 1})
	want := []string{
		"acquired caller <nil>", "acquired caller <nil>", "denied caller <nil>", "acquired caller <nil>",
		"settled caller <nil>", "released caller <nil>", "failed caller context canceled",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}

// TestObservers: each gets its reports, in order. A callback that none of them has is nil, so no event is
// built.
func TestObservers(t *testing.T) {
	var got []string
	one := func(name string) *runtime.Observer {
		note := func(what string) func(context.Context, runtime.Event) {
			return func(context.Context, runtime.Event) { got = append(got, name+" "+what) }
		}
		return &runtime.Observer{
			Acquired: note("acquired"), Denied: note("denied"), Degraded: note("degraded"), Shadowed: note("shadowed"),
			Failed: note("failed"), Settled: note("settled"), Released: note("released"),
			LeaseLost: note("leaselost"), Prefetched: note("prefetched"),
			Store:   func(context.Context, runtime.StoreEvent) { got = append(got, name+" store") },
			Breaker: func(bool, error) { got = append(got, name+" breaker") },
			Skew:    func(time.Duration) { got = append(got, name+" skew") },
		}
	}
	b := one("b")
	b.Settled = nil
	all := reflect.ValueOf(runtime.Observers(one("a"), nil, &runtime.Observer{}, b)).Elem()
	var want []string
	for field, callback := range all.Fields() {
		in := make([]reflect.Value, callback.Type().NumIn())
		for i := range in {
			in[i] = reflect.Zero(callback.Type().In(i))
		}
		callback.Call(in)
		name := strings.ToLower(field.Name)
		if want = append(want, "a "+name); name != "settled" {
			want = append(want, "b "+name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
	for field, callback := range reflect.ValueOf(runtime.Observers(nil, &runtime.Observer{})).Elem().Fields() {
		if !callback.IsNil() {
			t.Errorf("%s is made up", field.Name)
		}
	}
}
