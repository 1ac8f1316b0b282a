package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/internal/seal"
)

// Store implements runtime.Store on one Redis: a node, what a Sentinel watches, or a cluster. It is safe for concurrent use, by
// several Limiters too.
type Store struct {
	client redis.UniversalClient
	options
	err error
}

// Option configures New.
type Option func(*options) error

type options struct {
	keys    keys
	buckets int
	jitter  func() float64 // in [0, 1)
	hung    time.Duration  // after which a flight holds up nobody else
}

// Defaults of options.
const (
	DefaultPrefix     = "sluice:"
	DefaultImageCache = 100_000
)

// Prefix sets what all the store's keys start with; the default is sluice:. Limiters of different prefixes share one Redis and no
// bucket. It may not be empty.
func Prefix(prefix string) Option {
	return func(o *options) error {
		if prefix == "" { // as a variable that is not set
			return fmt.Errorf(`redisstore.Prefix(""): want what keys start with, as in "billing:"`)
		}
		o.keys.prefix = prefix
		return nil
	}
}

// ImageCache sets how many buckets the store remembers as last seen, with the limits in force for them; the default is
// 100,000, of some 600 bytes each where a bucket has two limits. One that was forgotten costs the next call on it a read of its
// overrides.
func ImageCache(buckets int) Option {
	return func(o *options) error {
		if buckets < 1 {
			return fmt.Errorf("redisstore.ImageCache(%d): want at least 1", buckets)
		}
		o.buckets = buckets
		return nil
	}
}

// New returns a store on client. It does no I/O; a bad option is reported by the generated New. The client's retries do not apply
// to what charges buckets: the store knows what is safe to repeat.
//
// Processes that share buckets have clients of the same sort. Those that spread keys over nodes, a *redis.ClusterClient or a
// *redis.Ring, need keys of their own for that: with them an entity has a bucket for each root that its chains end with. What
// redis.NewFailoverClusterClient returns is one of them. It may not read from replicas, which are behind.
func New(client redis.UniversalClient, opts ...Option) *Store {
	s := &Store{client: client, options: options{
		keys: keys{DefaultPrefix, sharded(client)}, buckets: DefaultImageCache, jitter: rand.Float64, hung: patience,
	}}
	if client == nil {
		s.err = fmt.Errorf("redisstore.New: the client is nil")
	}
	if cluster, ok := client.(*redis.ClusterClient); ok && cluster.Options().ReadOnly {
		s.err = fmt.Errorf("redisstore.New: the client reads from replicas, which are behind: want one without ReadOnly, RouteByLatency and RouteRandomly")
	}
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt(&s.options); err != nil && s.err == nil {
			s.err = err
		}
	}
	return s
}

// Sealed implements runtime.Store.
func (s *Store) Sealed(seal.Sealed) {}

// Open implements runtime.Store.
func (s *Store) Open(env *runtime.Env, defs ...runtime.Definition) (runtime.Session, error) {
	if s.err != nil {
		return nil, &runtime.SetupError{What: s.err.Error(), Do: "correct the call"}
	}
	opened := &session{Store: s, env: env, fallback: newScript(anyScript)}
	var err error
	if opened.buckets, err = lru.New[bucketKey, *memory](s.options.buckets); err != nil {
		return nil, err
	}
	if opened.lookups, err = lookups.New(s.options.buckets, env, &opened.background, opened.readMember); err != nil {
		return nil, err
	}
	opened.line = newLine(opened)
	for _, def := range defs {
		generated, ok := def.(Scripter)
		if !ok {
			return nil, &runtime.SetupError{
				What: fmt.Sprintf("resource %s was not generated for Redis", def.Spec().Resource),
				Do:   "add `stores: [redis]` to limits.yaml and run `sluice generate`",
			}
		}
		if spec := def.Spec(); spec.Regions != nil { // with the whole limit in each, all together would admit a multiple
			return nil, &runtime.SetupError{
				What: fmt.Sprintf("resource %s is global, and the store on Redis does not share limits out by regions", spec.Resource),
				Do:   "leave it out of the limits.yaml that is for Redis, or remove `global` from it",
			}
		}
		opened.resources = append(opened.resources, opened.newResource(generated))
	}
	return opened, nil
}

// session is a Store opened for one Limiter.
type session struct {
	*Store
	env        *runtime.Env
	resources  []*resource
	fallback   *script
	buckets    *lru.Cache[bucketKey, *memory]
	lookups    *lookups.Members
	line       *line
	masters    sync.Map // of a cluster, lines by address
	background background.Tasks
}

// now is the session's clock, in milliseconds. It says when what is remembered is due, and dates images for this process;
// Redis's own says what has been refilled.
func (s *session) now() int64 { return s.env.Clock.Now().UnixMilli() }

// Close implements runtime.Session: it waits until lazy settles are written, and what was charged in vain is given back.
func (s *session) Close(ctx context.Context) error { return s.background.Wait(ctx) }

var _ runtime.Store = (*Store)(nil)
