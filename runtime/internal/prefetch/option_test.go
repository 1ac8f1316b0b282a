package prefetch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// TestOption has calls with Prefetch, on resources with and without prefetch: how many of a hundred calls,
// once each 10 ms, make a request.
func TestOption(t *testing.T) {
	for _, c := range []struct {
		name        string
		schema      time.Duration
		with, call  []runtime.CallOption
		least, most int
	}{
		{"of limits.yaml", life, nil, nil, 5, 15},
		{"none", 0, nil, nil, 100, 100},
		{"none, and a call's", 0, nil, []runtime.CallOption{runtime.Prefetch(life)}, 5, 15},
		{"none, and With's", 0, []runtime.CallOption{runtime.Prefetch(life)}, nil, 5, 15},
		{"none, and a longer one of With", 0, []runtime.CallOption{runtime.Prefetch(time.Second)}, nil, 1, 4},
		{"a call's asks the table", life, nil, []runtime.CallOption{runtime.Prefetch(0)}, 100, 100},
		{
			"a call's beats With's", 0, []runtime.CallOption{runtime.Prefetch(life)},
			[]runtime.CallOption{runtime.Prefetch(0)}, 100, 100,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newEngine(t)
				client, sent := counted(engine)
				limits := []bucket.Limit{bucket.Per(10_000, time.Hour), bucket.Per(10_000, time.Hour)}
				p := open(t, client, prefetching(t, c.schema, limits, limits))
				r := p.With(c.with...)
				call := func() {
					if _, err := r.Acquire(t.Context(), hot(), one, c.call...); err != nil {
						t.Fatal(err)
					}
					sleep(10 * time.Millisecond)
				}
				for range 100 {
					call()
				}
				synctest.Wait()
				sent.count()
				for range 100 {
					call()
				}
				if n := sent.count(); n < c.least || n > c.most {
					t.Errorf("100 calls made %d requests, want %d to %d", n, c.least, c.most)
				}
				p.close(t)
				if charged := stored(t, engine, "project-hot", "rpm_tc"); charged != 200_000 {
					t.Errorf("%d charged, want 200,000", charged)
				}
			})
		})
	}
}

// TestOptionIsShorter has a pool of blocks of 5 s, and a call with a prefetch of 100 ms: it does not use a
// token that was taken longer ago.
func TestOptionIsShorter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		client, sent := counted(engine)
		p := open(t, client, prefetching(t, 5*time.Second, alike(1_000, 10_000), alike(1, 1)))
		defer p.close(t)
		warm(t, p, hot())
		sleep(150 * time.Millisecond)
		sent.count()
		if _, err := p.Acquire(t.Context(), hot(), one, runtime.Prefetch(100*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // what the pool asks for beside it belongs to this call
		if sent.count() == 0 {
			t.Error("the call made no request: its token was taken more than 100 ms before")
		}
		if _, err := p.Acquire(t.Context(), hot(), one); err != nil {
			t.Fatal(err)
		}
		if n := sent.count(); n != 0 {
			t.Errorf("%d requests of a call with the longer prefetch, want none", n)
		}
	})
}

// TestBadOption has values of Prefetch that cannot be, and resources that can have none.
func TestBadOption(t *testing.T) {
	plain := prefetching(t, 0, alike(1_000, 1_000), alike(1_000, 1_000))
	held := prefetching(t, 0, alike(1_000, 1_000), alike(1_000, 1_000))
	held.Numbers.Held = []bool{true, false}
	never := bucket.Limit{Capacity: 1000, Burst: 1000, Period: bucket.Never.Nominal()}
	prepaid := prefetching(t, 0, alike(1_000, 1_000), []bucket.Limit{bucket.Per(1, time.Second), never})
	for _, c := range []struct {
		def  *storetest.Variant
		d    time.Duration
		want string
	}{
		{plain, -1, "want 0, or whole milliseconds from 100ms to 5s"},
		{plain, 1, "want 0, or whole milliseconds from 100ms to 5s"},
		{plain, 99 * time.Millisecond, "want 0, or whole milliseconds from 100ms to 5s"},
		{plain, 100_500 * time.Microsecond, "want 0, or whole milliseconds from 100ms to 5s"},
		{plain, 5001 * time.Millisecond, "want 0, or whole milliseconds from 100ms to 5s"},
		{held, life, "the resource has in_flight or on_crash: release, for which each call needs a write"},
		{prepaid, life, "the resource has window: never, and a process that is killed would lose credits for good"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := open(t, newEngine(t).Client(), c.def)
			defer p.close(t)
			_, err := p.Acquire(t.Context(), hot(), one, runtime.Prefetch(c.d))
			invalid, ok := errors.AsType[*runtime.InvalidError](err)
			if !ok || invalid.Value != fmt.Sprintf("Prefetch(%v)", c.d) || !strings.HasSuffix(invalid.Reason, c.want) {
				t.Errorf("%v: %v, want an InvalidError: %s", c.d, err, c.want)
			}
		})
	}
}
