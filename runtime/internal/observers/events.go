package observers

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// Outcome is how an acquire or a wait has ended. All are nil if the store has admitted it.
type Outcome struct {
	Err      error // what has refused it
	Shadowed error // what would have refused it
	Outage   error // why the failure policy decided on it
}

// Acquired calls obs with how call, an acquire or a wait, has ended.
func Acquired(
	ctx context.Context, obs *store.Observer, operation string, call *store.Call, ended time.Time, o Outcome,
) {
	f, err := obs.Acquired, o.Err
	switch {
	case o.Shadowed != nil:
		f, err = obs.Shadowed, o.Shadowed
	case err != nil:
		f = obs.Failed
		if _, denied := errors.AsType[*store.DeniedError](err); denied {
			f = obs.Denied
		}
	case o.Outage != nil:
		f = obs.Degraded
	}
	if f == nil {
		return
	}
	e := Event(operation, call, ended, err)
	e.Local, e.Shadow, e.Pooled = o.Outage != nil, o.Shadowed != nil, call.Pooled
	e.Limit, e.LimitKind = store.Refusing(call.Parts[0].Def.Spec(), &call.Parts[0], err)
	if err == nil {
		e.Err = o.Outage
	}
	if err == nil && o.Outage != nil {
		e.Uncharged, e.Currency = reserves(&call.Parts[0])
	}
	f(ctx, e)
}

// Closing is how a lease has ended.
type Closing struct {
	Released      bool // all was given back
	Ended         time.Time
	Err           error // why it was not written
	Local, Shadow bool  // as in Event
}

// Closed calls obs with how the lease of call has ended. One that is kept is settled at its cost.
func Closed(ctx context.Context, obs *store.Observer, call *store.Call, c Closing) {
	f, operation := obs.Settled, store.OperationSettle
	if c.Released {
		f, operation = obs.Released, store.OperationRelease
	}
	if c.Err != nil {
		f = obs.Failed
	}
	if f == nil {
		return
	}
	e := Event(operation, call, c.Ended, c.Err)
	e.Local, e.Shadow = c.Local, c.Shadow
	f(ctx, e)
}

// reserves returns the highest cost of part in money, and its currency.
func reserves(part *store.Part) (most money.Amount, currency string) {
	spec := part.Def.Spec()
	for i, cost := range part.Cost {
		if unit := spec.Unit(i); unit != "" {
			most, currency = max(most, money.Amount(cost)), unit
		}
	}
	return most, currency
}

// Refused calls obs with the denial of an acquire that the store was not asked for. links are those of the
// chain that have a bucket.
func Refused(
	ctx context.Context, obs *store.Observer, spec *store.Spec, links []store.Link, denied *store.DeniedError,
) {
	if obs.Denied == nil {
		return
	}
	own := &spec.Kinds[links[0].Kind]
	e := store.Event{
		Operation: store.OperationAcquire, Resource: spec.Resource, Template: spec.Template,
		Kind: own.Name, Entity: own.Prefix + links[0].ID, Limit: denied.Limit, Err: denied,
	}
	for _, l := range links {
		if kind := &spec.Kinds[l.Kind]; denied.Entity == kind.Prefix+l.ID {
			e.LimitKind = kind.Name
		}
	}
	obs.Denied(ctx, e)
}

// Prefetched calls obs with what has become of tokens, a vector, of a bucket of def, for each limit: they
// were taken for calls to come, or given back.
func Prefetched(
	ctx context.Context, obs *store.Observer, operation string, def store.Definition, b *store.Bucket,
	tokens []int64,
) {
	if obs.Prefetched == nil {
		return
	}
	spec := def.Spec()
	for i, n := range tokens {
		if n != 0 {
			obs.Prefetched(ctx, store.Event{
				Operation: operation, Resource: spec.Resource, Template: spec.Template,
				Kind: spec.Kinds[b.Kind].Name, Entity: b.Entity,
				Limit: spec.Limits[i], LimitKind: spec.Kinds[b.Kind].Name, Currency: spec.Unit(i),
				Millitokens: n,
			})
		}
	}
}

// Event describes how call, an operation, has ended.
func Event(operation string, call *store.Call, ended time.Time, err error) store.Event {
	spec := call.Parts[0].Def.Spec()
	e := store.Event{
		Operation: operation, Resource: spec.Resource, Template: spec.Template,
		Took: ended.Sub(call.Called), Err: err,
	}
	if buckets := call.Parts[0].Buckets; len(buckets) > 0 {
		e.Entity, e.Kind = buckets[0].Entity, spec.Kinds[buckets[0].Kind].Name
	}
	return e
}
