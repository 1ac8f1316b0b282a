package schemafile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// Parse reads LIMIT=CAPACITY[/EVERY][,burst=N][,refill=N] and returns the index of the limit. As in
// limits.yaml, burst and refill are the capacity unless given; the period is that of the schema unless
// given.
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
	limit, wrong := restate(l.Own().Limits[i], value)
	if wrong == "" {
		wrong = limit.Check(l.Own().PerCall[i])
	}
	if wrong != "" {
		return 0, bucket.Limit{}, program.Usagef("%q: %s", text, wrong)
	}
	return i, limit, nil
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
	for _, milli := range []int64{limit.Capacity, limit.Burst, limit.Refill} {
		if milli%bucket.Milli != 0 {
			return "", strconv.FormatFloat(float64(milli)/bucket.Milli, 'f', -1, 64) +
				" is not a whole number of tokens"
		}
	}
	own := l.Own()
	if wrong := limit.Check(own.PerCall[i]); wrong != "" {
		return "", wrong
	}
	text = fmt.Sprintf("%s=%d", l.Spec.Limits[i], limit.Capacity/bucket.Milli)
	if limit.Period != own.Limits[i].Period {
		text += "/" + format.Period(limit.Period)
	}
	if limit.Burst != limit.Capacity {
		text += fmt.Sprintf(",burst=%d", limit.Burst/bucket.Milli)
	}
	if limit.Refill != limit.Capacity {
		text += fmt.Sprintf(",refill=%d", limit.Refill/bucket.Milli)
	}
	return text, ""
}
