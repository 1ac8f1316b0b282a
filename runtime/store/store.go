package store

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/seal"
)

// Store keeps buckets. Only this module's stores implement it, so that it can grow; to test a handler, mock Acquirer.
type Store interface {
	// Open prepares definitions for use under env, without I/O. An error names what to add to limits.yaml.
	Open(env *Env, defs ...Definition) (Session, error)
	// Sealed keeps the interface to this module.
	Sealed(seal.Sealed)
}

// Session is a Store opened for one Limiter. Its methods are safe for concurrent use and return this package's errors.
// Once one has returned, the store leaves its Call alone, but for a Settle that took Later.
type Session interface {
	// Acquire charges every bucket of call, or none. It fills in Limits, After and Dropped of each Bucket; on a
	// *DeniedError, After holds what the refusal was computed from, and on an *UnavailableError the bucket as last seen.
	// Past call.Deadline, once the try under way has ended, which has 100 ms at least, it fails with an *UnavailableError that is
	// context.DeadlineExceeded, or with a *ContendedError where the last try lost a race.
	Acquire(ctx context.Context, call *Call) error
	// Refused returns the denial of cost, in millitokens, by what is remembered of chain's buckets, all of them seen within
	// the last second: nil where that does not refuse, or does not suffice to say. It does no I/O. chain holds links that have a
	// bucket, nearest first; neither it nor cost is kept. The error is shared: nobody changes it. now is in ms.
	Refused(def Definition, chain []Link, cost []int64, now int64) *DeniedError
	// Settle turns each part's Cost, taken before, into its Actual. ctx bounds it. Where call.Later is set, it may leave the
	// write for later: then it takes Later out of call, so that it is nil, and returns nil; the caller does not end ctx until
	// Later is called, and what the write waited for others does not count against its deadline.
	// Else Later is left as it is, and never called.
	Settle(ctx context.Context, call *Call) error
	// Lookup fills in Limits and After of each Bucket as last seen, from memory: nil where nothing is remembered. It does
	// no I/O.
	Lookup(call *Call)
	// Peek fills in Limits and After of each Bucket from a consistent read and changes nothing; After is nil where there
	// is no bucket yet.
	Peek(ctx context.Context, call *Call) error
	// Member returns what is stored of an entity, by its stored id; found is false where that is nothing. Both answers
	// are remembered for Env.CacheTTL.
	Member(ctx context.Context, entity string) (m Member, found bool, err error)
	// Members reads and writes what Member looks up.
	Members() MemberStore
	// Overrides reads and writes the overrides of limits that Acquire resolves.
	Overrides() OverrideStore
	// Check verifies what serving needs: the table, its indexes, its layout, the clock. An error is a *SetupError, or an
	// *UnavailableError if the store does not answer.
	Check(ctx context.Context) error
	// Close has what was left for later written, and waits until background work is done, or ctx is.
	Close(ctx context.Context) error
}

// Member is an entity as it is stored: who its parent is. Ids are stored ids, such as user-123.
type Member struct {
	Entity  string
	Parent  string // empty for none
	Cascade bool   // its calls charge its ancestors too
}

// Check says why m cannot be stored under a schema of kinds: with an *InvalidError that names the cure. As kinds are a
// tree and a parent is of its child's parent kind, Members that pass have no cycles.
func (m Member) Check(kinds []Kind) error {
	kind, _, err := parse("", kinds, "entity", m.Entity)
	switch {
	case err != nil:
		return err
	case m.Parent == "":
		return nil
	case m.Parent == m.Entity:
		return &InvalidError{"", "parent", m.Parent, "is the entity itself: name the one it belongs to"}
	}
	parent, _, err := parse("", kinds, "parent", m.Parent)
	switch above := kinds[kind].Parent; {
	case err != nil:
		return err
	case above == NoParent:
		return &InvalidError{"", "parent", m.Parent, fmt.Sprintf("cannot be stored: in limits.yaml, kind %s has no parent: leave it out",
			kinds[kind].Name)}
	case parent != above:
		return &InvalidError{"", "parent", m.Parent, fmt.Sprintf("is of kind %s: the parent of a %s is of kind %s, such as %s123",
			kinds[parent].Name, kinds[kind].Name, kinds[above].Name, kinds[above].Prefix)}
	}
	return nil
}

