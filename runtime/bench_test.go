package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/seal"
	"github.com/sluice-go/sluice/runtime/store"
)

// stub is a store that answers at once and allocates nothing, so that what is measured is the facade.
type stub struct {
	store.Session

	after  *bucket.Image
	denied *runtime.DeniedError // from memory
}

func openStub(t testing.TB, s *stub) *resource {
	t.Helper()
	limits := gpt4().spec.Kinds[0].Limits
	s.after = &bucket.Image{Refilled: time.Now().UnixMilli(), Balances: bucket.Full(limits),
		Missing: make([]bool, len(limits))}
	_, r := openOn(t, s, runtime.Deny)
	return r
}

func (*stub) Sealed(seal.Sealed) {}

func (s *stub) Open(*store.Env, ...store.Definition) (store.Session, error) { return s, nil }

func (s *stub) Refused(store.Definition, []store.Link, []int64, int64) *runtime.DeniedError {
	return s.denied
}

func (s *stub) Acquire(_ context.Context, call *store.Call) error {
	buckets := call.Parts[0].Buckets
	for i := range buckets {
		buckets[i].After = s.after
	}
	return nil
}

func (*stub) Settle(context.Context, *store.Call) error { return nil }

// BenchmarkAcquire measures the facade alone.
func BenchmarkAcquire(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var one, chain entity = user{"123"}, member{"123", "42"}
	for _, bench := range []struct {
		name   string
		entity entity
		denied *runtime.DeniedError
		settle bool
	}{
		{name: "denied", entity: one, denied: &runtime.DeniedError{}},
		{name: "denied,buckets=2", entity: chain, denied: &runtime.DeniedError{}},
		{name: "admitted", entity: one},
		{name: "admitted,buckets=2", entity: chain},
		{name: "settled", entity: one, settle: true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := openStub(b, &stub{denied: bench.denied})
			b.ReportAllocs()
			for b.Loop() {
				lease, err := r.Acquire(ctx, bench.entity, cost{TPM: 10})
				if (err != nil) != (bench.denied != nil) {
					b.Fatal(err)
				}
				if bench.settle {
					_ = lease.Settle(ctx, cost{TPM: 5})
				}
			}
		})
	}
}

// TestAcquireAllocates next to nothing: one piece of memory and each bucket's id as stored; nothing where it
// is denied from memory.
func TestAcquireAllocates(t *testing.T) {
	for _, test := range []struct {
		name   string
		entity entity
		denied *runtime.DeniedError
		want   float64
	}{
		{"admitted", user{"123"}, nil, 2},
		{"admitted, two buckets", member{"123", "42"}, nil, 3},
		{"denied", user{"123"}, &runtime.DeniedError{}, 0},
		{"denied, two buckets", member{"123", "42"}, &runtime.DeniedError{}, 0},
	} {
		r := openStub(t, &stub{denied: test.denied})
		var err error
		n := testing.AllocsPerRun(100, func() { _, err = r.Acquire(t.Context(), test.entity, cost{TPM: 10}) })
		equal(t, test.name+": allocations", n, test.want)
		if denied, ok := errors.AsType[*runtime.DeniedError](err); ok != (test.denied != nil) ||
			denied != test.denied {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
