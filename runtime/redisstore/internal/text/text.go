// Package text writes and reads what Redis stores, takes and returns: limits, costs, balances, keys and INFO.
package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// LimitFields returns the start of the fields of limits at an entity, a kind or a plan: l_rpm, and
// l_pro.key.rpm in the hash of all plans.
func LimitFields(at string) string {
	if _, _, ofPlan := store.SplitPlanAt(at); ofPlan {
		return "l_" + store.PlanAt(at, "")
	}
	return "l_"
}

// Limit returns a limit as its field stores it: capacity, burst, refill and period, in millitokens and ms.
func Limit(l bucket.Limit) string {
	return fmt.Sprintf("%d %d %d %d", l.Capacity, l.Burst, l.Refill, l.Period)
}

// MostMoney is the largest capacity of a limit of money, in nano-units. Numbers of scripts are exact up to
// 2^53, so usage may be above it.
const MostMoney = 9_000_000 * money.Unit

// CheckLimit returns what is wrong with l as the i-th limit of spec on Redis: a clause without l's name, or
// "".
func CheckLimit(spec *store.Spec, i int, l bucket.Limit) string {
	if spec.Unit(i) != "" && l.Burst > int64(MostMoney) {
		return fmt.Sprintf("capacity %v is above %v, up to which money is exact on Redis: lower it, or keep it on "+
			"DynamoDB", money.Amount(l.Burst), MostMoney)
	}
	return spec.CheckLimit(i, l, 0)
}

// ParseLimit is the inverse of Limit, for the i-th limit of spec. It fails, naming the limit, for other text.
func ParseLimit(spec *store.Spec, i int, text string) (*bucket.Limit, error) {
	l, name := &bucket.Limit{}, spec.Limits[i]
	into := [...]*int64{&l.Capacity, &l.Burst, &l.Refill, &l.Period}
	words := strings.Fields(text)
	if len(words) != len(into) {
		return nil, fmt.Errorf("limit %s: %q: want capacity, burst, refill and period", name, text)
	}
	for i, word := range words {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("limit %s: %q: %q is not a number", name, text, word)
		}
		*into[i] = n
	}
	if wrong := CheckLimit(spec, i, *l); wrong != "" {
		return nil, fmt.Errorf("limit %s: %s", name, wrong)
	}
	return l, nil
}

// Params returns the arguments of a script for one limit: its burst in tokens, its refill in tokens per ms,
// and the version of the overrides that these are from.
func Params(l bucket.Limit, version int64) []any {
	burst := float64(l.Burst) / bucket.Milli
	perMillisecond := float64(l.Refill) / bucket.Milli / float64(l.Period)
	return []any{float(burst), float(perMillisecond), version}
}

// float writes f so that it parses back to the same number, and without an exponent: miniredis does not take
// 1e+06 for a number.
func float(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Tokens returns millitokens as tokens, exactly, as an argument of a script.
func Tokens(milli int64) any {
	if milli%bucket.Milli == 0 {
		return milli / bucket.Milli
	}
	text := strconv.FormatInt(milli/bucket.Milli, 10)
	if milli < 0 && milli > -bucket.Milli {
		text = "-0"
	}
	part := milli % bucket.Milli
	return text + "." + strconv.FormatInt(bucket.Milli+max(part, -part), 10)[1:]
}

// Number reads the number in a field of a bucket. It fails for what is no finite one, though scripts
// calculate with it.
func Number(field string, stored any) (float64, error) {
	text, _ := stored.(string)
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return 0, fmt.Errorf("%s is %q, which is not a number", field, text)
	}
	return n, nil
}

// Tag returns the part of key that decides where it is stored: its hash tag, or all of it. Keys with the
// same tag are stored together, in a slot of a cluster or on a shard of a Ring, which has no slots.
func Tag(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}

// InfoField returns the value of one field of INFO's reply.
func InfoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Milliseconds returns a duration of ms, saturated. Redis converts a number beyond int64 to one
// that is no duration.
func Milliseconds(ms int64) time.Duration {
	if ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// Glob escapes text for a pattern of SCAN, so that it matches only itself.
func Glob(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
