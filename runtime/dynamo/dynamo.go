// Package dynamo keeps buckets in one DynamoDB table.
//
// A bucket, one entity on one resource, is one item. Each acquire of one bucket is one conditional update of it: in the
// steady state one round trip, one write unit and no read. The write paths, of which the generated code has the
// expressions:
//
//	create   puts a full bucket less the cost, where a read or a failed write showed none
//	normal   claims the refill of all limits and takes the cost, if nobody else has claimed since
//	retry    takes the cost from the stored tokens, whoever else writes, if nothing would be clamped
//	adjust   gives tokens back
//	reshape  gives a bucket of other numbers those in force now, and takes the cost
//
// A write whose condition failed returns the item, so that the next try, or a denial, starts from the truth.
//
// A process has one write at a time under way for those who want one bucket, and one for those who want one chain; who wants to
// write meanwhile is served by the next one, together with all others who wait: first come first served, each with an outcome of its own. A caller who is alone does not wait for company.
// Who would be refused by what was the truth within the last second is refused from memory, at no cost.
//
// An acquire of several buckets, a chain's or several resources', is one transaction in which each takes its own path; one
// of a chain that is compensated is a write for each, given back if one refuses. Settles and releases write
// to each on its own. Lazy ones are taken along by the bucket's next write, be it a transaction's, or go by themselves after 100 ms.
//
// Besides buckets the table holds entities, for look-ups of who belongs to whom (Members), and overrides of limits
// (Overrides), both of which a process remembers for a while. What is read together comes in one BatchGetItem.
//
// The store repeats what had no answer, within bounds, because it knows what is safe: a charge is recognised by its op, or
// its transaction's token; a settle that gives tokens back goes out once.
package dynamo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/internal/seal"
	"github.com/sluice-go/sluice/runtime/store"
)

// API is the part of *dynamodb.Client that a store calls.
type API = wire.API

// Store implements store.Store on one table. It is safe for concurrent use, by several Limiters too.
type Store struct {
	api   wire.API
	table string
	options
	err        error
	background background.Tasks // of all its Limiters
}

// Option configures New.
type Option func(*options) error

type options struct {
	images   int
	attempts int
	perLimit bool           // missing buckets may have per-limit items
	jitter   func() float64 // in [0, 1)
	choose   func(*plan.Demand, plan.State, int64) plan.Plan
	joint    func(context.Context, []*request) context.Context // nil; the simulation notes whom a write serves
}

// Defaults of options.
const (
	DefaultImageCache = 100_000
	DefaultAttempts   = 8
)

// ImageCache sets how many buckets the store remembers as last seen; the default is 100,000, of some 800 bytes each
// where a bucket has two limits. One that was forgotten costs a read.
func ImageCache(buckets int) Option {
	return func(o *options) error {
		if buckets < 1 {
			return fmt.Errorf("dynamo.ImageCache(%d): want at least 1", buckets)
		}
		o.images = buckets
		return nil
	}
}

// Attempts sets how many tries an acquire has, of writes and of reads without an answer, before it fails: with a
// *store.ContendedError where the last one lost its race, else with a *store.UnavailableError. The default is 8.
func Attempts(n int) Option {
	return func(o *options) error {
		if n < 1 {
			return fmt.Errorf("dynamo.Attempts(%d): want at least 1", n)
		}
		o.attempts = n
		return nil
	}
}

// New returns a store on table, its name or its ARN. It does no I/O; a bad option is reported by the generated New. Retries of
// the client do not apply to the store's writes: the store repeats, because it knows what is safe to repeat.
func New(client wire.API, table string, opts ...Option) *Store {
	s := &Store{api: client, table: table, options: options{
		images: DefaultImageCache, attempts: DefaultAttempts, jitter: rand.Float64, choose: plan.Choose,
	}}
	if client == nil {
		s.err = fmt.Errorf("dynamo.New: the client is nil")
	}
	if _, ok := operator.TableName(table); !ok && s.err == nil {
		s.err = fmt.Errorf("dynamo.New: table %q: want 3 to 255 letters, digits, '_', '.' and '-', or an ARN", table)
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

// Wait returns once nothing of the store's Limiters runs in the background, such as the giving back of a lost charge, or
// with ctx's error. A program closes its Limiters, each of which waits for its own; this is for tests, which may not know them.
func (s *Store) Wait(ctx context.Context) error { return s.background.Wait(ctx) }

// Sealed implements store.Store.
func (s *Store) Sealed(seal.Sealed) {}

// Open implements store.Store.
func (s *Store) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	if s.err != nil {
		return nil, &store.SetupError{What: s.err.Error(), Do: "correct the call"}
	}
	images, err := lru.New[bucketKey, *memory](s.images)
	if err != nil {
		return nil, err
	}
	opened := &session{
		Store: s, env: env, images: images,
		background: background.Tasks{Within: &s.background}, retries: wire.NewBudget(wire.BudgetTokens), closing: make(chan struct{}),
		envelopes: sync.Pool{New: func() any { return new(envelope) }}, once: []func(*dynamodb.Options){wire.NoRetry},
	}
	if opened.lookups, err = lookups.New(s.images, env, &opened.background, opened.readMember); err != nil {
		return nil, err
	}
	for _, def := range defs {
		spec := def.Spec()
		generated, ok := def.(codec.Resource)
		if !ok {
			return nil, &store.SetupError{
				What: fmt.Sprintf("resource %s was not generated for DynamoDB", spec.Resource),
				Do:   "add `stores: [dynamodb]` to limits.yaml and run `sluice generate`",
			}
		}
		opened.resources = append(opened.resources, &resource{
			Resource: generated, def: def, spec: spec, sort: item.KeyOf(generated.Key("")).SK, kinds: make(kindLevels, len(spec.Kinds)),
		})
		opened.revision = max(opened.revision, spec.Revision)
	}
	return opened, nil
}

// resource is a generated resource with what is remembered of it.
type resource struct {
	codec.Resource
	def   store.Definition
	spec  *store.Spec
	sort  string // key of its buckets
	kinds kindLevels
}

// resource returns what was opened as def. There are few, and an interface is hashed slower than compared.
func (s *session) resource(def store.Definition) *resource {
	for _, r := range s.resources {
		if r.def == def {
			return r
		}
	}
	return nil
}

// session is a Store opened for one Limiter.
type session struct {
	*Store
	env        *store.Env
	resources  []*resource
	revision   int64 // the schema's
	images     *lru.Cache[bucketKey, *memory]
	lookups    *lookups.Members
	beat       atomic.Pointer[override.Heartbeat] // as last read; nil where no resource has regions
	background background.Tasks
	retries    *wire.Budget
	envelopes  sync.Pool // of *envelope
	once       []func(*dynamodb.Options)
	skew       wire.SkewWatch
	recorded   sync.Once     // this revision in the table
	carrying   sync.Once     // that per-limit items are carried over, in the table
	closing    chan struct{} // closed when nothing is to wait any more
	closed     sync.Once
}

// now is the session's clock, in milliseconds.
func (s *session) now() int64 { return s.env.Clock.Now().UnixMilli() }

// Close implements store.Session: it has lazy settles written, and waits until lost charges are given back.
func (s *session) Close(ctx context.Context) error {
	s.closed.Do(func() { close(s.closing) })
	return s.background.Wait(ctx)
}

var (
	_ store.Store = (*Store)(nil)
	_ wire.API    = (*dynamodb.Client)(nil)
)
