package evolution_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	v1 "github.com/sluice-go/sluice/internal/test/evolution/v1/limits"
	v2 "github.com/sluice-go/sluice/internal/test/evolution/v2/limits"
	v3 "github.com/sluice-go/sluice/internal/test/evolution/v3/limits"
	v4 "github.com/sluice-go/sluice/internal/test/evolution/v4/limits"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// world is one table, and the time that all processes on it have.
type world struct {
	client *dynamodb.Client
	table  string
	now    atomic.Int64 // ms
	wrap   func(dynamo.API) dynamo.API
}

// start is when a world begins: years ahead, so that no ttl has passed for the engine.
const start = 1_800_000_000_000

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{wrap: func(api dynamo.API) dynamo.API { return api }}
	w.now.Store(start)
	w.client = storetest.Dated(dynamotest.Client(t), w)
	w.table = dynamotest.Table(t, w.client, operator.Table)
	return w
}

// Now implements runtime.Clock.
func (w *world) Now() time.Time { return time.UnixMilli(w.now.Load()) }

// After implements runtime.Clock: a pause takes no time. A deferred settle never becomes overdue, and goes
// with the bucket's next write.
func (w *world) After(d time.Duration) <-chan time.Time {
	if d == lazyDelay {
		return nil
	}
	over := make(chan time.Time)
	close(over)
	return over
}

// lazyDelay is how long a lazy settle may wait.
const lazyDelay = 100 * time.Millisecond

// later lets time pass.
func (w *world) later(d time.Duration) { w.now.Add(d.Milliseconds()) }

// cost is what a call asks, or comes to, in whole tokens: by every version what it knows of that.
type cost struct{ rpm, tpm, tpd int64 }

// lease is what every version's leases have in common.
type lease struct {
	settle  func(cost) error
	release func()
}

// process is a running binary of some version.
type process struct {
	acquire   func(ctx context.Context, user string, c cost, opts ...runtime.CallOption) (*lease, error)
	close     func()
	reshapes  atomic.Int64 // written by updates of single buckets
	generic   atomic.Int64 // writes built from the image
	contended atomic.Int64 // when a write was refused last, ms
}

