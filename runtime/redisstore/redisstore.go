package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/internal/seal"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/underway"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/window"
	"github.com/sluice-go/sluice/runtime/store"
)

// Store implements store.Store on one Redis: a node, a master that Sentinels watch, or a cluster. It is
// safe for concurrent use, by several Limiters too.
type Store struct {
	options
	db  database.DB
	err error
}

// Option configures New.
type Option func(*options) error

type options struct {
	prefix  string
	buckets int
	jitter  func() float64 // in [0, 1)

	slowAfter time.Duration // then a pipeline no longer counts against maxPipelines, and no call joins a read
}

// Defaults of options.
const (
	DefaultPrefix     = "sluice:"
	DefaultImageCache = 100_000
)

// Prefix sets the start of all the store's keys; the default is sluice:. Limiters with different prefixes
// can use one Redis without sharing a bucket. The prefix may not be empty.
func Prefix(prefix string) Option {
	return func(o *options) error {
		if prefix == "" { // for example an environment variable that is not set
			return fmt.Errorf(`redisstore.Prefix(""): want the start of all keys, as in "billing:"`)
		}
		o.prefix = prefix
		return nil
	}
}

// ImageCache sets how many buckets each Limiter caches as last seen, with the limits in force for them. The
// default is 100,000, the least is 1; a bucket with two limits takes some 600 bytes, and 300 more for each of
// them that has windows. For a bucket that is not cached, the next call reads the overrides first.
func ImageCache(buckets int) Option {
	return func(o *options) error {
		if buckets < 1 {
			return fmt.Errorf("redisstore.ImageCache(%d): want at least 1", buckets)
		}
		o.buckets = buckets
		return nil
	}
}

// New returns a store on client. It does no I/O; a bad option is reported by the generated New. The
// client's retries do not apply to script calls that charge buckets: the store knows which of them are safe
// to repeat.
//
// Processes that share buckets need clients of the same kind. A *redis.ClusterClient or a *redis.Ring
// spreads keys over nodes, and its keys have another form: an entity has a bucket for each root that its
// chains end with. redis.NewFailoverClusterClient returns such a client too. The client may not read from
// replicas, which lag behind.
func New(client redis.UniversalClient, opts ...Option) *Store {
	s := &Store{options: options{
		prefix: DefaultPrefix, buckets: DefaultImageCache, jitter: rand.Float64, slowAfter: slowAfter,
	}}
	if client == nil {
		s.err = fmt.Errorf("redisstore.New: the client is nil")
	}
	if cluster, ok := client.(*redis.ClusterClient); ok && cluster.Options().ReadOnly {
		s.err = fmt.Errorf("redisstore.New: the client reads from replicas, which lag behind: " +
			"want one without ReadOnly, RouteByLatency and RouteRandomly")
	}
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt(&s.options); err != nil && s.err == nil {
			s.err = err
		}
	}
	s.db = database.DB{Client: client, Keys: database.Keys{Prefix: s.prefix, HashTags: sharded(client)}}
	return s
}

// Sealed implements store.Store.
func (s *Store) Sealed(seal.Sealed) {}

// Open implements store.Store.
func (s *Store) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	if s.err != nil {
		return nil, &store.SetupError{What: s.err.Error(), Do: "correct the call"}
	}
	opened := &session{Store: s, env: env, loops: newLooping()}
	var err error
	if opened.buckets, err = lru.New[bucketKey, *cachedBucket](s.options.buckets); err != nil {
		return nil, err
	}
	if opened.lookups, err = lookups.NewMembers(s.options.buckets, lookups.DefaultTurns, env, &opened.background,
		opened.readMember); err != nil {
		return nil, err
	}
	opened.queues.single = newQueue(opened)
	opened.reads = underway.Reads[overrideKey, *override]{
		Tasks: &opened.background, Now: opened.now, Joinable: lookups.TTL(min(env.CacheTTL, s.slowAfter)),
	}
	for _, def := range defs {
		generated, ok := def.(Scripter)
		if !ok {
			return nil, &store.SetupError{
				What: fmt.Sprintf("resource %s was not generated for Redis", def.Spec().Resource),
				Do:   "add `stores: [redis]` to limits.yaml and run `sluice generate`",
			}
		}
		if spec := def.Spec(); spec.Regions != nil { // every region would admit the whole limit
			return nil, &store.SetupError{
				What: fmt.Sprintf("resource %s is global, and the store on Redis does not divide limits "+
					"among regions", spec.Resource),
				Do: "leave it out of the limits.yaml that is for Redis, or remove `global` from it",
			}
		}
		r, err := newResource(generated, opened.loops, s.options.buckets)
		if err != nil {
			return nil, err
		}
		opened.resources = append(opened.resources, r)
	}
	return opened, nil
}

// session is a Store opened for one Limiter.
type session struct {
	*Store
	env        *store.Env
	resources  []*resource
	loops      *looping
	server     window.Clock
	buckets    *lru.Cache[bucketKey, *cachedBucket]
	lookups    *lookups.Members
	queues     queues
	reads      underway.Reads[overrideKey, *override]
	background background.Tasks
	fills      atomic.Int64 // counts the fills that the session has made, failed ones too

	unknownPlan sync.Once // logs it
}

// now returns the session's time in milliseconds. It determines when cached values expire, and it dates
// images within this process. Refills go by Redis's own clock.
func (s *session) now() int64 { return s.env.Clock.Now().UnixMilli() }

// Now implements store.Session.
func (s *session) Now(reading time.Time) int64 { return s.server.At(reading.UnixMilli()) }

// Close implements store.Session: it waits until lazy settles are written and abandoned charges are
// refunded.
func (s *session) Close(ctx context.Context) error { return s.background.Wait(ctx) }

var _ store.Store = (*Store)(nil)
