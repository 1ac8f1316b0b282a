package regionscale

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/sluice-go/sluice/internal/test/regionsim"
	"github.com/sluice-go/sluice/runtime/region"
)

// A month of 30 days.
const (
	Days   = 30
	Cycles = Days * 24 * 60 * 6
	// of four shards, each twice in a fifth of a window: for records, and to find that there are no more
	streamReads = 4 * 2 * 5
	mega        = 1e6
)

// Amount is a number of requests, of units or of GB, and the price of one in dollars.
type Amount struct{ N, Price float64 }

// Dollars returns what the amount costs.
func (a Amount) Dollars() float64 { return a.N * a.Price }

// Month is what one region's sync comes to in 30 days, at the prices of on-demand tables and S3 Standard in
// us-east-1.
type Month struct {
	Reads, Writes Amount // units
	Stream        Amount // requests
	Puts, Gets    Amount
	Transfer      Amount // GB from S3, of the other regions
	Plain, Packed int    // bytes of a snapshot, as it is and compressed
}

// MonthOf returns the month of a region whose cycles write so many quotas, and read so many buckets besides
// the daily audit.
func MonthOf(writes, buckets float64) (Month, error) {
	m := Month{
		Reads: Amount{Cycles*(Resources*regionsim.KindUnits+buckets*regionsim.BucketUnits) +
			Days*Entities*Resources*regionsim.BucketUnits, 0.125 / mega},
		Writes: Amount{Cycles * (writes + 1), 0.625 / mega}, // the heartbeat
		Stream: Amount{Cycles * streamReads, 0.20 / mega},
		Puts:   Amount{Cycles, 5 / mega},
		Gets:   Amount{Cycles * Regions, 0.40 / mega},
	}
	var err error
	m.Plain, m.Packed, err = snapshotSize()
	m.Transfer = Amount{float64(m.Packed) * (Regions - 1) * Cycles / 1e9, 0.02}
	return m, err
}

// Dollars returns what the month costs in all.
func (m Month) Dollars() float64 {
	return m.Reads.Dollars() + m.Writes.Dollars() + m.Stream.Dollars() + m.Puts.Dollars() + m.Gets.Dollars() +
		m.Transfer.Dollars()
}

// PartRead returns the read units as a part of those of a region that reads every bucket in every cycle.
func (m Month) PartRead() float64 {
	return m.Reads.N / (Cycles * Resources * (regionsim.KindUnits + Entities*regionsim.BucketUnits))
}

// snapshotSize returns the bytes of a region's snapshot, as it is and compressed. Its numbers are random, as
// if no two buckets were used alike.
func snapshotSize() (plain, packed int, err error) {
	dice := rand.New(rand.NewPCG(1, 2))
	snap := &region.Snapshot{Version: region.Version, Region: "eu-central-1", Epoch: 1, Sequence: 100_000,
		GeneratedAt: begin.UnixMilli(), Window: Window.Milliseconds()}
	for i := range Entities {
		entity := fmt.Sprintf("user-%08x-%04x-%012x", i, dice.Uint32N(1<<16), dice.Uint64N(1<<48))
		for r := range Resources {
			held := dice.Int64N(whole)
			snap.Entries = append(snap.Entries, region.Entry{
				Entity: entity, Resource: fmt.Sprintf("model-%d", r),
				Born: snap.GeneratedAt - dice.Int64N(1e8), Used: snap.GeneratedAt - dice.Int64N(1e5),
				Expires: snap.GeneratedAt/1000 + 120, Gen: snap.GeneratedAt - dice.Int64N(1e8),
				Wrote: snap.GeneratedAt - dice.Int64N(1e7),
				Limits: []region.Holding{{
					Limit: "rpm", TC: dice.Int64N(1e10), TK: dice.Int64N(1e6), CP: held * 1000, BX: held * 1000,
					RA: held * 1000, RP: 60_000, Rate: dice.Int64N(1e4), Whole: whole, Held: held, Quota: held,
					Written: held, Given: map[string]int64{"us-east-1": dice.Int64N(1e5)},
					Taken: map[string]int64{"ap-south-1": dice.Int64N(1e5)},
				}},
			})
		}
	}
	text, err := json.Marshal(snap)
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, failed := z.Write(text)
	err = errors.Join(err, failed, z.Close())
	return len(text), out.Len(), err
}
