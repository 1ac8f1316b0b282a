package engine

import (
	"maps"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// gate is what a bucket of units is of: a partition of the table or of an index, or the whole table if
// partition is empty.
type gate struct {
	partition string
	write     bool
}

// bucket holds up to a second's units, and is full at first.
type bucket struct {
	units float64
	at    time.Time
}

// partition is which partition a request reads or writes: a hash key of the table, or of the index that is
// named.
type partition struct {
	index string
	hash  value.Value // nil: no single one
}

// demand is the units that a request is about to take.
type demand struct {
	of          partition
	read, write float64
}

// admit takes the units of a request out of the table's buckets and out of its partition's. It reports false,
// and takes nothing, if one of them has too few. A request of more units than a full bucket has needs a full
// one, and leaves a debt.
func (t *tableState) admit(m moment, d demand) bool {
	var a admission
	if !a.add(t, m, d) {
		return false
	}
	a.take()
	return true
}

// admission is what the parts of one request are about to take together. Until take, nothing is taken.
type admission []taking

// taking is what is about to be taken of one bucket.
type taking struct {
	from  *bucket
	units float64
}

// add adds a part. It reports false, and adds nothing, if a bucket has too few units for it beside the parts
// before it.
func (a *admission) add(t *tableState, m moment, d demand) bool {
	sum := *a
	for _, want := range [...]struct {
		rate, units   float64
		single, write bool
	}{
		{m.TableRead, d.read, false, false},
		{m.TableWrite, d.write, false, true},
		{m.PartitionRead, d.read, true, false},
		{m.PartitionWrite, d.write, true, true},
	} {
		if want.rate == 0 || want.units == 0 || want.single && d.of.hash == nil {
			continue
		}
		g := gate{write: want.write}
		if want.single {
			g.partition = d.of.index + "/" + string(value.Append(nil, d.of.hash))
		}
		b := t.bucket(g, want.rate, m.now)
		units := want.units
		for _, before := range *a {
			if before.from == b {
				units += before.units
			}
		}
		if b.units < min(units, want.rate) {
			return false
		}
		sum = append(sum, taking{b, want.units})
	}
	*a = sum
	return true
}

// take takes what was added.
func (a admission) take() {
	for _, t := range a {
		t.from.units -= t.units
	}
}

// bucket returns the gate's bucket as it is now.
func (t *tableState) bucket(g gate, rate float64, now time.Time) *bucket {
	b := t.buckets[g]
	if b == nil {
		if t.buckets == nil {
			t.buckets = map[gate]*bucket{}
		}
		if len(t.buckets) >= t.bucketsMax {
			t.dropFull(now)
		}
		b = &bucket{units: rate, at: now}
		t.buckets[g] = b
	}
	b.units = min(rate, b.units+rate*max(0, now.Sub(b.at).Seconds()))
	b.at = now
	return b
}

// dropFull drops the buckets that a second has filled, since they equal new ones. The bound becomes twice the
// number of buckets left.
func (t *tableState) dropFull(now time.Time) {
	maps.DeleteFunc(t.buckets, func(_ gate, b *bucket) bool {
		return b.units >= 0 && now.Sub(b.at) >= time.Second
	})
	t.bucketsMax = max(minBuckets, 2*len(t.buckets))
}

// minBuckets is how many buckets are no burden.
const minBuckets = 1024

// ThroughputExceeded is the exception for a request that was not admitted.
func ThroughputExceeded() error {
	return exception.New(exception.ProvisionedExceeded, "%s", provisionedExceededText)
}

const provisionedExceededText = "The level of configured provisioned throughput for the table was " +
	"exceeded. Consider increasing your provisioning level with the UpdateTable API."
