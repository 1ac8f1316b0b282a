package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/redistest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/store"
)

// server is a Redis for one test: a miniredis, or a redis-server (SLUICE_REDIS=server), under keys of the
// test's own.
type server struct {
	mini      *miniredis.Miniredis // nil for a real one
	addr      string
	prefix    string
	slowAfter time.Duration // as options have it
}

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{prefix: "sluice-test-" + rand.Text()[:8] + ":", slowAfter: time.Hour}
	if !redistest.OnServer(t) {
		s.mini = miniredis.RunT(t)
		s.addr = s.mini.Addr()
		return s
	}
	s.addr = redistest.Addr(t)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		client := redis.NewClient(&redis.Options{Addr: s.addr})
		defer func() { _ = client.Close() }()
		keys := client.Scan(ctx, 0, s.prefix+"*", 1000).Iterator()
		for keys.Next(ctx) {
			client.Del(ctx, keys.Val())
		}
		if err := keys.Err(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// simulated is newServer for a test that sets its time, or breaks it: on miniredis alone.
func simulated(t testing.TB) *server {
	t.Helper()
	s := newServer(t)
	if s.mini == nil {
		t.Skip("needs a Redis whose clock can be set")
	}
	s.at(0)
	return s
}

// t0 is when the time of a simulated server starts, in ms.
const t0 = 1_800_000_000_000

// at sets a simulated server's clock, in ms since its start.
func (s *server) at(ms int64) { s.mini.SetTime(time.UnixMilli(t0 + ms)) }

// client returns a client of s, as change makes it.
func (s *server) client(t testing.TB, change ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: s.addr}
	for _, f := range change {
		f(o)
	}
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// definition is a resource as generated code has it, with scripts of the test's.
type definition struct {
	spec   *store.Spec
	script func(chain int) string
}

func (d *definition) Spec() *store.Spec       { return d.spec }
func (d *definition) Script(chain int) string { return d.script(chain) }

// gpt4 is a resource of two limits for users, and for their projects.
func gpt4() *definition {
	limits := []bucket.Limit{bucket.Per(60, time.Minute), bucket.Per(6000, time.Minute)}
	return &definition{&store.Spec{
		Resource: "gpt-4", Revision: 1, Limits: []string{"rpm", "tpm"},
		Kinds: []store.Kind{
			{Name: "user", Prefix: "user-", Parent: 1, PerCall: []int64{0, 0}, Limits: limits},
			{Name: "project", Prefix: "project-", Parent: store.NoParent, PerCall: []int64{0, 0},
				Limits: limits},
		},
	}, func(int) string { return "" }}
}

// caller is a user with a project, or without one.
type caller struct{ user, project string }

// Chain implements store.Entity.
func (w caller) Chain(dst []store.Link) []store.Link {
	dst = append(dst, store.Link{Kind: 0, ID: w.user, Lookup: w.project == "?"})
	if w.project != "" && w.project != "?" {
		dst = append(dst, store.Link{Kind: 1, ID: w.project})
	}
	return dst
}

// tokens2 is a cost of gpt4.
type tokens2 [2]int64

// process is a process with one resource.
type process struct {
	*runtime.Limiter
	*runtime.Resource[caller, tokens2]
	*events
	store   *Store
	session store.Session
}

// opened is a Store that shows the session of its Limiter.
type opened struct {
	*Store
	d *process
}

func (o opened) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	s, err := o.Store.Open(env, defs...)
	o.d.session = s
	return s, err
}

func (s *server) process(t testing.TB, client redis.UniversalClient, def *definition,
	opts ...runtime.Option) *process {
	t.Helper()
	d := &process{events: &events{}, store: New(client, Prefix(s.prefix), func(o *options) error {
		o.slowAfter = s.slowAfter
		return nil
	})}
	b := runtime.NewBuilder(opened{d.store, d}, append([]runtime.Option{
		runtime.WithObserver(d.observer()), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithCallDefaults(runtime.Budget(10*time.Second), runtime.OnUnavailable(store.Deny)),
	}, opts...)...)
	d.Resource = runtime.Bind[caller](b, def,
		func(c tokens2, dst []int64) []int64 { return append(dst, c[:len(def.spec.Limits)]...) },
		func(v []int64) (c tokens2) { copy(c[:], v); return c })
	var err error
	if d.Limiter, err = b.Limiter(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return d
}

// events is the store events that an observer has received.
type events struct {
	mu    sync.Mutex
	store []string
}

func (e *events) observer() *store.Observer {
	return &store.Observer{Store: func(_ context.Context, v store.StoreEvent) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if v.Outcome == database.UnloadedScript.String() { // whether that is so is another test's doing
			return
		}
		text := v.Path + " " + v.Outcome
		if v.Coalesced > 1 {
			text += " for " + strconv.Itoa(v.Coalesced)
		}
		e.store = append(e.store, text)
	}}
}

// taken returns the events since the last time.
func (e *events) taken() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	taken := e.store
	e.store = nil
	return taken
}

// calls compares the events since the last time with want.
func (e *events) calls(t testing.TB, want ...string) {
	t.Helper()
	if got := e.taken(); !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
}

// left holds what there is of entity.
func (d *process) left(t testing.TB, entity caller, want tokens2) {
	t.Helper()
	snap, err := d.Peek(t.Context(), entity)
	if err != nil {
		t.Fatal(err)
	}
	if snap.Available != want {
		t.Errorf("%v left, want %v", snap.Available, want)
	}
}

// isA reports whether err is an E.
func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// handClock is a process's time, which a test lets pass. A pause takes none of it.
type handClock struct{ since atomic.Int64 }

func (c *handClock) Now() time.Time { return time.UnixMilli(t0).Add(time.Duration(c.since.Load())) }
func (c *handClock) After(time.Duration) <-chan time.Time {
	over := make(chan time.Time)
	close(over)
	return over
}
func (c *handClock) pass(d time.Duration) { c.since.Add(int64(d)) }
