package limittest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/sluice-go/sluice/runtime/internal/seal"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// definition is a resource of one limit, of which every kind has a bucket.
type definition struct{ spec *store.Spec }

// Spec implements store.Definition.
func (d definition) Spec() *store.Spec { return d.spec }

// definitionFor returns one that knows entity's kind, and so as many as come before it. It has a limit for
// each number of a vector, of which units has those that are money.
func definitionFor(entity store.Entity, units []string, shadow bool) definition {
	spec := &store.Spec{Resource: "fake", Limits: make([]string, len(units)), Units: units,
		Cascade: store.CascadeNone, OnUnavailable: store.Deny, Shadow: shadow}
	if entity != nil { // if it is, the call is refused for that
		kind := entity.Chain(nil)[0].Kind
		spec.Kinds = make([]store.Kind, kind+1)
		name := fmt.Sprintf("%T", entity) // generated.User
		spec.Kinds[kind].Name = name[strings.LastIndexByte(name, '.')+1:]
	}
	return definition{spec}
}

// session is the Store, and the Session, of one call. The fake's lock guards it.
type session[E store.Entity, C any] struct {
	store.Session // what an Acquirer never calls

	fake     *Fake[E, C]
	clock    store.Clock
	call     *Call[E, C]
	said     C // the last cost that was turned into a vector
	denied   bool
	admitted bool
}

// vector returns the numbers of a cost, and 1: no per_call is known that could make a cost of nothing more.
func (s *session[E, C]) vector(cost C, dst []int64) []int64 {
	s.fake.mu.Lock()
	s.said = cost
	s.fake.mu.Unlock()
	for number := range numbersOf(&cost) {
		dst = append(dst, number.Int())
	}
	return append(dst, 1)
}

// costOf undoes vector. A balance, of which a fake knows none, has no numbers.
func costOf[C any](v []int64) (cost C) {
	for number := range numbersOf(&cost) {
		if len(v) > 0 {
			number.SetInt(v[0])
			v = v[1:]
		}
	}
	return cost
}

// numbersOf yields the numbers of a cost, which is a struct of these.
func numbersOf[C any](cost *C) iter.Seq[reflect.Value] {
	return func(yield func(reflect.Value) bool) {
		for _, field := range reflect.ValueOf(cost).Elem().Fields() {
			if field.CanInt() && field.CanSet() && !yield(field) {
				return
			}
		}
	}
}

// unitsOf returns the units of a vector of C, for a store.Spec. A fake knows no currency.
func unitsOf[C any]() (units []string) {
	var cost C
	for number := range numbersOf(&cost) {
		unit := ""
		if _, ok := reflect.TypeAssert[money.Amount](number); ok {
			unit = "of money"
		}
		units = append(units, unit)
	}
	return append(units, "")
}

// unitOf returns the unit of denials by a limit: a currency, or "" for tokens.
func unitOf(limit store.LimitName) string {
	if l, ok := limit.(interface{ Unit() string }); ok { // generated for resources with money
		return l.Unit()
	}
	return ""
}

// whole turns millitokens of a part into what the cost had.
func whole(part *store.Part, milli []int64) []int64 {
	numbers := make([]int64, len(milli))
	for i, m := range milli {
		numbers[i] = part.Def.Spec().Whole(i, m)
	}
	return numbers
}

// observer notes how the call ended, and how its lease did where the failure policy or shadow mode admitted
// it: then Settle is not asked.
func (s *session[E, C]) observer() *store.Observer {
	refused := func(_ context.Context, e store.Event) {
		s.fake.mu.Lock()
		defer s.fake.mu.Unlock()
		if !s.admitted { // otherwise it is the settle that failed
			s.call.Err = e.Err
		}
	}
	return &store.Observer{
		Denied: refused, Failed: refused,
		Shadowed: func(_ context.Context, e store.Event) {
			s.fake.mu.Lock()
			defer s.fake.mu.Unlock()
			s.call.Shadowed = e.Err
		},
		Settled: func(_ context.Context, e store.Event) {
			s.fake.mu.Lock()
			defer s.fake.mu.Unlock()
			if e.Local || e.Shadow {
				s.call.Done, s.call.Settled = true, s.said
			}
		},
		Released: func(_ context.Context, e store.Event) {
			s.fake.mu.Lock()
			defer s.fake.mu.Unlock()
			if e.Local || e.Shadow {
				s.call.Done, s.call.Released = true, true
			}
		},
	}
}

// Acquire implements store.Session. That of an admitted call is one for more.
func (s *session[E, C]) Acquire(_ context.Context, call *store.Call) error {
	s.fake.mu.Lock()
	defer s.fake.mu.Unlock()
	if !s.admitted {
		err := s.decide(call)
		s.admitted = err == nil
		return err
	}
	s.denied = false
	more := &Call[E, C]{
		Method: "More", Entity: s.call.Entity, Cost: costOf[C](whole(&call.Parts[0], call.Parts[0].Cost)),
		Err: s.decide(call),
	}
	s.fake.calls = append(s.fake.calls, more)
	return more.Err
}

// decide returns why call is not admitted. The caller holds the fake's lock.
func (s *session[E, C]) decide(call *store.Call) error {
	d, err := s.fake.denial, s.fake.failure
	if denied, ok := errors.AsType[*store.DeniedError](err); ok {
		if s.denied {
			return nil // as with Deny
		}
		own := *denied // a Wait writes in it
		s.denied, err = true, &own
	}
	if err == nil && d != nil && !s.denied {
		s.denied = true // who asks again has waited
		err = store.AddRefusal(nil, store.Refusal{
			Resource: d.limit.Resource(), Entity: call.Parts[0].Buckets[0].Entity, Limit: d.limit.String(),
			Unit: unitOf(d.limit), RetryAfter: d.after(s.clock.Now()), Resets: d.resets,
		})
	}
	return err
}

// Refused implements store.Session. Nothing is remembered.
func (*session[E, C]) Refused(store.Definition, []store.Link, []int64, int64) *store.DeniedError {
	return nil
}

// Settle implements store.Session. A settle to nothing is a release: a cost's vector ends with 1.
func (s *session[E, C]) Settle(_ context.Context, call *store.Call) error {
	s.fake.mu.Lock()
	defer s.fake.mu.Unlock()
	s.call.Done = true
	actual := whole(&call.Parts[0], call.Parts[0].Actual)
	if s.call.Released = actual[len(actual)-1] == 0; !s.call.Released {
		s.call.Settled = costOf[C](actual)
	}
	return s.fake.failure
}

// Extend implements store.Session. No lease of a fake holds anything.
func (*session[E, C]) Extend(context.Context, *store.Call) error { return nil }

// Peek implements store.Session.
func (s *session[E, C]) Peek(context.Context, *store.Call) error {
	s.fake.mu.Lock()
	defer s.fake.mu.Unlock()
	return s.fake.failure
}

// Check implements store.Session.
func (*session[E, C]) Check(context.Context) error { return nil }

// Close implements store.Session.
func (*session[E, C]) Close(context.Context) error { return nil }

// Open implements store.Store.
func (s *session[E, C]) Open(env *store.Env, _ ...store.Definition) (store.Session, error) {
	s.clock = env.Clock
	return s, nil
}

// Sealed implements store.Store.
func (*session[E, C]) Sealed(seal.Sealed) {}
