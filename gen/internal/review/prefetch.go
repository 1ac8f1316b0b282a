package review

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/words"
)

// prefetch returns remarks on what r's prefetch lets go beyond a limit, and what it costs.
func prefetch(r *model.Resource) string {
	if r.Prefetch == 0 {
		return ""
	}
	var s strings.Builder
	fmt.Fprintf(&s, "- `prefetch: %s`: one write takes a block of tokens, and calls are admitted from memory. "+
		"A process that calls 100 times a second pays\n  about %s of a charge a call, and one that calls 1,000 "+
		"times %s. At once, and beside its refill, a bucket admits at most:\n",
		schema.Period(r.Prefetch), perCall(r.Prefetch, 100), perCall(r.Prefetch, 1_000))
	for _, c := range r.Charged {
		for i, n := range c.Numbers {
			if n.Capacity > 0 {
				fmt.Fprintf(&s, "  - `%s` of `%s`: %s\n", r.Limits[i].Name, c.Kind.Name, ahead(n, r.Prefetch))
			}
		}
	}
	return s.String()
}

// perCall returns the part of a charge that a call costs in a process that makes so many a second. A block is
// for the calls of a prefetch, and the next one is taken an eighth before its end.
func perCall(prefetch time.Duration, calls int64) string {
	block := big.NewRat(calls*prefetch.Milliseconds()*7, 8*1000)
	return strings.TrimRight(new(big.Rat).Inv(block).FloatString(4), "0")
}

// ahead returns what a bucket with the numbers of n admits at once: its burst, and what it refills within
// prefetch.
func ahead(n schema.Numbers, prefetch time.Duration) string {
	burst := words.Count(n.Currency, n.Burst)
	if n.Refill == 0 {
		return "burst " + burst + " in a window, of which a process that is killed loses its blocks until the end"
	}
	more := big.NewRat(n.Refill, n.Period.Milliseconds())
	more.Mul(more, big.NewRat(prefetch.Milliseconds(), 1))
	whole := new(big.Int).Add(more.Num(), new(big.Int).Sub(more.Denom(), big.NewInt(1)))
	whole.Quo(whole, more.Denom())
	percent := new(big.Rat).Quo(more, big.NewRat(n.Burst, 100))
	return fmt.Sprintf("burst %s + at most %s prefetched (%s %%)", burst, words.Digits(whole.Int64(), ","),
		percent.FloatString(2))
}
