// Package dynamo keeps buckets in one DynamoDB table.
//
//	lim, err := limits.New(dynamo.New(client, "rate_limits", opts...)) // no I/O
//	if err != nil {
//		return nil, err
//	}
//	return lim, lim.Check(ctx) // before serving: the table is there and right, the clock is too
//
// A bucket, one entity on one resource, is one item. An acquire of one bucket is one conditional update: in
// the steady state one round trip, one write unit and no read. The write paths are:
//
//	create   puts a full bucket less the cost, if a read or a failed write showed none
//	normal   claims the refill of all limits and takes the cost, unless other writes have claimed it since
//	retry    takes the cost from the stored tokens, whatever other writes claim, if nothing would be clamped
//	adjust   gives tokens back
//	reshape  gives a bucket the numbers in force now, and takes the cost
//
// A write whose condition failed returns the item, so the next attempt, or a denial, starts from the truth. A
// session has one write under way for each bucket, and one for all chains with the same root. Requests that
// arrive meanwhile wait in a queue. The next write serves as many of them as it can, in order of arrival. For
// a second after it last saw a bucket, a session may deny from its cache, at no cost.
//
// An acquire of several buckets is one transaction in which each bucket takes its own path. A compensated
// chain is charged bucket by bucket, and given back if one fails. Settles and releases write each bucket by
// itself. A settle of unknown outcome that gives tokens back is never repeated. The table also holds entities
// and overrides (package operator), which processes cache. docs/design.md has the reasons.
package dynamo

import (
	"cmp"
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/members"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/scheduler"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/internal/namespace"
	"github.com/sluice-go/sluice/runtime/internal/seal"
	"github.com/sluice-go/sluice/runtime/store"
)

// API is the part of *dynamodb.Client that a store calls.
type API = wire.API

// Store keeps buckets in one table. It implements store.Store. It is safe for concurrent use, by several
// Limiters too.
type Store struct {
	api     API
	table   string
	options options
	seams   scheduler.Seams
	err     error            // of New, returned by Open
	running background.Tasks // of all its Limiters
}

// Option configures New. Each number is at least 1.
type Option func(*options) error

type options struct {
	buckets, attempts, inFlight int
	namespace                   item.Namespace
}

// Defaults of options.
const (
	DefaultImageCache = 100_000
	DefaultAttempts   = 8
	DefaultInFlight   = 64
)

// ImageCache sets how many buckets each Limiter caches; the default is 100,000. A bucket with two limits
// takes some 950 bytes. An acquire of a bucket that is not cached reads it first.
func ImageCache(buckets int) Option {
	return atLeastOne("ImageCache", buckets, func(o *options) { o.buckets = buckets })
}

// Attempts sets how many attempts an acquire has, of writes and of reads without an answer; the default is 8.
// Those that were throttled or met a transaction do not count, up to 32. After the last one it fails:
//   - with a *runtime.ContendedError if that attempt lost its race or met a transaction,
//   - with a *runtime.UnavailableError otherwise.
func Attempts(n int) Option {
	return atLeastOne("Attempts", n, func(o *options) { o.attempts = n })
}

// InFlight sets how many reads and writes of buckets a Limiter has under way at most, and how many look-ups
// of entities; the default is 64. Others wait for a turn, first come first served. A call without a turn at
// the end of its Budget fails with an *runtime.UnavailableError that is store.ErrNotSent.
func InFlight(n int) Option {
	return atLeastOne("InFlight", n, func(o *options) { o.inFlight = n })
}

// Namespace has the store use a part of the table, as a prefix of its hash keys, so that several owners of a
// limits.yaml share one table. Without it, the store uses the part without a name. The name is up to 64 of
// a-z, 0-9, '.', '_', '/' and '-', the first of them a letter or a digit. See operator.InNamespace.
func Namespace(name string) Option {
	return func(o *options) (err error) {
		o.namespace, err = item.ParseNamespace(name)
		return err
	}
}

// atLeastOne returns the option name, which sets n.
func atLeastOne(name string, n int, set func(*options)) Option {
	return func(o *options) error {
		if n < 1 {
			return fmt.Errorf("dynamo.%s(%d): want at least 1", name, n)
		}
		set(o)
		return nil
	}
}

// New returns a store on table, its name or its ARN. It does no I/O. The generated New returns the error of a
// bad option. The client's retries do not apply to writes and reads of buckets: the store repeats them
// itself, since it knows what is safe.
func New(client API, table string, opts ...Option) *Store {
	s := &Store{
		table:   table,
		options: options{buckets: DefaultImageCache, attempts: DefaultAttempts, inFlight: DefaultInFlight},
		seams:   scheduler.DefaultSeams(),
	}
	if _, ok := operator.TableName(table); client == nil {
		s.err = fmt.Errorf("dynamo.New: the client is nil")
	} else if !ok {
		s.err = fmt.Errorf("dynamo.New: %s", operator.WrongTable(table))
	}
	for _, opt := range opts {
		if opt != nil {
			s.err = cmp.Or(s.err, opt(&s.options))
		}
	}
	s.api = namespace.New(client, s.options.namespace)
	return s
}

// Wait returns once none of the store's Limiters has work in the background, or with ctx's error. It is for
// tests that do not hold the Limiters. A program closes its Limiters.
func (s *Store) Wait(ctx context.Context) error { return s.running.Wait(ctx) }

// Namespace returns the name of the store's namespace, "" for none.
func (s *Store) Namespace() string { return string(namespace.Of(s.api)) }

// Sealed implements store.Store.
func (s *Store) Sealed(seal.Sealed) {}

// Open implements store.Store.
func (s *Store) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	if s.err != nil {
		return nil, &store.SetupError{What: s.err.Error(), Do: "correct the call"}
	}
	conn := wire.NewConn(s.api, s.table, env)
	opened := &session{
		conn: conn, jitter: s.seams.Jitter, background: background.Tasks{Within: &s.running},
		closing: make(chan struct{}),
	}
	var err error
	if opened.scheduler, err = scheduler.New(&scheduler.Config{
		Conn: conn, Definitions: defs, Background: &opened.background,
		Closing: opened.closing, OnReshape: opened.recordRevision, Buckets: s.options.buckets,
		OnStale:  func(entity string) { opened.lookups.Invalidate(entity) },
		Attempts: s.options.attempts, InFlight: s.options.inFlight, Seams: s.seams,
	}); err != nil {
		return nil, err
	}
	for _, def := range defs {
		opened.specs = append(opened.specs, def.Spec())
		opened.revision = max(opened.revision, def.Spec().Revision)
	}
	opened.lookups, err = lookups.NewMembers(s.options.buckets, s.options.inFlight, env, &opened.background,
		func(ctx context.Context, entity string) (store.Member, bool, error) {
			return members.Lookup(ctx, conn, s.seams.Jitter, entity)
		})
	if err != nil {
		return nil, err
	}
	return opened, nil
}

var _, _ = store.Store((*Store)(nil)), API((*dynamodb.Client)(nil))
