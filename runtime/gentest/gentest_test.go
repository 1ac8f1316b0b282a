package gentest

import (
	"errors"
	"testing"

	"github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestConvert: conversions in another order, or of fewer fields, are found.
func TestConvert(t *testing.T) {
	type pair struct{ a, b int64 }
	to := func(p pair, dst []int64) []int64 { return append(dst, p.a, p.b) }
	from := func(v []int64) pair { return pair{v[0], v[1]} }
	for name, tc := range map[string]struct {
		to     func(pair, []int64) []int64
		from   func([]int64) pair
		faults int
	}{
		"sound":              {to, from, 0},
		"to in another way":  {func(p pair, dst []int64) []int64 { return append(dst, p.b, p.a) }, from, 1},
		"to without one":     {func(p pair, dst []int64) []int64 { return append(dst, p.a) }, from, 1},
		"from another order": {to, func(v []int64) pair { return pair{v[1], v[0]} }, 1},
		"both turned": {
			func(p pair, dst []int64) []int64 { return append(dst, p.b, p.a) },
			func(v []int64) pair { return pair{v[1], v[0]} }, 2,
		},
	} {
		var p pair
		if errs := convert(tc.to, tc.from, &p, []*int64{&p.a, &p.b},
			func(n int) int64 { return int64(n) }); len(errs) != tc.faults {
			t.Errorf("%s: %v, want %d faults", name, errs, tc.faults)
		}
	}
	var l struct{ limit *bucket.Limit }
	zero := func(struct{ limit *bucket.Limit }, []*bucket.Limit) []*bucket.Limit { return []*bucket.Limit{nil} }
	none := func([]*bucket.Limit) struct{ limit *bucket.Limit } { return struct{ limit *bucket.Limit }{} }
	if errs := convert(zero, none, &l, []**bucket.Limit{&l.limit},
		func(int) *bucket.Limit { return new(bucket.Limit) }); len(errs) != 2 {
		t.Errorf("overrides that are dropped: %v, want 2 faults", errs)
	}
}

// texts has the script of each length of chain.
type texts []string

func (s texts) Script(chain int) string {
	if chain < len(s) {
		return s[chain]
	}
	return ""
}

// TestScripts: a script too many, one too few, and one that reads other hashes are found.
func TestScripts(t *testing.T) {
	const read = "bucket = call('HMGET', KEYS[1], 'tokens')\n"
	for name, tc := range map[string]struct {
		scripts texts
		faults  int
	}{
		"sound":              {texts{"", read, read + read}, 0},
		"one too few":        {texts{"", read}, 1},
		"one too many":       {texts{"", read, read + read, "return 1"}, 1},
		"other hashes":       {texts{"", read + read, read + read}, 1},
		"one for no buckets": {texts{"return 1", read, read + read}, 1},
	} {
		if errs := scripts(tc.scripts, []int{1, 2}); len(errs) != tc.faults {
			t.Errorf("%s: %v, want %d faults", name, errs, tc.faults)
		}
	}
}

// kinds is a table of two generated kinds.
func kinds() []Kind[generated.Entity] {
	return []Kind[generated.Entity]{
		{Name: "org", ByID: func(id string) generated.Entity { return generated.Org{ID: id} }},
		{
			Name:   "project",
			ByID:   func(id string) generated.Entity { return generated.ProjectByID(id) },
			With:   generated.Project{ID: "1", Org: generated.Org{ID: "2"}},
			Parent: "org",
		},
	}
}

// TestEntities: an entity with another chain, and a parser that reads another entity or what it should
// refuse, are found.
func TestEntities(t *testing.T) {
	if errs := append(chains(kinds()), ids(generated.ParseEntity, kinds())...); errors.Join(errs...) != nil {
		t.Error(errs)
	}
	turned := kinds()
	turned[0], turned[1] = turned[1], turned[0]
	alone := kinds()
	alone[1].With = generated.ProjectByID("1")
	for name, table := range map[string][]Kind[generated.Entity]{"kinds in another order": turned,
		"an entity without parent": alone} {
		if errors.Join(chains(table)...) == nil {
			t.Errorf("%s: no fault", name)
		}
	}
	for name, parse := range map[string]func(string) (generated.Entity, error){
		"always the same": func(string) (generated.Entity, error) { return generated.Org{ID: "1-2"}, nil },
		"never":           func(string) (generated.Entity, error) { return nil, &store.InvalidError{} },
		"with an untyped error": func(s string) (generated.Entity,
			error) {
			return untyped(generated.ParseEntity(s))
		},
	} {
		if errors.Join(ids(parse, kinds())...) == nil {
			t.Errorf("a parser that reads %s: no fault", name)
		}
	}
}

// untyped replaces an error.
func untyped(e generated.Entity, err error) (generated.Entity, error) {
	if err != nil {
		return nil, errors.New("no")
	}
	return e, nil
}

// TestWindowed: conversions of overrides with windows in another order, or that forget one, are found, and so
// is a field of a type that no override has.
func TestWindowed(t *testing.T) {
	type own struct {
		rate   *runtime.Rate
		window *int64
	}
	to := func(l own, dst []*runtime.Rate) []*runtime.Rate {
		return append(dst, l.rate, runtime.InWindow(l.window))
	}
	from := func(v []*runtime.Rate) own { return own{v[0], v[1].InWindow()} }
	turnedTo := func(l own, dst []*runtime.Rate) []*runtime.Rate {
		return append(dst, runtime.InWindow(l.window), l.rate)
	}
	turnedFrom := func(v []*runtime.Rate) own { return own{v[1], v[0].InWindow()} }
	for name, tc := range map[string]struct {
		to     func(own, []*runtime.Rate) []*runtime.Rate
		from   func([]*runtime.Rate) own
		faults int
	}{
		"sound":                    {to, from, 0},
		"to in another order":      {turnedTo, from, 2},
		"from in another order":    {to, turnedFrom, 1},
		"both in another order":    {turnedTo, turnedFrom, 2},
		"from without the windows": {to, func(v []*runtime.Rate) own { return own{rate: v[0]} }, 1},
		"none that is one": {to, func(v []*runtime.Rate) own {
			l := from(v)
			if l.window == nil {
				l.window = new(int64)
			}
			return l
		}, 1},
	} {
		var l own
		if errs := windowed(tc.to, tc.from, &l, []any{&l.rate, &l.window}); len(errs) != tc.faults {
			t.Errorf("%s: %v, want %d faults", name, errs, tc.faults)
		}
	}
	var l own
	if errs := windowed(to, from, &l, []any{&l.rate, "window"}); len(errs) != 1 {
		t.Errorf("a field that is a text: %v, want 1 fault", errs)
	}
}
