package override

import (
	"context"
	"slices"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// ranked has, of each limit of a scope, what decides it before the schema does, in order of precedence. The
// override of the scope itself comes first.
type ranked [][]store.Stored

// rank reads what decides the limits of o. Those of a template by name and of all its names together differ.
func (o *overrides) rank(ctx context.Context, p program.Env) (ranked, error) {
	all, ofKind := make(ranked, len(o.Spec.Limits)), map[int][]store.Stored{}
	for i := range all {
		kind := o.KindWith(i)
		if kind == store.NoKind {
			kind = o.Kind
		}
		if ofKind[kind] == nil {
			one := explanation{overrides: *o}
			one.Kind = kind
			stored, err := one.sources(ctx, p)
			if err != nil {
				return nil, err
			}
			ofKind[kind], o.beat, o.now = stored, one.beat, one.now
		}
		all[i] = ofKind[kind]
	}
	return all, nil
}

// own returns the override of the scope itself.
func (l ranked) own() store.Stored { return l[0][0] }

// with returns l once the override of the scope is s.
func (l ranked) with(s store.Stored) ranked {
	all := make(ranked, len(l))
	for i, stored := range l {
		all[i] = append([]store.Stored{s}, stored[1:]...)
	}
	return all
}

// printChange prints the limits that a write has changed, before and after. had are those that the override
// had.
func (o overrides) printChange(p program.Env, before ranked, had []*bucket.Limit, now store.Stored) error {
	rows := [][]string{{"LIMIT", "", "CAPACITY", "BURST", "REFILL", "FROM"}}
	after := before.with(now)
	for i, name := range o.Spec.Limits {
		old, next := o.inForce(before[i], i), o.inForce(after[i], i)
		if !slices.Equal(old, next) || !sameLimit(had[i], now.Limits[i]) {
			rows = append(rows, append([]string{name, "was"}, old...), append([]string{"", "now"}, next...))
		}
	}
	return texttable.Write(p.Stdout, "  ", "llrrll", rows)
}
