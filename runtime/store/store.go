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

// Store keeps buckets. Only this module's stores implement it, so that it can grow; to test a handler, mock
// Acquirer.
type Store interface {
	// Open prepares definitions for use under env, without I/O. An error names what to add to limits.yaml.
	Open(env *Env, defs ...Definition) (Session, error)
	// Sealed keeps the interface to this module.
	Sealed(seal.Sealed)
}

// Session is a Store opened for one Limiter. Its methods are safe for concurrent use and return this
// package's errors. After a method has returned, the store does not touch its Call, unless a Settle took
// Later.
type Session interface {
	// Acquire charges every bucket of call, or none. It fills in Limits, After, Dropped, Ends and Epochs of each
	// Bucket. On a *DeniedError, After holds the image that refused; on an *UnavailableError, the bucket as last
	// seen. Past call.Deadline it fails once the attempt under way has ended, which has at least 100 ms. The
	// error is then an *UnavailableError that is context.DeadlineExceeded, or a *ContendedError if that attempt
	// lost a race.
	Acquire(ctx context.Context, call *Call) error
	// Refused returns the denial of cost, in millitokens, by the cached images of chain's buckets, all of them
	// seen within the last second. It returns nil if these do not deny, or do not suffice to decide. It does no
	// I/O. chain holds links that have a bucket, nearest first; the store keeps neither it nor cost. The error
	// is shared: nobody changes it. now is in ms.
	Refused(def Definition, chain []Link, cost []int64, now int64) *DeniedError
	// Settle turns each part's Cost, taken before, into its Actual. ctx bounds it. If call.Later is set, it may
	// leave the write for later. It then sets call.Later to nil and returns nil. The caller does not end ctx
	// until Later is called. Time that the write waits for others does not count against its deadline. Otherwise
	// Later is left as it is, and never called.
	Settle(ctx context.Context, call *Call) error
	// Extend has what open leases hold of a bucket be held for longer: until the end of the next epoch. call has
	// one part with one bucket, whose only charge is the sum of what they hold in one epoch for each limit. It
	// fills in Epochs: those of the holds after it, bucket.Lost for holds that are over. After an error these
	// are the ones from before it if nothing was sent, or if the store did nothing for certain. Else they are
	// nil: it is not known which of both epochs the holds are in.
	Extend(ctx context.Context, call *Call) error
	// Now returns the store's time at a reading of Env.Clock, in ms, as near as replies have shown it. Holds end
	// by it.
	Now(reading time.Time) int64
	// Lookup fills in Limits and After of each Bucket as last seen: nil if nothing is cached.
	// It does no I/O.
	Lookup(call *Call)
	// Peek fills in Limits and After of each Bucket from a consistent read and changes nothing. After is nil if
	// there is no bucket yet.
	Peek(ctx context.Context, call *Call) error
	// Member returns what is stored of an entity, by its stored id; found is false if nothing is. Both answers
	// are cached for Env.CacheTTL.
	Member(ctx context.Context, entity string) (m Member, found bool, err error)
	// Members reads and writes what Member looks up.
	Members() MemberStore
	// Overrides reads and writes the overrides of limits that Acquire resolves.
	Overrides() OverrideStore
	// Catalog reads and writes the names of templates.
	Catalog() Catalog
	// Check verifies what serving needs: the table, its indexes, its layout, the clock. An error is a
	// *SetupError, or an *UnavailableError if the store does not answer.
	Check(ctx context.Context) error
	// Close writes what was left for later, and waits until background work has ended, or ctx has.
	Close(ctx context.Context) error
}

// Member is an entity as stored, with its parent. Ids are stored ids, such as user-123.
type Member struct {
	Entity  string
	Parent  string // empty for none
	Cascade bool   // its calls charge its ancestors too

	// Since is the start of the entity's billing, in the zone of its windows (SetCalendar). It is zero if none
	// is stored. Put does not write it.
	Since time.Time

	// Plan is the plan that the entity is on, "" for none. PlanVersion, in ms, is that of the last change of it,
	// to none too; it only rises, and is 0 if there never was one. Put does not write them.
	Plan        string
	PlanVersion int64
}

