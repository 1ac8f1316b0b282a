package engine

import (
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// gate is what a bucket of units is of: a partition of the table or of an index, or the whole table if partition is empty.
type gate struct {
	partition string
	write     bool
}

// bucket holds up to a second's units, and is full at first.
type bucket struct {
	units float64
	at    time.Time
}

// partition is which partition a request reads or writes: a hash key of the table, or of the index that is named.
type partition struct {
	index string
	hash  value.Value // nil: no single one
}

// demand is the units that a request is about to take.
type demand struct {
	of          partition
	read, write float64
}

// admit takes the units of a request out of the table's buckets and out of its partition's. It reports false, and takes
// nothing, if one of them has too few. What no full bucket could serve needs a full one, and leaves a debt.
func (t *tableState) admit(m moment, d demand) bool {
	type taking struct {
		from  *bucket
		units float64
	}
	var takings [4]taking
	n := 0
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
		if b.units < min(want.units, want.rate) {
			return false
		}
		takings[n] = taking{b, want.units}
		n++
	}
	for _, taking := range takings[:n] {
		taking.from.units -= taking.units
	}
	return true
}

// bucket returns the gate's bucket as it is now.
func (t *tableState) bucket(g gate, rate float64, now time.Time) *bucket {
	b := t.buckets[g]
	if b == nil {
		if t.buckets == nil {
			t.buckets = map[gate]*bucket{}
		}
		b = &bucket{units: rate, at: now}
		t.buckets[g] = b
	}
	b.units = min(rate, b.units+rate*max(0, now.Sub(b.at).Seconds()))
	b.at = now
	return b
}

// throughputExceeded is the exception for a request that was not admitted.
func throughputExceeded() error {
	return exception.New(exception.ProvisionedExceeded, "%s", provisionedExceededText)
}

const provisionedExceededText = "The level of configured provisioned throughput for the table was exceeded. " +
	"Consider increasing your provisioning level with the UpdateTable API."
