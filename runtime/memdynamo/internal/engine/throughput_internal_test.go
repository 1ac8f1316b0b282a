package engine

import (
	"strconv"
	"testing"
	"time"
)

// Buckets that have filled up are forgotten; one that is in debt is not.
func TestBucketsAreForgotten(t *testing.T) {
	s, now := &tableState{}, time.Unix(0, 0)
	s.bucket(gate{partition: "debtor"}, 10, now).units = -2000
	for i := range 100 * minBuckets {
		now = now.Add(time.Millisecond)
		s.bucket(gate{partition: strconv.Itoa(i)}, 10, now).units = 0
	}
	if n := len(s.buckets); n > 4*minBuckets {
		t.Errorf("%d buckets, of which about 1000 are not full", n)
	}
	if units := s.bucket(gate{partition: "debtor"}, 10, now).units; units >= 10 {
		t.Errorf("the debtor has %v units", units)
	}
}
