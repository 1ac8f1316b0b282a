package region

import (
	"testing"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// TestKindWithoutLimit: a limit that the kind does not have has no holding, and no quota of it is stored.
func TestKindWithoutLimit(t *testing.T) {
	w := newWorld(t, 1000, "a", "b")
	w.spec.Limits = append(w.spec.Limits, "tpm")
	w.spec.Kinds[0].Limits = append(w.spec.Kinds[0].Limits, bucket.Limit{})
	w.regions[0].rates[user], w.regions[1].rates[user] = 9, 1
	w.run(30)
	w.check()
	quota := w.regions[0].stored[user].Limits
	if len(quota) != 2 || quota[0] == nil || quota[0].Capacity <= 500*bucket.Milli || quota[1] != nil {
		t.Errorf("the quota is %v, want most of rpm and nothing of tpm", quota)
	}
	for _, bk := range w.regions[0].sync.books.all() {
		if len(bk.Limits) != 1 || bk.Limits[0].Limit != "rpm" {
			t.Errorf("%s holds %+v, want rpm alone", bk.Entity, bk.Limits)
		}
		if got := inOrder(bk, []int64{7}); len(got) != 2 || got[0] != 7 || got[1] != 0 {
			t.Errorf("7 of rpm is %v by the resource's limits", got)
		}
	}
}
