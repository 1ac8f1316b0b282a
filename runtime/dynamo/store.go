// Package dynamo keeps buckets in one DynamoDB table.
//
// A bucket, one entity on one resource, is one item. An acquire of one bucket is one conditional update of
// that item: in the steady state one round trip, one write unit and no read. Generated code has the
// expressions of the write paths:
//
//	create   puts a full bucket less the cost, if a read or a failed write showed none
//	normal   claims the refill of all limits and takes the cost, if nobody else has claimed since
//	retry    takes the cost from the stored tokens, whoever else writes, if nothing would be clamped
//	adjust   gives tokens back
//	reshape  gives a bucket the numbers in force now, and takes the cost
//
// A write whose condition failed returns the item, so the next attempt, or a denial, starts from the truth.
//
// A process has one write at a time under way for each bucket, and one for each chain of buckets. Requests
// that arrive meanwhile wait in a queue. The next write serves as many of them as it can, in order of
// arrival, and each gets an outcome of its own. A request that is alone does not wait for others. For a
// second after it last saw a bucket, a process may deny from its cache, at no cost.
//
// An acquire of several buckets, of a chain or of several resources, is one transaction in which each bucket
// takes its own path. A compensated chain is charged bucket by bucket, and given back if one denies. Settles
// and releases write each bucket by itself. Lazy ones are included in the bucket's next write, or get one of
// their own after 100 ms.
//
// The table also holds entities (operator.Members) and overrides of limits (operator.Overrides), which a
// process caches. One BatchGetItem reads all that an attempt needs.
//
// The store repeats calls without an answer, within bounds. It recognises a charge by its op or by its
// transaction's token. It never repeats a settle of unknown outcome that gives tokens back. docs/design.md
// has the reasons.
package dynamo

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/layout"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
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
	seams   seams
	err     error            // of New, returned by Open
	running background.Tasks // of all its Limiters
}

// Option configures New.
type Option func(*options) error

type options struct {
	buckets  int
	attempts int
}

// Defaults of options.
const (
	DefaultImageCache = 100_000
	DefaultAttempts   = 8
)

// ImageCache sets how many buckets the store remembers; the default is 100,000. One with two limits takes
// some 870 bytes. A bucket that was forgotten costs a read.
func ImageCache(buckets int) Option {
	return func(o *options) error {
		if buckets < 1 {
			return fmt.Errorf("dynamo.ImageCache(%d): want at least 1", buckets)
		}
		o.buckets = buckets
		return nil
	}
}

// Attempts sets how many attempts an acquire has, of writes and of reads without an answer; the default is 8.
// After the last one it fails:
//   - with a *store.ContendedError if that attempt lost its race,
//   - with a *store.UnavailableError otherwise.
func Attempts(n int) Option {
	return func(o *options) error {
		if n < 1 {
			return fmt.Errorf("dynamo.Attempts(%d): want at least 1", n)
		}
		o.attempts = n
		return nil
	}
}

// New returns a store on table, its name or its ARN. It does no I/O. The generated New returns the error of a
// bad option. The client's retries do not apply to writes and reads of buckets: the store repeats them
// itself, since it knows what is safe.
func New(client API, table string, opts ...Option) *Store {
	s := &Store{
		api: client, table: table,
		options: options{buckets: DefaultImageCache, attempts: DefaultAttempts},
		seams:   seams{jitter: rand.Float64, choose: plan.Choose},
	}
	if client == nil {
		s.err = fmt.Errorf("dynamo.New: the client is nil")
	}
	if _, ok := operator.TableName(table); !ok && s.err == nil {
		const form = "3 to 255 letters, digits, '_', '.' and '-', or an ARN"
		s.err = fmt.Errorf("dynamo.New: table %q: want %s", table, form)
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

// Wait returns once none of the store's Limiters has work in the background, such as giving back a lost
// charge, or with ctx's error. It is for tests that do not hold the Limiters. A program closes its Limiters,
// each of which waits for its own work.
func (s *Store) Wait(ctx context.Context) error { return s.running.Wait(ctx) }

// Sealed implements store.Store.
func (s *Store) Sealed(seal.Sealed) {}

// Open implements store.Store.
func (s *Store) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	if s.err != nil {
		return nil, &store.SetupError{What: s.err.Error(), Do: "correct the call"}
	}
	buckets, err := lru.New[bucketKey, *cachedBucket](s.options.buckets)
	if err != nil {
		return nil, err
	}
	opened := &session{background: background.Tasks{Within: &s.running}, closing: make(chan struct{})}
	opened.scheduler = &scheduler{
		conn: wire.NewConn(s.api, s.table, env), cache: &cache{buckets}, background: &opened.background,
		closing: opened.closing, attempts: s.options.attempts, onReshape: opened.recordRevision,
		seams: s.seams,
	}
	opened.lookups, err = lookups.New(s.options.buckets, env, &opened.background, opened.readMember)
	if err != nil {
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
			Resource: wire.Resource{Generated: generated, Spec: spec, SortKey: item.KeyOf(generated.Key("")).SK},
			def:      def,
			kinds:    make([]atomic.Pointer[override.Override], len(spec.Kinds)),
		})
		opened.revision = max(opened.revision, spec.Revision)
	}
	return opened, nil
}

