package schemafile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// Parse reads LIMIT=CAPACITY[/EVERY][,burst=N][,refill=N] and returns the index of the limit. As in
// limits.yaml, burst and refill are the capacity unless given; the period is that of the schema unless
// given. Of a limit that does not refill, only the capacity can be given.
func (l Scope) Parse(text string) (int, bucket.Limit, error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return 0, bucket.Limit{}, program.Usagef("%q is not LIMIT=CAPACITY: write it like %s=100", text,
			l.Spec.Limits[0])
	}
	i, err := l.Limit(name)
	if err != nil {
		return 0, bucket.Limit{}, err
	}
	if err := l.Has(i); err != nil {
		return 0, bucket.Limit{}, err
	}
	own, perCall := l.own(i)
	limit, wrong := restate(own, value)
	if beside := noRefill(own); beside != "" {
		limit, wrong = l.capacityOf(i, beside, value)
	}
	if wrong == "" {
		wrong = l.Spec.CheckLimit(i, limit, perCall)
	}
	if wrong != "" {
		return 0, bucket.Limit{}, program.Usagef("%q: %s", text, wrong)
	}
	return i, limit, nil
}

// noRefill says why a limit has no refill, or returns an empty string.
func noRefill(l bucket.Limit) string {
	switch {
	case l.Prepaid():
		return "is prepaid"
	case l.Windowed():
		return "has windows"
	case l.InFlight():
		return "is of calls in flight"
	}
	return ""
}

// capacityOf returns the i-th limit, which does not refill because of beside, with value, a CAPACITY. That is
// an amount for a limit of money. A non-empty text says what is wrong with value.
func (l Scope) capacityOf(i int, beside, value string) (limit bucket.Limit, wrong string) {
	own, _ := l.own(i)
	name, parse := l.Spec.Limits[i], gen.ParseCount
	if l.Spec.Unit(i) != "" {
		parse = gen.ParseAmount
	}
	capacity, rest, more := strings.Cut(value, ",")
	if next, _, _ := strings.Cut(rest, ","); more && !strings.Contains(next, "=") {
		capacity = value // a comma in the number: the part before it is another one
	}
	capacity, _, _ = strings.Cut(capacity, "/")
	n, why := parse(capacity)
	switch {
	case why != "":
		wrong = fmt.Sprintf("capacity %q %s", capacity, why)
	case capacity != value:
		which := ""
		if own.Windowed() && !own.Prepaid() {
			which = ", which are those of limits.yaml"
		}
		wrong = fmt.Sprintf("%s %s%s: there is no every, burst or refill to change, write %s=%s", name, beside,
			which, name, capacity)
	}
	n = bucket.Mul(n, l.Spec.Scale(i))
	return bucket.Limit{Capacity: n, Burst: n, Period: own.Period}, wrong
}

// Fits says why limit, such as one of a file, cannot override the i-th limit, or returns an empty string.
func (l Scope) Fits(i int, limit bucket.Limit) string {
	if l.KindWith(i) == store.NoKind {
		return "kind " + l.Own().Name + " does not have it: leave it out"
	}
	own, perCall := l.own(i)
	beside, restated := noRefill(own),
		bucket.Limit{Capacity: limit.Capacity, Burst: limit.Capacity, Period: own.Period}
	switch {
	case beside != "" && limit != restated:
		return fmt.Sprintf("it %s, so only its capacity can differ from limits.yaml: write burst_milli %d, "+
			"refill_milli 0 and period_ms %d", beside, limit.Capacity, own.Period)
	case beside == "" && noRefill(limit) != "":
		return "refill 0 is for limits with windows or of calls in flight, and it refills: write the refill, " +
			"such as the capacity"
	}
	return l.Spec.CheckLimit(i, limit, perCall)
}

// restate returns own with the numbers of value, CAPACITY[/EVERY][,burst=N][,refill=N]. A non-empty text
// says what is wrong with value.
func restate(own bucket.Limit, value string) (l bucket.Limit, wrong string) {
	count := func(what, text string) (milli int64) {
		n, why := gen.ParseCount(text)
		if why != "" && wrong == "" {
			wrong = fmt.Sprintf("%s %q %s", what, text, why)
		}
		return bucket.Mul(n, bucket.Milli)
	}
	parts := strings.Split(value, ",")
	capacity, every, hasEvery := strings.Cut(parts[0], "/")
	n := count("capacity", capacity)
	l = bucket.Limit{Capacity: n, Burst: n, Refill: n, Period: own.Period}
	if hasEvery {
		d, why := gen.ParsePeriod(every)
		if why != "" && wrong == "" {
			wrong = fmt.Sprintf("period %q %s", every, why)
		}
		l.Period = d.Milliseconds()
	}
	seen := make(map[string]bool, 2)
	for _, part := range parts[1:] {
		key, text, _ := strings.Cut(part, "=")
		switch {
		case wrong != "":
		case key != "burst" && key != "refill":
			wrong = fmt.Sprintf("%q cannot follow the capacity: %s", key,
				gen.Cure(key, []string{"burst", "refill"}))
		case seen[key]:
			wrong = key + " is given twice: leave one out"
		case key == "burst":
			l.Burst = count(key, text)
		default:
			l.Refill = count(key, text)
		}
		seen[key] = true
	}
	return l, wrong
}

// Restate returns the text that Parse reads as limit, for the limit with index i. If there is none, wrong
// says why.
func (l Scope) Restate(i int, limit bucket.Limit) (text, wrong string) {
	if l.Spec.Unit(i) != "" {
		return l.restateMoney(i, limit)
	}
	for _, milli := range []int64{limit.Capacity, limit.Burst, limit.Refill} {
		if milli%bucket.Milli != 0 {
			return "", strconv.FormatFloat(float64(milli)/bucket.Milli, 'f', -1, 64) +
				" is not a whole number of tokens"
		}
	}
	if wrong := l.Fits(i, limit); wrong != "" {
		return "", wrong
	}
	own, _ := l.own(i)
	text = fmt.Sprintf("%s=%d", l.Spec.Limits[i], limit.Capacity/bucket.Milli)
	if limit.Period != own.Period {
		text += "/" + format.Period(limit.Period)
	}
	if limit.Burst != limit.Capacity {
		text += fmt.Sprintf(",burst=%d", limit.Burst/bucket.Milli)
	}
	if limit.Refill != limit.Capacity && noRefill(limit) == "" {
		text += fmt.Sprintf(",refill=%d", limit.Refill/bucket.Milli)
	}
	return text, ""
}

// restateMoney is Restate of a limit of money. An override may have more decimals than Parse reads.
func (l Scope) restateMoney(i int, limit bucket.Limit) (text, wrong string) {
	if wrong := l.Fits(i, limit); wrong != "" {
		return "", wrong
	}
	capacity := money.Amount(limit.Capacity).String()
	if _, wrong := gen.ParseAmount(capacity); wrong != "" {
		return "", capacity + " " + wrong
	}
	return l.Spec.Limits[i] + "=" + capacity, ""
}