// Since returns the instant at, in ms, in zone, as SetCalendar stored them. The error says which is wrong.
func Since(at int64, zone string) (time.Time, error) {
	location, err := bucket.Zone(zone)
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMilli(at).In(location), nil
}

// CheckSince returns an *InvalidError for a start of billing that is zero or in no IANA zone.
func CheckSince(since time.Time) error {
	zone := since.Location().String()
	if _, err := bucket.Zone(zone); err == nil && !since.IsZero() {
		return nil
	}
	return &InvalidError{
		Field: "since", Value: since.Format(time.RFC3339),
		Reason: fmt.Sprintf("is in %q, which is no IANA zone: use time.LoadLocation, or time.UTC", zone),
	}
}

// Check returns why m cannot be stored under a schema of kinds: an *InvalidError that says what to do. Kinds
// are a tree, and a parent is of its child's parent kind, so Members that pass have no cycles.
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
		return &InvalidError{"", "parent", m.Parent,
			fmt.Sprintf("cannot be stored: in limits.yaml, kind %s has no parent: leave it out", kinds[kind].Name)}
	case parent != above:
		return &InvalidError{"", "parent", m.Parent,
			fmt.Sprintf("is of kind %s: the parent of kind %s is of kind %s, such as %s123",
				kinds[parent].Name, kinds[kind].Name, kinds[above].Name, kinds[above].Prefix)}
	}
	return nil
}

// MemberStore keeps Members. Its methods are safe for concurrent use. Reads are consistent, except Children.
type MemberStore interface {
	// Put stores m, in place of the link that was stored of m.Entity. Other data there stays.
	Put(ctx context.Context, m Member) error
	// Get returns what is stored of entity; found is false if nothing is.
	Get(ctx context.Context, entity string) (m Member, found bool, err error)
	// Delete removes the link that is stored of entity, if there is one. Other data there stays.
	Delete(ctx context.Context, entity string) error
	// SetCalendar stores the Since of entity, and leaves the rest of what is stored there as it is.
	SetCalendar(ctx context.Context, entity string, since time.Time) error
	// SetPlan puts entity on a plan, or on none if that is empty. It leaves the rest of what is stored there as
	// it is. The PlanVersion rises, and is at least now in ms. If from is not nil, it does so only if entity is
	// on that plan, and else fails with a *ConflictError.
	SetPlan(ctx context.Context, entity, plan string, from *string) error
	// Children yields the entities whose parent is entity, sorted, and ends with the first error.
	Children(ctx context.Context, entity string) iter.Seq2[string, error]
	// Erase deletes all that is stored of entity, and returns what it deleted, also with an error. Without
	// LeaveChildren it fails with an *InvalidError if entity has children. Erase may be repeated after an error.
	Erase(ctx context.Context, entity string, how Erasing) (Erased, error)
}

// Stored is what is stored of one resource's overrides: for an entity, a kind, or a kind on a plan. All plans
// of a resource have one Revision, which changes with any of them.
type Stored struct {
	At       string          // an entity as stored, user-123; a kind, user, which has no '-'; pro.user (PlanAt)
	Limits   []*bucket.Limit // in schema order; nil inherits
	Revision Revision        // "" if nothing ever was stored
	Epoch    int64           // of the regional sync that stored it; 0 if an operator did
}

// Overrides reports whether s overrides any limit. A tombstone does not.
func (s Stored) Overrides() bool {
	return slices.ContainsFunc(s.Limits, func(l *bucket.Limit) bool { return l != nil })
}

