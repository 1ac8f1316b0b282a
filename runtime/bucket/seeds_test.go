package bucket_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluice-go/sluice/internal/test/docrow"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// Negative controls: the usual refill, and the plain form of the one that docs/design.md, "Arithmetic", has
// instead.

// seedRefill is the seeds' refill, which goes with rf = now: each write drops what is below a millitoken.
func seedRefill(l bucket.Limit, rf, now int64) int64 { return (now - rf) * l.Refill / l.Period }

// plainRefill is the telescoping refill as one would write it down.
func plainRefill(l bucket.Limit, rf, now int64) int64 {
	floor := func(at int64) uint64 {
		hi, lo := bits.Mul64(uint64(at), uint64(l.Refill))
		q, _ := bits.Div64(hi, lo, uint64(l.Period))
		return q
	}
	return int64(floor(now) - floor(rf))
}

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func TestSeedRefillIsCaught(t *testing.T) {
	caught := 0
	for seed := range 100 {
		w := walks().Example(seed)
		if err := telescopes(bucket.Refill, w); err != nil {
			t.Errorf("walk %d: %v", seed, err)
		}
		if telescopes(seedRefill, w) != nil {
			caught++
		}
	}
	if caught < 30 {
		t.Errorf("the seeds' refill is caught on %d of 100 walks, want at least 30", caught)
	}
}

// TestSeedRefillLoses measures the share of a limit that is lost to rounding under steady writes.
func TestSeedRefillLoses(t *testing.T) {
	const minutes = 10 * 60_000
	everyMs := func(*rand.Rand) bool { return true }
	for _, test := range []struct {
		name        string
		limit       bucket.Limit
		writes      func(*rand.Rand) bool // whether any write falls into a millisecond
		least, most float64               // percent
	}{
		// 1,000 writes/s at random instants leave a millisecond empty with probability 1/e.
		{"100 a minute, 1000 writes a second", perMinute(100), func(r *rand.Rand) bool {
			return r.Float64() > 0.36788
		}, 19, 21},
		{"100 a minute, a write each ms", perMinute(100), everyMs, 39.9, 40.1},
		{"1000 a day, 100 writes a second", bucket.Limit{Refill: 1_000_000, Period: 86_400_000},
			func(r *rand.Rand) bool { return r.Float64() < 0.1 }, 99, 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			var seeds, ours int64
			rng := seeded()
			rf := int64(year2026)
			for now := rf + 1; now <= year2026+minutes; now++ {
				if test.writes(rng) || now == year2026+minutes {
					seeds += seedRefill(test.limit, rf, now)
					ours += bucket.Refill(test.limit, rf, now)
					rf = now
				}
			}
			ideal := float64(test.limit.Refill) * minutes / float64(test.limit.Period)
			lost := 100 * (1 - float64(seeds)/ideal)
			t.Logf("of %.0f millitokens the seeds' refill loses %.1f %%, ours %.3f %%", ideal, lost,
				100*(1-float64(ours)/ideal))
			shown := []string{fmt.Sprintf("%.1f %%", lost), fmt.Sprintf("%.3f %%", 100*(1-float64(ours)/ideal))}
			if row := docrow.Find(t, "docs/protocol.md", t.Name()); !slices.Equal(row, shown) {
				t.Errorf("docs/protocol.md says %q, want %q", row, shown)
			}
			if lost < test.least || lost > test.most {
				t.Errorf("the seeds' refill loses %.2f %%, want %v to %v", lost, test.least, test.most)
			}
			if off := float64(ours) - ideal; off <= -1 || off >= 1 {
				t.Errorf("ours claims %d of %f millitokens", ours, ideal)
			}
		})
	}
}

// TestPlainRefillPanics: the quotient floor(now*ra/rp) itself needs more than 64 bits, the difference does
// not.
func TestPlainRefillPanics(t *testing.T) {
	for _, test := range []struct {
		name  string
		limit bucket.Limit
		rf    int64
	}{
		{"10^9 tokens/s in 2026", bucket.Limit{Refill: 1_000_000_000_000, Period: 1000}, year2026},
		{"10^7 tokens/s, the schema's most, in 2036", bucket.Limit{Refill: 10_000_000_000, Period: 1000},
			year2026 + tenYears},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, want := bucket.Refill(test.limit, test.rf, test.rf+1000), test.limit.Refill; got != want {
				t.Errorf("Refill of a second = %d, want %d", got, want)
			}
			defer func() {
				if recover() == nil {
					t.Error("the plain form did not panic: is Refill's detour still needed?")
				}
			}()
			plainRefill(test.limit, test.rf, test.rf+1000)
		})
	}
}
