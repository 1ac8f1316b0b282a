package traffic

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/gen/testdata/golden/inflight/out"
	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/internal/test/traffic/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// Table is the name of the table.
const Table = "traffic"

// Entity is whose call it is.
type Entity struct {
	User    string // "" for a call that charges the project alone
	Project string
}

// Admission is how a call was admitted.
type Admission uint8

// Admissions.
const (
	Recorded Admission = iota // the table has a record of the call
	ByLocal                   // the failure policy admitted it, by a bucket in the process
	ByAllow                   // the failure policy admitted it, by nothing
)

// Process is one process with its limiter.
type Process interface {
	// Acquire takes one token of each bucket of the entity. It is called concurrently.
	Acquire(ctx context.Context, who Entity) (Admission, error)
	// Close ends the process when all its calls have ended.
	Close(ctx context.Context) error
}

// Open starts a process; the table is there.
type Open func(engine *memdynamo.Engine, load *Load) (Process, error)

// Sluice starts a process of this project's limiter.
func Sluice(engine *memdynamo.Engine, load *Load) (Process, error) { return open(engine, load) }

// Prefetched is Sluice with prefetch: 200ms.
func Prefetched(engine *memdynamo.Engine, load *Load) (Process, error) {
	return open(engine, load, runtime.Prefetch(200*time.Millisecond))
}

func open(engine *memdynamo.Engine, load *Load, defaults ...runtime.CallOption) (Process, error) {
	opts := []runtime.Option{
		runtime.WithCallDefaults(append(defaults, runtime.OnUnavailable(load.Policy))...),
		runtime.WithLogger(slog.New(slog.DiscardHandler)),
	}
	if load.Resource == inflight.Calls {
		return newSlotted(dynamo.New(simulated.Client(engine), Table), opts...)
	}
	lim, err := generated.New(dynamo.New(simulated.Client(engine), Table), opts...)
	if err != nil {
		return nil, err
	}
	switch load.Resource {
	case generated.Small:
		return &sluice[generated.SmallEntity, generated.SmallCost]{
			Limiter: lim.Limiter, acquirer: lim.Small, full: load.PerSecond(),
			user:    func(u generated.User) generated.SmallEntity { return u },
			project: func(p generated.Project) generated.SmallEntity { return p },
			left:    func(c generated.SmallCost) int64 { return c.RPS },
		}, nil
	case generated.Large:
		return &sluice[generated.LargeEntity, generated.LargeCost]{
			Limiter: lim.Limiter, acquirer: lim.Large, full: load.PerSecond(),
			user:    func(u generated.User) generated.LargeEntity { return u },
			project: func(p generated.Project) generated.LargeEntity { return p },
			left:    func(c generated.LargeCost) int64 { return c.RPS },
		}, nil
	case generated.Pooled:
		return &sluice[generated.PooledEntity, generated.PooledCost]{
			Limiter: lim.Limiter, acquirer: lim.Pooled, full: load.PerSecond(),
			user:    func(u generated.User) generated.PooledEntity { return u },
			project: func(p generated.Project) generated.PooledEntity { return p },
			left:    func(c generated.PooledCost) int64 { return c.RPS },
		}, nil
	case generated.Largepooled:
		return &sluice[generated.LargepooledEntity, generated.LargepooledCost]{
			Limiter: lim.Limiter, acquirer: lim.Largepooled, full: load.PerSecond(),
			user:    func(u generated.User) generated.LargepooledEntity { return u },
			project: func(p generated.Project) generated.LargepooledEntity { return p },
			left:    func(c generated.LargepooledCost) int64 { return c.RPS },
		}, nil
	}
	return nil, fmt.Errorf("resource %q is unknown", load.Resource)
}

// sluice is a process whose calls are on one resource.
type sluice[E store.Entity, C any] struct {
	*runtime.Limiter
	acquirer runtime.Acquirer[E, C]
	user     func(generated.User) E
	project  func(generated.Project) E
	left     func(C) int64
	full     int64 // tokens
}

// Acquire implements Process. By local, a lease took a token from buckets in the process, so that they are
// not full. By allow it took none. Then the bucket of a new entity is full, and so has to be its parent's.
func (s *sluice[E, C]) Acquire(ctx context.Context, who Entity) (Admission, error) {
	project := generated.Project{ID: who.Project}
	entity := s.project(project)
	if who.User != "" {
		entity = s.user(generated.User{ID: who.User, Project: project})
	}
	var cost C
	lease, err := s.acquirer.Acquire(ctx, entity, cost)
	switch {
	case err != nil:
		return 0, err
	case !lease.Degraded():
		return Recorded, nil
	case s.left(lease.Remaining()) < s.full:
		return ByLocal, nil
	}
	return ByAllow, nil
}
