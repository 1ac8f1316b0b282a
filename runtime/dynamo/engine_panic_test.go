package dynamo

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestObserverPanics: an observer's panic reaches the caller on whose goroutine it runs, and no other. The
// next call to the same buckets is served, alone or with others that wait behind it.
func TestObserverPanics(t *testing.T) {
	o := newObserved(t)
	broken := false
	// With one turn, nobody is served any more if a panic keeps it.
	gateway, err := limits.New(
		New(o.client, o.table, InFlight(1)),
		runtime.WithCallDefaults(runtime.OnUnavailable(store.Deny), runtime.Budget(10*time.Second)),
		runtime.WithObserver(&store.Observer{Store: func(context.Context, store.StoreEvent) {
			if broken {
				broken = false
				panic("an observer's bug")
			}
		}}),
	)
	if err != nil {
		t.Fatal(err)
	}
	project := limits.Project{ID: "1"}
	for name, acquire := range map[string]func(context.Context) error{
		"one bucket": func(ctx context.Context) error {
			_, err := gateway.Embeddings.Acquire(ctx, project, limits.EmbeddingsCost{RPS: 1})
			return err
		},
		"a chain": func(ctx context.Context) error {
			_, err := gateway.GPT4.Acquire(ctx, limits.User{ID: "1", Project: project}, limits.GPT4Cost{TPM: 1})
			return err
		},
	} {
		if err := acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		broken = true
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: nobody hears of the panic", name)
				}
			}()
			_ = acquire(t.Context())
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if err := acquire(ctx); err != nil {
			t.Errorf("%s: the next call: %v", name, err)
		}
		cancel()
	}
}

// TestObserverPanicsBesideARead: a call whose observer panics lets go of the bucket although overrides have
// changed that were read beside its write. The next call does not wait for it.
func TestObserverPanicsBesideARead(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *bubble) {
		t.Helper()
		var broken atomic.Bool
		observer := &store.Observer{Store: func(_ context.Context, e store.StoreEvent) {
			if e.Call == "UpdateItem" && broken.Swap(false) {
				panic("an observer's bug")
			}
		}}
		def := lineage(second(generated(t)), store.CascadeNone, minute(1000))
		p := b.post(t, []runtime.Option{runtime.WithCacheTTL(time.Minute), runtime.WithObserver(observer)}, def)
		acquire := func() error {
			_, err := p.at[0].Acquire(t.Context(), kin{"1"}, tokens{1})
			return err
		}
		if err := acquire(); err != nil {
			t.Fatal(err)
		}
		elapse(time.Minute)
		b.override(t, def)
		broken.Store(true)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("nobody hears of the panic")
				}
			}()
			_ = acquire()
		}()
		synctest.Wait() // the read shows the change
		began := time.Now()
		if err := acquire(); err != nil || time.Since(began) > 100*time.Millisecond {
			t.Errorf("the next call: %v after %v", err, time.Since(began))
		}
		closeAll(t, p.Limiter)
	})
}
