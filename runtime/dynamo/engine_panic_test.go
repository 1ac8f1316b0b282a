package dynamo

import (
	"context"
	"testing"
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
	gateway := o.gateway(
		t,
		runtime.CallDefaults(runtime.OnUnavailable(store.Deny), runtime.Budget(10*time.Second)),
		runtime.WithObserver(&store.Observer{Store: func(context.Context, store.StoreEvent) {
			if broken {
				broken = false
				panic("an observer's bug")
			}
		}}),
	)
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
