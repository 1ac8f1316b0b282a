// Package leases holds the leases of clients that are no Go programs: each from its acquire until the client
// ends it, or is gone.
//
//	Acquire -> a name -> More, Alive, then the first of Settle, Keep and Release; or Run ends it as Keep does
//
// Protocols (HTTP, gRPC) are built on a Holder, which knows none of them.
package leases

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/serve/internal/limits"
)

// Grace is how long a lease stays open after its client has closed the connection, and after Alive.
const Grace = time.Minute

// ErrFull says that as many leases are open as a Holder allows. Nothing was charged.
var ErrFull = errors.New("too many leases are open")

// EndedError says that a lease has ended before. How is Unknown if that is no longer known.
type EndedError struct{ How End }

// Error says how the lease has ended.
func (e *EndedError) Error() string { return "the lease has ended before: " + e.How.String() }

// Client is what opened a lease: a connection. A lease of a Client stays open while the Client does.
type Client struct {
	closed  atomic.Int64 // when, in ms; 0 for one that is open
	origins origins
}

// Close notes that the client is gone. Its leases end after Grace, unless Alive extends them.
func (c *Client) Close() { c.closed.CompareAndSwap(0, time.Now().UnixMilli()) }

// Terms are the conditions of an acquire.
type Terms struct {
	Wait time.Duration // longest wait for tokens; 0 does not wait
	From *Client       // keeps the leases open; nil for a protocol whose connections say nothing of clients
	Life time.Duration // of the leases, if From is nil
}

// Claim is what is to be acquired of one resource.
type Claim struct {
	On     *limits.Resource
	Entity *limits.Entity
	Cost   []int64
}

// Granted is a lease that an acquire has opened.
type Granted struct {
	Name   string
	Number uint64
	Lease  *limits.Lease // read-only: only calls by Name end it
	Open
}

// Open is an open lease.
type Open struct {
	On   *limits.Resource
	Kind int // of its entity
}

// Holder holds leases. It is safe for concurrent use.
type Holder struct {
	names  *Names
	most   int64
	open   atomic.Int64 // leases, those of acquires under way included
	next   atomic.Uint64
	ends   [ends]atomic.Int64
	shards [shards]shard
	none   origins // of leases without a Client
}

// New returns a Holder of at most so many leases. Run has to run.
func New(names *Names, most int) *Holder {
	h := &Holder{names: names, most: int64(most)}
	for i := range h.shards {
		h.shards[i].init()
	}
	return h
}

// Stats is what a Holder has counted.
type Stats struct {
	Open, Most int64
	Ended      map[End]int64
}

// Stats returns what h has counted so far.
func (h *Holder) Stats() Stats {
	s := Stats{Open: h.open.Load(), Most: h.most, Ended: map[End]int64{}}
	for i := range h.ends {
		s.Ended[End(i)] = h.ends[i].Load()
	}
	return s
}

// Acquire takes all claims or none, which are of in, and holds their leases. It fails as
// runtime.Limiter.AcquireAll does, or Resource.Wait with Terms.Wait, or with ErrFull. Only a single claim can
// wait.
func (h *Holder) Acquire(
	ctx context.Context, in *limits.Limits, terms Terms, claims ...Claim,
) ([]Granted, error) {
	n := int64(len(claims))
	if h.open.Add(n) > h.most {
		h.open.Add(-n)
		return nil, ErrFull
	}
	all, err := acquire(ctx, in, terms.Wait, claims)
	if err != nil {
		h.open.Add(-n)
		return nil, err
	}
	now, number := time.Now(), h.next.Add(uint64(n))-uint64(n)
	until, known := now.Add(terms.Life), &h.none
	if terms.From != nil {
		until, known = now.Add(Grace), &terms.From.origins
	}
	granted := make([]Granted, len(all))
	for i, lease := range all {
		number++
		open := Open{On: claims[i].On, Kind: claims[i].Entity.Kind()}
		of := known.get(origin{open, in.Hold(), terms.From})
		h.shard(number).add(live{
			parked: parked{until: until.UnixMilli(), of: of}, number: number, lease: lease,
		}, now.UnixMilli())
		granted[i] = Granted{h.names.Name(number), number, lease, open}
	}
	return granted, nil
}

// Replica returns the replica of the process, as ReplicaOf does.
func (h *Holder) Replica() string { return h.names.Replica() }

// Name returns the name of a lease by its number. All leases of an acquire have numbers in a row.
func (h *Holder) Name(number uint64) string { return h.names.Name(number) }

