// Package gentest has the bodies of the tests that sluice generates, as far as they concern no store. Not for
// import: generated tests import it.
//
// A generated test is a table of a schema's kinds, or of a resource's limits, and calls of these functions.
// Package codectest has the bodies for DynamoDB.
package gentest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// report runs a check as a sub-test, and fails it with each of the errors that the check returns.
func report(t *testing.T, name string, check func() []error) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Helper()
		if err := errors.Join(check()...); err != nil {
			t.Error(err)
		}
	})
}

// Costs checks that to lists the fields of a cost in schema order, and that from is its inverse. c points to
// a cost, and fields to its limits in schema order.
func Costs[C comparable](t *testing.T, to func(C, []int64) []int64, from func([]int64) C, c *C,
	fields ...*int64) {
	t.Helper()
	report(t, "vectors", func() []error {
		return convert(to, from, c, fields, func(n int) int64 { return int64(n) })
	})
}

// Overrides checks that to lists the fields of a resource's overrides in schema order, and that from is its
// inverse. l points to overrides, and fields to their limits in schema order.
func Overrides[L comparable](t *testing.T, to func(L, []*runtime.Rate) []*runtime.Rate,
	from func([]*runtime.Rate) L,
	l *L, fields ...**runtime.Rate) {
	t.Helper()
	report(t, "overrides", func() []error {
		return convert(to, from, l, fields, func(n int) *runtime.Rate { return &runtime.Rate{Capacity: int64(n)} })
	})
}

// Windowed is Overrides of a resource that has limits with windows, or in flight. fields are the limits in
// schema order: a **runtime.Rate each, a **int64 for such a limit, or a **money.Amount for one of money. An
// error names a field of another type.
func Windowed[L comparable](t *testing.T, to func(L, []*runtime.Rate) []*runtime.Rate,
	from func([]*runtime.Rate) L, l *L, fields ...any) {
	t.Helper()
	report(t, "overrides", func() []error { return windowed(to, from, l, fields) })
}

// windowed compares by the numbers: a capacity has another address in a vector than in its field.
func windowed[L comparable](to func(L, []*runtime.Rate) []*runtime.Rate, from func([]*runtime.Rate) L, l *L,
	fields []any) []error {
	var want []string
	for i, field := range fields {
		n := int64(i + 1)
		switch field := field.(type) {
		case **runtime.Rate:
			*field = &runtime.Rate{Capacity: n, Burst: n}
			want = append(want, fmt.Sprint(**field))
		case **int64:
			*field = &n
			want = append(want, fmt.Sprint(runtime.Rate{Capacity: n}))
		case **money.Amount:
			*field = (*money.Amount)(&n)
			want = append(want, fmt.Sprint(runtime.Rate{Capacity: n}))
		default:
			return []error{fmt.Errorf("field %d is a %T", i, field)}
		}
	}
	var errs []error
	hold := func(what string, vector []*runtime.Rate) {
		var got []string
		for _, rate := range vector {
			if rate == nil {
				got = append(got, "none")
				continue
			}
			got = append(got, fmt.Sprint(*rate))
		}
		if !slices.Equal(got, want) {
			errs = append(errs, fmt.Errorf("%s are %v, want %v", what, got, want))
		}
	}
	vector := to(*l, nil)
	hold("the limits", vector)
	hold("those that came back", to(from(vector), nil))
	var none L
	if got := from(make([]*runtime.Rate, len(fields))); got != none {
		errs = append(errs, fmt.Errorf("no overrides are %+v, want none", got))
	}
	return errs
}

// convert gives each field a value of its own, and holds both conversions against these values.
func convert[S, V comparable](to func(S, []V) []V, from func([]V) S, s *S, fields []*V,
	value func(n int) V) []error {
	return hold(fields, value, func() (any, []V) { return *s, to(*s, nil) }, func(v []V) (any, bool) {
		got := from(v)
		return got, got == *s
	})
}

