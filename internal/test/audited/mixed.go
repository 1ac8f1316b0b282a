package audited

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// older is Spec of a binary that does not have one of its limits and one of its usages.
func older() *store.Spec {
	s := *Spec()
	s.Limits, s.Usages = s.Limits[:1], s.Usages[:1]
	s.Kinds = append([]store.Kind(nil), s.Kinds...)
	for i := range s.Kinds {
		if s.Kinds[i].Limits != nil {
			s.Kinds[i].Limits = s.Kinds[i].Limits[:1]
		}
	}
	return &s
}

// mixed returns what is wrong with records of what two binaries change, of which the older one knows less.
// Fields that a record does not name stay as they are.
func mixed(ctx context.Context, open func() *World) (found []string) {
	rpm, month := bucket.Per(5, time.Minute), bucket.InWindows(7, 30*24*time.Hour)
	both, one := []*bucket.Limit{&rpm, &month}, []*bucket.Limit{&rpm}
	all := things()
	for _, t := range all[:3] { // overrides
		w := open()
		var rev store.Revision
		for _, write := range []struct {
			spec   *store.Spec
			limits []*bucket.Limit
		}{{Spec(), both}, {older(), one}, {Spec(), both}, {older(), []*bucket.Limit{nil}}} {
			now, err := w.Overrides.Set(ctx, write.spec, store.Stored{At: t.at, Limits: write.limits, Revision: rev})
			if rev = now; err != nil {
				return append(found, fmt.Sprintf("%s: %v", t.name, err))
			}
			found = append(found, t.follows(ctx, w)...)
		}
	}
	w, t := open(), all[len(all)-1]
	var rev store.Revision
	for _, spec := range []*store.Spec{Spec(), older(), Spec()} {
		e := store.Entry{Name: "gpt-5", Revision: rev, Prices: []int64{3, 4}[:len(spec.Usages)]}
		now, err := w.Catalog.Set(ctx, spec, e)
		if rev = now; err != nil {
			return append(found, fmt.Sprintf("%s: %v", t.name, err))
		}
		found = append(found, t.follows(ctx, w)...)
	}
	if err := w.Catalog.Delete(ctx, older(), "gpt-5", rev); err != nil {
		return append(found, fmt.Sprintf("%s: %v", t.name, err))
	}
	return append(found, t.follows(ctx, w)...)
}

// follows returns how what has become of t differs from what its records lead to.
func (t *thing) follows(ctx context.Context, w *World) (found []string) {
	state := map[string]string{}
	for c, err := range w.Changes(ctx, t.of, time.Time{}) {
		if err != nil {
			return []string{fmt.Sprintf("%s: %v", t.name, err)}
		}
		for name, was := range c.Before {
			if state[name] != was {
				found = append(found, fmt.Sprintf("%s: a record has %s before, which was %q: %+v", t.name, name,
					state[name], c))
			}
			delete(state, name)
		}
		maps.Copy(state, c.After)
	}
	now, err := t.stored(ctx, w)
	if err != nil || !maps.Equal(state, now) {
		found = append(found, fmt.Sprintf("%s: two binaries' records lead to %v, and it is %v, %v", t.name, state,
			now, err))
	}
	return found
}