// acquire takes all claims or none.
func acquire(
	ctx context.Context, in *limits.Limits, wait time.Duration, claims []Claim,
) ([]*limits.Lease, error) {
	if len(claims) == 1 {
		var lease *limits.Lease
		var err error
		if c := claims[0]; wait > 0 {
			lease, err = c.On.Wait(ctx, c.Entity, c.Cost, runtime.MaxWait(wait))
		} else {
			lease, err = c.On.Acquire(ctx, c.Entity, c.Cost)
		}
		return []*limits.Lease{lease}, err
	}
	typed := make([]*runtime.Claim[[]int64], len(claims))
	all := make([]runtime.AnyClaim, len(claims))
	for i, c := range claims {
		typed[i] = c.On.Claim(c.Entity, c.Cost)
		all[i] = typed[i]
	}
	if err := in.AcquireAll(ctx, all...); err != nil {
		return nil, err
	}
	taken := make([]*limits.Lease, len(claims))
	for i, c := range typed {
		taken[i] = c.Lease()
	}
	return taken, nil
}

// Find returns what is known of the open lease of a name. It fails with ErrForged, ErrElsewhere, ErrDied or
// an *EndedError.
func (h *Holder) Find(name string) (Open, error) {
	number, err := h.names.Number(name)
	if err != nil {
		return Open{}, err
	}
	of, err := h.shard(number).find(number)
	if err != nil {
		return Open{}, err
	}
	return of.Open, nil
}

// Settle settles a lease at actual, and returns it to be read. It fails as Find does, and as
// runtime.Lease.Settle: after an *runtime.InvalidError alone, the lease is open as before.
func (h *Holder) Settle(ctx context.Context, name string, actual []int64) (*limits.Lease, error) {
	return h.call(ctx, name, Settled, func(l *limits.Lease) error { return l.Settle(ctx, actual) })
}

// More takes more for a lease, and returns it to be read. It fails as Find does, and as runtime.Lease.More.
func (h *Holder) More(ctx context.Context, name string, more []int64) (*limits.Lease, error) {
	return h.call(ctx, name, Unknown, func(l *limits.Lease) error { return l.More(ctx, more) })
}

// Keep ends a lease as it is. It fails as Find does.
func (h *Holder) Keep(ctx context.Context, name string) error {
	_, err := h.call(ctx, name, Kept, func(l *limits.Lease) error {
		l.Keep(ctx)
		return nil
	})
	return err
}

// Release ends a lease and gives all of it back. It fails as Find does.
func (h *Holder) Release(ctx context.Context, name string) error {
	_, err := h.call(ctx, name, Released, func(l *limits.Lease) error {
		l.Release(ctx)
		return nil
	})
	return err
}

// Alive keeps a lease open for Grace from now on, at least. It fails as Find does, and with
// runtime.ErrLeaseLost if others may have what the lease holds.
func (h *Holder) Alive(name string) error { return h.alive(name, nil) }

// Adopt is Alive by a client that repeats an acquire: the lease stays open while from does.
func (h *Holder) Adopt(name string, from *Client) error { return h.alive(name, from) }

func (h *Holder) alive(name string, from *Client) error {
	number, err := h.names.Number(name)
	if err != nil {
		return err
	}
	lease, err := h.shard(number).extend(number, from, time.Now().Add(Grace).UnixMilli())
	if lease == nil { // it has ended, or holds nothing that could be lost
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if cause := context.Cause(lease.Context(ctx)); errors.Is(cause, runtime.ErrLeaseLost) {
		return runtime.ErrLeaseLost
	}
	return nil
}

// call makes a call on a lease. The call ends the lease, in the way how, unless how is Unknown. Calls on a
// lease are made one after the other. Of several that end it, the first takes effect: the others fail with an
// *EndedError.
func (h *Holder) call(
	ctx context.Context, name string, how End, by func(*limits.Lease) error,
) (*limits.Lease, error) {
	number, err := h.names.Number(name)
	if err != nil {
		return nil, err
	}
	s := h.shard(number)
	l, err := s.begin(ctx, number)
	if err != nil {
		return nil, err
	}
	lease, err := l.take()
	if err != nil {
		s.finish(l, Unknown, nil)
		return nil, err
	}
	err = by(lease)
	if _, invalid := errors.AsType[*runtime.InvalidError](err); invalid {
		how = Unknown
	}
	of := l.began
	if s.finish(l, how, lease); how != Unknown {
		h.ended(of, how)
	}
	if errors.Is(err, runtime.ErrSettled) { // its Limiter was closed
		err = &EndedError{}
	}
	return lease, err
}

// ended counts the end of a lease.
func (h *Holder) ended(of *origin, how End) {
	h.open.Add(-1)
	h.ends[how].Add(1)
	of.in.Drop()
}
