package conformance

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/test/conformance/planned"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// program is a process with the resource of plans.
type program struct {
	*runtime.Limiter

	gpt4   *runtime.Resource[planned.GPT4Entity, planned.GPT4Cost]
	config *runtime.Config[planned.GPT4Entity, planned.GPT4Cost, planned.GPT4Limits]
	plans  *runtime.Plans[planned.Project, plan]

	session store.Session
	events  atomic.Int64 // requests to the store
	reads   atomic.Int64 // those that read
}

// Open implements store.Store.
func (o opener) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	s, err := o.Store.Open(env, defs...)
	o.program.session = s
	return s, err
}

// opener is a store that shows the session of its Limiter.
type opener struct {
	store.Store
	*program
}

// planCacheTTL is the time after which a change is in force everywhere.
const planCacheTTL = time.Minute

// program opens w's store as a process of its own, whose limits.yaml has the plans up to the last one.
func (w *planWorld) program(last plan) *program {
	w.Helper()
	p, def := &program{}, planning(w, int(last))
	b := runtime.NewBuilder(opener{w.store.Store, p}, runtime.WithClock(w.store.Clock),
		runtime.WithLogger(slog.New(slog.DiscardHandler)), runtime.WithCacheTTL(planCacheTTL),
		runtime.WithObserver(&store.Observer{Store: func(_ context.Context, e store.StoreEvent) {
			p.events.Add(1)
			if slices.Contains([]string{"member", "levels", "read"}, e.Path) {
				p.reads.Add(1)
			}
		}}),
		runtime.WithCallDefaults(runtime.Budget(time.Minute), runtime.OnUnavailable(store.Deny)))
	costs := func(c planned.GPT4Cost, dst []int64) []int64 { return append(dst, c.RPM, c.TPM) }
	p.gpt4 = runtime.Bind[planned.GPT4Entity](b, def, costs,
		func(v []int64) planned.GPT4Cost { return planned.GPT4Cost{RPM: v[0], TPM: v[1]} })
	p.config = runtime.BindConfig[planned.GPT4Entity](b, def, costs,
		func(l planned.GPT4Limits, dst []*runtime.Rate) []*runtime.Rate {
			return append(dst, l.RPM, runtime.InWindow(l.TPM))
		}, func(v []*runtime.Rate) planned.GPT4Limits {
			return planned.GPT4Limits{RPM: v[0], TPM: v[1].InWindow()}
		})
	p.plans = runtime.BindPlans[planned.Project, plan](b, planNames[:last]...)
	var err error
	if p.Limiter, err = b.Limiter(); err != nil {
		w.Fatalf("%v", err)
	}
	return p
}