// OverrideStore keeps overrides of limits. Its methods are safe for concurrent use. Reads are consistent,
// except List.
type OverrideStore interface {
	// Get returns what is stored at each of at for spec's resource, in one read.
	Get(ctx context.Context, spec *Spec, at ...string) ([]Stored, error)
	// Set stores s if s.Revision is still what is stored there, else it fails with a *ConflictError. Without any
	// limit it leaves a tombstone. An empty Revision means that no limit is overridden there. Set returns the
	// new revision.
	Set(ctx context.Context, spec *Spec, s Stored) (Revision, error)
	// List yields every override of spec's resource, and ends with the first error.
	List(ctx context.Context, spec *Spec) iter.Seq2[Stored, error]
	// Fill fills the bucket of an entity, as stored, of a kind: with the limits in force for it, up to their
	// bursts. It need not store a missing bucket, which is full. Root is the last bucket of the entity's
	// chain, as stored: a store may keep a bucket by it. It fails with a *ContendedError if the bucket's
	// limits change at each attempt.
	Fill(ctx context.Context, spec *Spec, kind int, entity, root string) error
	// Grant adds g, which Check has passed, to the bucket of its entity, for the open windows. It opens those
	// that are over. It counts once for each ID of an entity and resource, however often it is called. It fails
	// with an *InvalidError if an earlier one of that ID was of other amounts, and else as Fill does.
	Grant(ctx context.Context, spec *Spec, g *Grant) error
	// Heartbeat returns what regional sync says of itself: the zero Heartbeat if it never did.
	Heartbeat(ctx context.Context) (Heartbeat, error)
}

// Env is what a Limiter gives to its store. All fields are set.
type Env struct {
	Clock         Clock
	Observer      *Observer
	Logger        *slog.Logger
	SettleTimeout time.Duration // bounds what outlives a caller
	CacheTTL      time.Duration // how long overrides and Members are cached, absent ones too

	// Answered records that a reply has come, whatever it says, to whichever request. It is safe for concurrent
	// use, and quick. Report calls it.
	Answered func()
}

// Report reports e, a request that has just ended: to Answered if there was a reply, and to the observer. It
// sets e.Took. ctx may be over, or have an earlier deadline than the caller's. Stores call it.
func (env *Env) Report(ctx context.Context, e StoreEvent) {
	if e.replied() {
		env.Answered()
	}
	if f := env.Observer.Store; f != nil {
		e.Took = env.Clock.Now().Sub(e.Began)
		f(context.WithoutCancel(ctx), e)
	}
}

// Call is one request to a store, in vectors: a chain of buckets for each part. Several parts are charged all
// or none; a single part as its resource's Cascade says.
type Call struct {
	Parts    []Part
	Called   time.Time // when the acquire, settle or release was called
	Deadline time.Time // bounds Acquire as its context does, by the system's clock; zero for none

	// Later lets Settle return before it has written. A store that took it calls it once, when the write has
	// ended, with its error and with After of each Bucket filled in. It may call it on any goroutine, without
	// holding a lock, even before Settle has returned.
	Later func(err error)

	// Prefetch is how long before its use an Acquire may have taken a token; 0 asks the store.
	Prefetch time.Duration

	// Again says that an Acquire is for a lease that took tokens of the same buckets before.
	Again bool

	// Pooled is set by an Acquire that took all of its tokens from what this process has prefetched. The store
	// was not asked.
	Pooled bool
}

// Part is one resource's portion of a Call.
type Part struct {
	Def     Definition
	Buckets []Bucket // the chain, nearest first; another part may have the same bucket
	Cost    []int64  // what each bucket is charged, or was, in millitokens and schema order
	Actual  []int64  // what Settle makes of it

	// Root is the last bucket of the chain, as stored, if Buckets is only a part of the chain, as a wait reads
	// it; else empty. A store may keep a bucket by the root of its chain.
	Root string
}

