package inforce_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/inforce"
	"github.com/sluice-go/sluice/runtime/store"
)

func perMinute(n int64) bucket.Limit { return bucket.Per(n, time.Minute) }

// numbers is an override of n a minute, or of nothing, in this revision.
func numbers(at string, n, revision int64) store.Stored {
	s := store.Stored{At: at, Limits: []*bucket.Limit{nil}}
	s.Revision = store.Revision(strconv.FormatInt(revision, 10))
	if n > 0 {
		l := perMinute(n)
		s.Limits[0] = &l
	}
	return s
}

// model is a name of a template for orgs on plans.
func model() *store.Spec {
	limits := func(n int64) [][]bucket.Limit { return [][]bucket.Limit{{perMinute(n)}} }
	return &store.Spec{
		Limits: []string{"rpm"},
		Kinds:  []store.Kind{{Name: "org", Parent: store.NoParent, Limits: []bucket.Limit{perMinute(60)}}},
		Plans:  &store.Plans{Names: []string{"free", "pro"}, Limits: [][][]bucket.Limit{limits(6), limits(100)}},
	}
}

// TestVersion: the version is the sum of six, which come from all that was read.
func TestVersion(t *testing.T) {
	from := inforce.Sources{
		Own: numbers("org-7", 5, 1), OfAll: numbers("org-7", 0, 20), OfKind: numbers("org", 0, 300),
		Entry: &store.Entry{Version: 4000}, OnPlan: store.OnPlan{Of: "org-7", Name: "pro", Version: 50_000},
		Plans: "600000",
	}
	n := from.Resolve(model(), 0)
	if n.Version != 654_321 || n.Of != "org-7" || n.Limits[0] != perMinute(5) {
		t.Errorf("%+v, want version 654321 and the entity's 5", n)
	}
}

// TestUnknown: of a plan that nobody here knows, calls have the most that a known one gives. Sources that
// come before all plans decide nevertheless.
func TestUnknown(t *testing.T) {
	gold := store.OnPlan{Of: "org-7", Name: "gold", Version: 7}
	for name, test := range map[string]struct {
		from inforce.Sources
		want int64
	}{
		"plans": {inforce.Sources{}, 100},
		"a plan as changed": {
			inforce.Sources{Changed: []store.Stored{numbers("free.org", 200, 8), numbers("pro.org", 20, 8)}}, 200,
		},
		"kind":  {inforce.Sources{OfKind: numbers("org", 300, 8)}, 300},
		"entry": {inforce.Sources{Entry: &store.Entry{Numbers: []store.Stored{numbers("org", 10, 8)}}}, 10},
		"entry at a plan": {
			inforce.Sources{Entry: &store.Entry{Numbers: []store.Stored{
				numbers("org", 10, 8), numbers("pro.org", 50, 8),
			}}}, 50,
		},
		"entity": {inforce.Sources{Own: numbers("org-7", 3, 8)}, 3},
	} {
		test.from.OnPlan = gold
		n := test.from.Resolve(model(), 0)
		if n.Version != inforce.Unknown || n.Limits[0] != perMinute(test.want) {
			t.Errorf("%s: %+v, want %d a minute", name, n, test.want)
		}
	}
}
