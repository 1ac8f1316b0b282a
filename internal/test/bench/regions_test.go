package main

import (
	"testing"
	"time"
)

// TestRegions measures a hundredth of the case, once more than it is played.
func TestRegions(t *testing.T) {
	all := regionExperiments(conditions{load: 10 * time.Millisecond})
	for i := range all {
		for range 2 {
			values, err := all[i].measure(t.Context())
			if err == nil {
				err = all[i].note(values)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	month, cycle := all[0].rows[0], all[1].rows[0]
	if month.outcome() != "ok" {
		t.Errorf("%s: %s", month.what, month.measured())
	}
	for _, f := range month.figures {
		if f.runs[0] != f.runs[1] || f.runs[0] <= 0 {
			t.Errorf("%s: %v", f.name, f.runs)
		}
	}
	if k := median(cycle.figures[1].runs); k < 0.2 || k > 20 { // 1 to 100 for each quota
		t.Errorf("a cycle of 200 quotas makes %v thousand allocations", k)
	}
}
