package review

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/window"
	"github.com/sluice-go/sluice/gen/internal/words"
)

// limit returns n with its pace: 100 per minute, burst 150: 1 token every 600 ms, empty to full in 90 s. Of a
// limit that does not refill, it returns when tokens come back.
func limit(n schema.Numbers, w *window.Window) string {
	switch {
	case n.InFlight():
		return words.Limit(n, w) + ": what a call takes comes back when its lease ends"
	case w != nil && w.Unit == window.Never:
		return words.Limit(n, w) + ": time brings nothing back, a Grant adds to it"
	case w != nil:
		return words.Limit(n, w) + ": all of it comes back when the window ends"
	}
	if n.Unlimited() {
		return words.Numbers(n) + ": counted, and never denied"
	}
	return words.Numbers(n) + ": " + pace(n) + ", empty to full in " + fullIn(n)
}

// pace returns the time of one token, or, if that is less than a millisecond, the tokens of one.
func pace(n schema.Numbers) string {
	ms := n.Period.Milliseconds()
	if n.Refill <= ms {
		every, exact := span(big.NewRat(ms, n.Refill))
		return "1 token " + about(exact) + "every " + every
	}
	many, exact := rounded(big.NewRat(n.Refill, ms))
	return about(exact) + many + " tokens every ms"
}

// fullIn returns the time in which an empty bucket becomes full.
func fullIn(n schema.Numbers) string {
	ms := new(big.Rat).Mul(big.NewRat(n.Burst, 1), big.NewRat(n.Period.Milliseconds(), n.Refill))
	in, exact := span(ms)
	return about(exact) + in
}

// keeps returns what every region keeps of n, as the runtime's bucket.Limit.Quota has it: 500, burst 750. The
// burst is scaled like the capacity, in millitokens, and is at least a token.
func keeps(r *schema.Regions, n schema.Numbers) string {
	tokens := r.Keeps(n.Capacity)
	text := words.Digits(tokens, ",")
	if tokens == 0 || n.Burst == n.Capacity {
		return text
	}
	burst := new(big.Int).Mul(big.NewInt(n.Burst*milli), big.NewInt(tokens))
	burst.Quo(burst, big.NewInt(n.Capacity))
	whole, part := new(big.Int).QuoRem(burst, big.NewInt(milli), new(big.Int))
	text += ", burst " + words.Digits(whole.Int64(), ",")
	if part.Sign() > 0 {
		text += strings.TrimRight(fmt.Sprintf(".%03d", part.Int64()), "0")
	}
	return text
}

func about(exact bool) string {
	if exact {
		return ""
	}
	return "about "
}

// span returns a time in the unit that makes it a number of one to three digits, if there is one.
func span(ms *big.Rat) (text string, exact bool) {
	unit, name := int64(1), "ms"
	for _, u := range []struct {
		ms   int64
		name string
		from int64 // ms: the shortest time in this unit
	}{{1_000, "s", 1_000}, {60_000, "min", 120_000}, {3_600_000, "h", 7_200_000}, {86_400_000, "days",
		172_800_000}} {
		if ms.Cmp(big.NewRat(u.from, 1)) >= 0 {
			unit, name = u.ms, u.name
		}
	}
	text, exact = rounded(new(big.Rat).Quo(ms, big.NewRat(unit, 1)))
	return text + " " + name, exact
}

// rounded returns n, which is positive, with three significant digits, or with all before the point if they
// are more. exact reports that this is n itself.
func rounded(n *big.Rat) (text string, exact bool) {
	decimals := 0
	for least := big.NewRat(100, 1); decimals < mostDecimals && n.Cmp(least) < 0; decimals++ {
		least.Quo(least, big.NewRat(10, 1))
	}
	text = n.FloatString(decimals)
	shown, _ := new(big.Rat).SetString(text)
	whole, fraction, _ := strings.Cut(text, ".")
	if count, err := strconv.ParseInt(whole, 10, 64); err == nil {
		whole = words.Digits(count, ",")
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	return whole, shown.Cmp(n) == 0
}

// mostDecimals are enough for what a schema allows: ten million tokens a second fill a bucket of one in
// 0.0001 ms.
const mostDecimals = 6
