package bucket

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/runtime/money"
)

// The bounds of docs/design.md, "Arithmetic", in tokens; package schema has the same. With them int64 holds
// every sum of millitokens and milliseconds.
const (
	maxTokens     = 1_000_000_000_000
	maxPerSecond  = 10_000_000 // tokens refilled, which is 10^7 millitokens per millisecond as well
	maxPeriodDays = 366
	maxFillDays   = 3650

	day = int64(24 * time.Hour / time.Millisecond)
)

// scale is what a limit counts: whole tokens, or money.
type scale struct {
	unit int64 // millitokens in a whole token, or in a nano-unit of money
	most int64 // the largest number of a limit, in tokens or nano-units
	text func(milli int64) string
}

// Unlimited reports whether l is what capacity: unlimited of limits.yaml is, for tokens or for money. It is
// the largest capacity, refilled at the largest rate whatever the period is.
func (l Limit) Unlimited(ofMoney bool) bool {
	most := int64(maxTokens * Milli)
	if ofMoney {
		most = int64(money.Unlimited)
	}
	fastest := min(maxTokens*Milli, Mul(maxPerSecond, l.Period))
	return l.Capacity == most && l.Burst == most && (l.Refill == 0 || l.Refill == fastest)
}

// Check returns what is wrong with l as a limit of calls that take perCall, in whole tokens, and how to fix
// it: a clause without l's name, or "". The bounds are those of docs/design.md, "Arithmetic". A burst below
// perCall could serve no call.
func (l Limit) Check(perCall int64) string { return l.check(perCall, scale{Milli, maxTokens, tokens}) }

// CheckMoney is Check for a limit of money. Its numbers and perCall are in nano-units. The largest is
// money.Unlimited.
func (l Limit) CheckMoney(perCall int64) string {
	return l.check(perCall, scale{1, int64(money.Unlimited), func(nanos int64) string {
		return money.Amount(nanos).String()
	}})
}

func (l Limit) check(perCall int64, of scale) string {
	numbers := []number{{"capacity", l.Capacity}, {"burst", l.Burst}, {"refill", l.Refill}}
	if l.Windowed() || l.InFlight() {
		numbers = numbers[:2]
	}
	for _, n := range numbers {
		switch {
		case n.milli == 0 && l.Prepaid(): // grants fill it
		case n.milli <= 0:
			return fmt.Sprintf("%s %s is not above 0: a limit that admits nothing is none, raise it",
				n.what, of.text(n.milli))
		case n.milli == math.MaxInt64: // a number that saturated is not the given one
			return fmt.Sprintf("%s is above %s: lower it", n.what, of.text(of.most*of.unit))
		case n.milli > of.most*of.unit:
			return fmt.Sprintf("%s %s is above %s: lower it", n.what, of.text(n.milli), of.text(of.most*of.unit))
		}
	}
	switch {
	case l.Period < 1:
		return fmt.Sprintf("period %dms is below 1ms: raise it", l.Period)
	case l.Period > maxPeriodDays*day && !l.Prepaid():
		return fmt.Sprintf("period %dms is above %d days: shorten it", l.Period, maxPeriodDays)
	case l.Burst < l.Capacity:
		return fmt.Sprintf("burst %s is below the capacity %s: raise the burst or lower the capacity",
			of.text(l.Burst), of.text(l.Capacity))
	case l.Burst < Mul(perCall, of.unit) && !l.Prepaid():
		return fmt.Sprintf("burst %s is below the %s that a call takes (per_call), so that none could be served: "+
			"raise it", of.text(l.Burst), of.text(Mul(perCall, of.unit)))
	case l.Windowed(), l.InFlight():
		return ""
	case l.Refill > maxPerSecond*l.Period: // at most 3.2*10^17
		return fmt.Sprintf("refill %s every %v is above %d a second: lower the refill or raise the period",
			tokens(l.Refill), milliseconds(l.Period), maxPerSecond)
	case ceiling(mul(uint64(l.Burst), uint64(l.Period)), uint64(l.Refill)) > maxFillDays*uint64(day):
		return fmt.Sprintf("burst %s takes more than %d days to be full from empty, at %s every %v: "+
			"raise the refill or lower the burst",
			tokens(l.Burst), maxFillDays, tokens(l.Refill), milliseconds(l.Period))
	}
	return ""
}

// number is a number of a limit, in millitokens, with its name.
type number struct {
	what  string
	milli int64
}

// tokens writes millitokens as tokens, exactly.
func tokens(milli int64) string {
	sign := ""
	if milli < 0 && milli > -Milli {
		sign = "-" // the whole part is 0
	}
	text := sign + strconv.FormatInt(milli/Milli, 10)
	if part := milli % Milli; part != 0 {
		text += strings.TrimRight(fmt.Sprintf(".%03d", max(part, -part)), "0")
	}
	return text
}