var (
	_ store.Store = (*Store)(nil)
	_ API         = (*dynamodb.Client)(nil)
)

// Check implements store.Session. It reads the table's description, its TTL and its version item, and
// compares this host's clock with the service's. It changes nothing.
func (s *session) Check(ctx context.Context) error {
	conn := s.scheduler.conn
	began := conn.Env.Clock.Now()
	v, _, err := layout.Check(ctx, conn.API, conn.Table)
	if err != nil {
		return err
	}
	if off := conn.Skew(began, v.Metadata); off != 0 {
		direction := "ahead of"
		if off < 0 {
			direction = "behind"
		}
		return &store.SetupError{
			What: fmt.Sprintf("this host's clock is at least %v %s DynamoDB's",
				off.Abs().Round(time.Millisecond), direction),
			Do: "set it by NTP: refill goes by it",
		}
	}
	if v.Revision > s.revision {
		// An older binary beside newer ones works, with the buckets' own numbers.
		conn.Env.Logger.LogAttrs(ctx, slog.LevelWarn,
			"sluice: the table has seen a higher revision of limits.yaml: its numbers stay in force",
			slog.String("table", conn.Table), slog.Int64("seen", v.Revision), slog.Int64("own", s.revision))
	}
	if v.Layout == layout.Carrying {
		return &layout.CarryingError{SetupError: &store.SetupError{
			What: fmt.Sprintf("table %s holds per-limit items, which this program would make full buckets beside",
				conn.Table),
			Do: "use migrating.New instead of dynamo.New, until `sluice migrate --cleanup` has removed the last of " +
				"them",
		}}
	}
	return nil
}

// recordRevision notes in the table that this session's revision has reached it, once, in the background.
// Only Check reads the note, so a failure to write it is harmless.
func (s *session) recordRevision(ctx context.Context) {
	s.recorded.Do(func() {
		s.background.Start(func() {
			conn := s.scheduler.conn
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), conn.Env.SettleTimeout)
			defer cancel()
			err := conn.Note(ctx, &dynamodb.UpdateItemInput{
				TableName:           &conn.Table,
				Key:                 item.VersionKey(),
				UpdateExpression:    aws.String("SET revision = :revision, layout = if_not_exists(layout, :layout)"),
				ConditionExpression: aws.String("attribute_not_exists(revision) OR revision < :revision"),
				ExpressionAttributeValues: codec.Item{
					":revision": codec.N(s.revision), ":layout": codec.N(layout.Buckets),
				},
			})
			if err != nil {
				conn.Env.Logger.LogAttrs(ctx, slog.LevelWarn, "sluice: could not note the revision in the table",
					slog.String("table", conn.Table), slog.Any("error", err))
			}
		})
	})
}

// Members implements store.Session. This session's Member sees their writes at once. Other sessions see them
// when their cached look-ups are due.
func (s *session) Members() store.MemberStore {
	return operator.MembersWith(s.scheduler.conn.API, s.scheduler.retrier(wire.OperatorAttempts),
		s.lookups.Invalidate)
}

// Overrides implements store.Session.
func (s *session) Overrides() store.OverrideStore {
	conn := s.scheduler.conn
	return operator.OverridesWith(conn.API, s.scheduler.retrier(wire.OperatorAttempts), conn.Env.Clock.Now)
}