// deploy starts a process of a version.
func (w *world) deploy(t testing.TB, version int) *process {
	t.Helper()
	p := &process{}
	store := dynamo.New(w.wrap(w.client), w.table)
	opts := []runtime.Option{
		runtime.WithClock(w), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithSettleTimeout(20 * time.Second), runtime.WithCacheTTL(100 * 24 * time.Hour),
		runtime.WithCallDefaults(runtime.Budget(time.Minute), runtime.OnUnavailable(runtime.Deny)),
		runtime.WithObserver(&runtime.Observer{Store: func(_ context.Context, e runtime.StoreEvent) {
			if e.Outcome == "applied" && e.Path == "reshape" {
				p.reshapes.Add(1)
			}
			if e.Outcome == "applied" && e.Generic {
				p.generic.Add(1)
			}
			if e.Outcome == "refused" {
				p.contended.Store(w.now.Load())
			}
		}}),
	}
	var l *runtime.Limiter
	var err error
	switch version {
	case 1:
		var of *v1.Limiter
		if of, err = v1.New(store, opts...); err == nil {
			l, p.acquire = of.Limiter, by(t, of.Chat, func(user string) v1.ChatEntity {
				return v1.User{ID: user, Project: v1.Project{ID: "p"}}
			},
				func(c cost) v1.ChatCost { return v1.ChatCost{RPM: c.rpm, TPM: c.tpm} })
		}
	case 2:
		var of *v2.Limiter
		if of, err = v2.New(store, opts...); err == nil {
			l, p.acquire = of.Limiter, by(t, of.Chat, func(user string) v2.ChatEntity {
				return v2.User{ID: user, Project: v2.Project{ID: "p"}}
			},
				func(c cost) v2.ChatCost { return v2.ChatCost{RPM: c.rpm, TPM: c.tpm, TPD: c.tpd} })
		}
	case 3:
		var of *v3.Limiter
		if of, err = v3.New(store, opts...); err == nil {
			l, p.acquire = of.Limiter, by(t, of.Chat, func(user string) v3.ChatEntity {
				return v3.User{ID: user, Project: v3.Project{ID: "p"}}
			},
				func(c cost) v3.ChatCost { return v3.ChatCost{Tokens: c.tpm, TPD: c.tpd} })
		}
	case 4:
		var of *v4.Limiter
		if of, err = v4.New(store, opts...); err == nil {
			l, p.acquire = of.Limiter, by(t, of.Chat, func(user string) v4.ChatEntity {
				return v4.User{ID: user, Project: v4.Project{ID: "p"}}
			},
				func(c cost) v4.ChatCost { return v4.ChatCost{RPM: c.rpm, TPM: c.tpm, TPD: c.tpd} })
		}
	default:
		t.Fatalf("there is no version %d", version)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.close = func() {
		if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(p.close)
	return p
}

// by hides a version's types.
func by[E store.Entity, C any](
	t testing.TB, of *runtime.Resource[E, C], entity func(string) E, costs func(cost) C,
) func(context.Context, string, cost, ...runtime.CallOption) (*lease, error) {
	t.Helper()
	return func(ctx context.Context, user string, c cost, opts ...runtime.CallOption) (*lease, error) {
		l, err := of.Acquire(ctx, entity(user), costs(c), opts...)
		if err != nil {
			return nil, err
		}
		return &lease{
			settle:  func(actual cost) error { return l.Settle(ctx, costs(actual)) },
			release: func() { l.Release(ctx) },
		}, nil
	}
}

// take has p acquire for user a, of project p.
func take(t testing.TB, p *process, c cost, opts ...runtime.CallOption) *lease {
	t.Helper()
	l, err := p.acquire(t.Context(), "a", c, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// denied reports whether tokens were missing; any other error fails the test.
func denied(t testing.TB, err error) bool {
	t.Helper()
	_, is := errors.AsType[*runtime.DeniedError](err)
	if err != nil && !is {
		t.Fatal(err)
	}
	return is
}

// key is that of an entity's bucket.
func key(entity string) codec.Item {
	return codec.Item{"PK": codec.S("ENTITY#" + entity), "SK": codec.S("#BUCKET#" + v1.Chat)}
}

// item returns the bucket of an entity, as stored.
func (w *world) item(t testing.TB, entity string) codec.Item {
	t.Helper()
	out, err := w.client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &w.table, ConsistentRead: aws.Bool(true), Key: key(entity),
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// attributes returns the names of an entity's attributes of one limit.
func (w *world) attributes(t testing.TB, entity, limit string) (names []string) {
	t.Helper()
	for name := range w.item(t, entity) {
		if strings.HasPrefix(name, "b_"+limit+"_") {
			names = append(names, name)
		}
	}
	return names
}

// state is a bucket as stored: its revision, and balances by limit.
type state struct {
	revision int64
	refilled int64 // ms
	ttl      int64 // s
	balances map[string]bucket.Balance
}

// state reads the bucket of an entity. One that is not there has no balances.
func (w *world) state(t testing.TB, entity string) state {
	t.Helper()
	img, err := operator.Inspect(t.Context(), w.client, w.table, entity, v1.Chat)
	if err != nil {
		t.Fatal(err)
	}
	if img == nil {
		return state{}
	}
	s := state{refilled: img.Refilled, ttl: img.TTL, balances: map[string]bucket.Balance{}}
	s.revision, _ = operator.SplitVersion(img.Version)
	for _, named := range img.Extra {
		s.balances[named.Name] = named.Balance
	}
	return s
}

// level is what a limit of s has now, in millitokens.
func (w *world) level(s state, limit string) int64 {
	return bucket.Available(s.balances[limit], s.refilled, w.now.Load())
}
