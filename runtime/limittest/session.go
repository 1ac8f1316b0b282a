package limittest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/seal"
	"github.com/sluice-go/sluice/runtime/store"
)

// definition is a resource of one limit, of which every kind has a bucket.
type definition struct{ spec *store.Spec }

// Spec implements store.Definition.
func (d definition) Spec() *store.Spec { return d.spec }

// definitionFor returns one that knows entity's kind, and so as many as come before it.
func definitionFor(entity store.Entity, shadow bool) definition {
	spec := &store.Spec{Resource: "fake", Limits: []string{""}, Cascade: store.CascadeNone,
		OnUnavailable: store.Deny, Shadow: shadow}
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
	call     *Call[E, C]
	said     []C // all costs that were turned into vectors
	denied   bool
	admitted bool
}

// vector stands for a cost, of which nobody here knows the limits: its place among those said, from 1.
func (s *session[E, C]) vector(cost C, dst []int64) []int64 {
	s.fake.mu.Lock()
	defer s.fake.mu.Unlock()
	s.said = append(s.said, cost)
	return append(dst, int64(len(s.said)))
}

// cost undoes vector. Any other vector is that of nothing.
func (s *session[E, C]) cost(v []int64) (cost C) {
	s.fake.mu.Lock()
	defer s.fake.mu.Unlock()
	if len(v) == 1 && v[0] >= 1 && v[0] <= int64(len(s.said)) {
		cost = s.said[v[0]-1]
	}
	return cost
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
				s.call.Done, s.call.Settled = true, s.said[len(s.said)-1]
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

// Acquire implements store.Session.
func (s *session[E, C]) Acquire(_ context.Context, call *store.Call) error {
	s.fake.mu.Lock()
	defer s.fake.mu.Unlock()
	d, err := s.fake.denial, s.fake.failure
	if denied, ok := errors.AsType[*store.DeniedError](err); ok {
		if s.denied {
			return s.admit(nil) // as with Deny
		}
		own := *denied // a Wait writes in it
		s.denied, err = true, &own
	}
	if err == nil && d != nil && !s.denied {
		s.denied = true // who asks again has waited
		entity := call.Parts[0].Buckets[0].Entity
		err = &store.DeniedError{
			Resource: "fake", Entity: entity, Limit: d.limit, RetryAfter: d.retryAfter,
			Refusals: []store.Refusal{{Entity: entity, Limit: d.limit, RetryAfter: d.retryAfter}},
		}
	}
	return s.admit(err)
}

// admit notes whether the call is admitted.
func (s *session[E, C]) admit(err error) error {
	s.admitted = err == nil
	return err
}

// Refused implements store.Session. Nothing is remembered.
func (*session[E, C]) Refused(store.Definition, []store.Link, []int64, int64) *store.DeniedError {
	return nil
}

// Settle implements store.Session. A settle to nothing is a release: a cost has a vector above 0.
func (s *session[E, C]) Settle(_ context.Context, call *store.Call) error {
	s.fake.mu.Lock()
	defer s.fake.mu.Unlock()
	s.call.Done = true
	if said := call.Parts[0].Actual[0] / bucket.Milli; said > 0 {
		s.call.Settled = s.said[said-1]
	} else {
		s.call.Released = true
	}
	return s.fake.failure
}

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
func (s *session[E, C]) Open(*store.Env, ...store.Definition) (store.Session, error) {
	return s, nil
}

// Sealed implements store.Store.
func (*session[E, C]) Sealed(seal.Sealed) {}