// MemberStore keeps Members. Its methods are safe for concurrent use; reads are consistent, Children's aside.
type MemberStore interface {
	// Put stores m, in place of what was stored of m.Entity.
	Put(ctx context.Context, m Member) error
	// Get returns what is stored of entity; found is false where that is nothing.
	Get(ctx context.Context, entity string) (m Member, found bool, err error)
	// Delete removes what is stored of entity, if anything is.
	Delete(ctx context.Context, entity string) error
	// Children yields the entities whose parent is entity, sorted, and ends with the first error.
	Children(ctx context.Context, entity string) iter.Seq2[string, error]
}

// Stored is what one level overrides of one resource.
type Stored struct {
	At       string          // an entity as stored, user-123, or a kind, user, which has no '-'
	Limits   []*bucket.Limit // in schema order; nil inherits
	Revision Revision        // "" where nothing ever was stored
	Epoch    int64           // of the regional sync that has stored it; 0 where an operator has
}

// Overrides reports that s overrides some limit: a tombstone does not.
func (s Stored) Overrides() bool {
	return slices.ContainsFunc(s.Limits, func(l *bucket.Limit) bool { return l != nil })
}

// OverrideStore keeps overrides of limits. Its methods are safe for concurrent use; reads are consistent, List's aside.
type OverrideStore interface {
	// Get returns what each level stores for spec's resource, in one read.
	Get(ctx context.Context, spec *Spec, at ...string) ([]Stored, error)
	// Set stores s if s.Revision is still what is stored there, else it fails with a *ConflictError; without any limit it
	// leaves a tombstone. An empty Revision means that no limit is overridden there. It returns the new revision.
	Set(ctx context.Context, spec *Spec, s Stored) (Revision, error)
	// List yields every level that overrides a limit of spec's resource, and ends with the first error.
	List(ctx context.Context, spec *Spec) iter.Seq2[Stored, error]
	// Heartbeat returns what regional sync says of itself; the zero one where it never did.
	Heartbeat(ctx context.Context) (Heartbeat, error)
}

// Env is what a Limiter lends its store. All fields are set.
type Env struct {
	Clock         Clock
	Observer      *Observer
	Logger        *slog.Logger
	SettleTimeout time.Duration // bounds what outlives a caller
	CacheTTL      time.Duration // how long overrides and Members are remembered, those that are not there too
}

// Call is one request to a store, in vectors: a chain of buckets for each part. Several parts are charged all or none;
// one part is as its resource's Cascade says.
type Call struct {
	Parts    []Part
	Called   time.Time // when the acquire, settle or release was called
	Deadline time.Time // bounds Acquire beside its context, by the system's clock as that does; zero for none

	// Later lets Settle return before it has written. Who took it calls it once, when the write has ended, with its error and
	// with After of each Bucket filled in: on any goroutine, holding no lock, and maybe before Settle has returned.
	Later func(err error)
}

// Part is one resource's share of a Call.
type Part struct {
	Def     Definition
	Buckets []Bucket // the chain, nearest first; another part may have the same bucket
	Cost    []int64  // what each bucket is charged, or was, in millitokens and schema order
	Actual  []int64  // what Settle makes of it
}

// Bucket is one bucket of a chain.
type Bucket struct {
	Entity  string // as stored: user-123
	Kind    int
	Limits  []bucket.Limit // in force for it, overrides included; nil until a store has said so
	After   *bucket.Image  // as the call left it, found it or refused it
	Dropped []bool         // limits that this bucket lacked, so that they were not charged; nil when it had all
}

// Defaults of a Limiter's options.
const (
	DefaultBudget        = time.Second
	DefaultSettleTimeout = 5 * time.Second
	DefaultCacheTTL      = time.Minute
)