// hold is convert without the type of the struct, so that the compiler makes no copy for each. to returns
// the struct and its vector; from returns the struct of a vector, and whether it is that of fields.
func hold[V comparable](
	fields []*V, value func(n int) V, to func() (any, []V), from func([]V) (any, bool),
) []error {
	want := make([]V, len(fields))
	for i, field := range fields {
		want[i] = value(i + 1)
		*field = want[i]
	}
	var errs []error
	s, got := to()
	if !slices.Equal(got, want) {
		errs = append(errs, fmt.Errorf("%+v became %v, want %v", s, got, want))
	}
	if got, same := from(want); !same {
		errs = append(errs, fmt.Errorf("%v became %+v, want %+v", want, got, s))
	}
	return errs
}

// Scripter is a resource with scripts for Redis, as package redisstore has it.
type Scripter interface {
	Script(chain int) string
}

// Scripts checks the number of hashes that each script reads. keys has this number for chains of one bucket,
// of two and so on; other chains have no script.
func Scripts(t *testing.T, r Scripter, keys ...int) {
	t.Helper()
	report(t, "scripts", func() []error { return scripts(r, keys) })
}

func scripts(r Scripter, keys []int) []error {
	var errs []error
	for chain, want := range slices.Concat([]int{0}, keys, []int{0}) {
		text := r.Script(chain)
		if n := strings.Count(text, "call('HMGET', KEYS["); n != want {
			errs = append(errs, fmt.Errorf("the script for a chain of %d reads %d hashes, want %d:\n%s", chain, n,
				want, text))
		}
		if want == 0 && text != "" {
			errs = append(errs, fmt.Errorf("a chain of %d has a script, want none:\n%s", chain, text))
		}
	}
	return errs
}

// Kind is a kind of entity, for Entities. E is the generated interface of all kinds.
type Kind[E store.Entity] struct {
	Name string         // as in limits.yaml
	ByID func(string) E // an entity whose parent, if its kind has one, is looked up
	With E              // the entity 1 with the parent 2; nil for a kind without parent

	Parent string // name of the parent's kind, "" for none
}

// Entities checks the chain of an entity of each kind, and that parse reads stored ids and refuses malformed
// ones. kinds are in schema order.
func Entities[E store.Entity](t *testing.T, parse func(stored string) (E, error), kinds []Kind[E]) {
	t.Helper()
	report(t, "chains", func() []error { return chains(kinds) })
	report(t, "ids", func() []error { return ids(parse, kinds) })
}

// chains holds the chain of each kind's entities against the links that follow from the table.
func chains[E store.Entity](kinds []Kind[E]) []error {
	var errs []error
	check := func(e E, want ...store.Link) {
		if got := e.Chain(nil); !slices.Equal(got, want) {
			errs = append(errs, fmt.Errorf("%#v has chain %+v, want %+v", e, got, want))
		}
	}
	for i, k := range kinds {
		check(k.ByID("1"), store.Link{Kind: i, ID: "1", Lookup: k.Parent != ""})
		if k.Parent == "" {
			continue
		}
		above := slices.IndexFunc(kinds, func(other Kind[E]) bool { return other.Name == k.Parent })
		check(k.With, store.Link{Kind: i, ID: "1"}, store.Link{Kind: above, ID: "2",
			Lookup: kinds[above].Parent != ""})
	}
	return errs
}

// ids parses a stored id of each kind, and several malformed ones.
func ids[E store.Entity](parse func(stored string) (E, error), kinds []Kind[E]) []error {
	var errs []error
	malformed := []string{"", "NONE-1"} // kinds are in small letters
	for _, k := range kinds {
		stored := k.Name + "-1-2"
		if got, err := parse(stored); err != nil || any(got) != any(k.ByID("1-2")) {
			errs = append(errs, fmt.Errorf("%q is %#v, want %#v", stored, got, k.ByID("1-2")), err)
		}
		malformed = append(malformed, k.Name, k.Name+"-", k.Name+"-#")
	}
	for _, stored := range malformed {
		got, err := parse(stored)
		if _, ok := errors.AsType[*store.InvalidError](err); !ok || any(got) != nil {
			errs = append(errs, fmt.Errorf("%q is %+v, want none and an *InvalidError", stored, got), err)
		}
	}
	return errs
}
