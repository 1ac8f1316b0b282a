package runtime_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"testing"
	"testing/synctest"

	"github.com/sluice-go/sluice/runtime"
)

func TestDo(t *testing.T) {
	failure := errors.New("failed")
	for _, test := range []struct {
		name  string
		fn    func(context.Context, *runtime.Lease[cost]) error
		want  error
		level cost
	}{
		{"stands as charged", func(context.Context, *runtime.Lease[cost]) error {
			return nil
		}, nil, cost{59, 5900}},
		{"settles", func(ctx context.Context, l *runtime.Lease[cost]) error {
			return l.Settle(ctx, cost{TPM: 40})
		}, nil, cost{59, 5960}},
		{"fails", func(context.Context, *runtime.Lease[cost]) error { return failure }, failure, cost{60, 6000}},
		{"fails after it settled", func(ctx context.Context, l *runtime.Lease[cost]) error {
			return errors.Join(l.Settle(ctx, cost{TPM: 40}), failure)
		}, failure, cost{59, 5960}},
		{"releases itself", func(ctx context.Context, l *runtime.Lease[cost]) error {
			l.Release(ctx)
			return nil
		}, nil, cost{60, 6000}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &fake{}
				_, r := open(t, store)
				var lease *runtime.Lease[cost]
				fn := func(ctx context.Context, l *runtime.Lease[cost]) error {
					lease = l
					return test.fn(ctx, l)
				}
				err := r.Do(t.Context(), user{"1"}, cost{TPM: 100}, fn)
				if !errors.Is(err, test.want) {
					t.Errorf("error %v, want %v", err, test.want)
				}
				if err := lease.Settle(t.Context(), cost{TPM: 1}); !errors.Is(err, runtime.ErrSettled) {
					t.Errorf("settled after Do: %v, want ErrSettled", err)
				}
				equal(t, "level", store.level("user-1"), test.level)
			})
		})
	}
}

// TestDoGivesBackOnPanic: and lets the panic, or the goroutine's exit, through.
func TestDoGivesBackOnPanic(t *testing.T) {
	for _, test := range []struct {
		name  string
		last  func()
		want  any
		first func(*runtime.Lease[cost])
		level cost
	}{
		{"panic", func() { panic("boom") }, "boom", func(*runtime.Lease[cost]) {}, cost{60, 6000}},
		{"panic after settle", func() { panic("boom") }, "boom",
			func(l *runtime.Lease[cost]) { _ = l.Settle(context.Background(), cost{TPM: 1}) }, cost{59, 5999}},
		{"Goexit", goruntime.Goexit, nil, func(*runtime.Lease[cost]) {}, cost{60, 6000}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &fake{}
				_, r := open(t, store)
				returned := false
				recovered := make(chan any)
				go func() {
					defer func() { recovered <- recover() }()
					_ = r.Do(t.Context(), user{"1"}, cost{TPM: 100}, func(_ context.Context, l *runtime.Lease[cost]) error {
						test.first(l)
						test.last()
						return nil
					})
					returned = true
				}()
				equal(t, "recovered", <-recovered, test.want)
				equal(t, "Do returned", returned, false)
				equal(t, "level", store.level("user-1"), test.level)
			})
		})
	}
}

func TestDoWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := open(t, &fake{})
		err := r.Do(t.Context(), user{"1"}, cost{TPM: 6001}, func(context.Context, *runtime.Lease[cost]) error {
			t.Error("fn was called")
			return nil
		})
		if _, ok := errors.AsType[*runtime.CostTooLargeError](err); !ok {
			t.Errorf("error %v", err)
		}
	})
}

// TestDoReleasesAnAbandonedCall: the usual reason why fn fails.
func TestDoReleasesAnAbandonedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		_, r := open(t, store)
		ctx, cancel := context.WithCancel(t.Context())
		err := r.Do(ctx, user{"1"}, cost{TPM: 100}, func(ctx context.Context, _ *runtime.Lease[cost]) error {
			cancel()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		equal(t, "level", store.level("user-1"), cost{60, 6000})
	})
}