// Difference is what a settle adds to b's charge. A limit that was missing in b was not charged, so it is
// neither charged nor given back now.
func (p *Part) Difference(b *Bucket) []int64 {
	cost := make([]int64, len(p.Cost))
	for i := range cost {
		if b.Dropped == nil || !b.Dropped[i] {
			cost[i] = bucket.Sub(p.Actual[i], p.Cost[i])
		}
	}
	return cost
}

// GivesBack reports whether p, of a settle, gives tokens of a limit back.
func (p *Part) GivesBack() bool {
	for i, actual := range p.Actual {
		if actual < p.Cost[i] {
			return true
		}
	}
	return false
}

// NoteCharges sets the Charges of p's buckets to what an acquire took of them, if any limit has windows or
// holds.
func (p *Part) NoteCharges() {
	for i := range p.Buckets {
		if b := &p.Buckets[i]; b.Ends != nil || b.Epochs != nil {
			b.Charges = []bucket.Charge{{Cost: p.Cost, Ends: b.Ends, Epochs: b.Epochs}}
		}
	}
}

// Bucket is one bucket of a chain.
type Bucket struct {
	Entity  string // as stored: user-123
	Kind    int
	Limits  []bucket.Limit // in force for it, overrides included; nil until a store sets it
	After   *bucket.Image  // as the call left it, found it or refused it
	Dropped []bool         // limits that this bucket did not have, and so were not charged; nil if it had all

	// Ends are the ends of the windows that an acquire charged, by limit, in ms: 0 for a limit without windows.
	// It is nil if no limit has windows.
	Ends []int64
	// Epochs are those in which an acquire's tokens are held, by limit: 0 for a limit that counts no holds. It
	// is nil if none does.
	Epochs []int64
	// Windows holds the calendars of the entity's own windows, by limit. It is nil if those of its kind hold.
	Windows []*bucket.Calendar
	// Plan is the plan by which the bucket gets its numbers, as last seen.
	Plan OnPlan
	// Charges are what a lease took of the bucket, oldest first, for a settle, which ends their holds. They are
	// nil if no limit of the kind has windows or holds.
	Charges []bucket.Charge
	// Prefetched is what this process has taken of the bucket and not used, by limit: a Peek sets it. It is nil
	// for nothing.
	Prefetched []int64
	// Source is where an acquire took tokens from, if not all of them are from the bucket itself. It is for the
	// settle and for a More, by the same session: nobody else looks into it.
	Source any
}

// Unfilled returns b as a call names it, without what stores fill in and leases note: for another call on the
// same bucket.
func (b *Bucket) Unfilled() Bucket {
	return Bucket{Entity: b.Entity, Kind: b.Kind, Windows: b.Windows, Plan: b.Plan}
}

// Calendars returns the calendars by which windows of b open, by limit. They are nil if no limit has windows.
func (b *Bucket) Calendars(spec *Spec) []*bucket.Calendar {
	if b.Windows != nil {
		return b.Windows
	}
	return spec.Kinds[b.Kind].Windows
}

// InForce returns the parameters in force for b, as far as they are known. Else they are those of the entry
// of spec, then of the plan in limits.yaml, then of the kind. If regions divide those, it is the part that
// each region keeps.
func (b *Bucket) InForce(spec *Spec) []bucket.Limit {
	limits := spec.Kinds[b.Kind].Limits
	switch {
	case b.Limits != nil:
		return b.Limits
	case spec.Regions != nil:
		return spec.Regions.KeepsOf(limits)
	}
	var order []Stored
	if spec.ByName(b.Kind) && spec.Entry != nil {
		order = spec.Entry.Sources(spec, b.Plan.Name, b.Kind)
	}
	if spec.Plans != nil && b.Plan.Name != "" {
		numbers, _ := spec.Plans.NumbersOf(spec, b.Plan.Name, b.Kind)
		order = append(order, numbers)
	}
	return Resolve(limits, order...)
}

// Defaults of a Limiter's options.
const (
	DefaultBudget        = time.Second
	DefaultSettleTimeout = 5 * time.Second
	DefaultCacheTTL      = time.Minute
)
