package store_test

import (
	"reflect"
	"testing"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestUnfilled: another call on a bucket names it as the first one did. A new field of Bucket is one of a
// call, which Unfilled keeps, or one of those below.
func TestUnfilled(t *testing.T) {
	named := store.Bucket{
		Entity: "user-1", Kind: 1, Windows: []*bucket.Calendar{nil}, Plan: store.OnPlan{Of: "org-7", Version: 7},
	}
	filled := named
	filled.Limits, filled.After, filled.Dropped = []bucket.Limit{{}}, &bucket.Image{}, []bool{true}
	filled.Ends, filled.Epochs, filled.Charges = []int64{1}, []int64{1}, []bucket.Charge{{}}
	filled.Source, filled.Prefetched = named, []int64{1}
	if got := filled.Unfilled(); !reflect.DeepEqual(got, named) {
		t.Errorf("%+v, want %+v", got, named)
	}
	var unset []string
	for i, v := 0, reflect.ValueOf(filled); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			unset = append(unset, v.Type().Field(i).Name)
		}
	}
	if len(unset) > 0 {
		t.Errorf("this test does not know %q", unset)
	}
}
