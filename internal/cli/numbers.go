package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// numbers writes l as all tables of limits do: capacity, burst, refill.
func numbers(l bucket.Limit) []string {
	return []string{
		tokens(l.Capacity), tokens(l.Burst), tokens(l.Refill) + " every " + span(time.Duration(l.Period)*time.Millisecond),
	}
}

// parse reads LIMIT=CAPACITY[/EVERY][,burst=N][,refill=N], as limits.yaml restates a limit: burst and refill follow the
// capacity, and the period is the limit's own. It returns the limit's index.
func (l level) parse(text string) (int, bucket.Limit, error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return 0, bucket.Limit{}, usageError{fmt.Sprintf("%q: want LIMIT=CAPACITY, such as %s=100", text, l.spec.Limits[0])}
	}
	i, err := l.limit(name)
	if err != nil {
		return 0, bucket.Limit{}, err
	}
	limit, wrong := restate(l.own().Limits[i], value)
	if wrong == "" {
		wrong = limit.Check(l.own().PerCall[i])
	}
	if wrong != "" {
		return 0, bucket.Limit{}, usageError{fmt.Sprintf("%q: %s", text, wrong)}
	}
	return i, limit, nil
}

// restate returns own with the numbers of value, CAPACITY[/EVERY][,burst=N][,refill=N], or what is wrong with their form.
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
			wrong = fmt.Sprintf("after the capacity there is no %q: %s", key, gen.Cure(key, []string{"burst", "refill"}))
		case seen[key]:
			wrong = key + " is there twice: leave one out"
		case key == "burst":
			l.Burst = count(key, text)
		default:
			l.Refill = count(key, text)
		}
		seen[key] = true
	}
	return l, wrong
}

// restated returns what parse reads limit as of l's i-th one, or why no override can say it.
func (l level) restated(i int, limit bucket.Limit) (text, wrong string) {
	for _, milli := range []int64{limit.Capacity, limit.Burst, limit.Refill} {
		if milli%bucket.Milli != 0 {
			return "", strconv.FormatFloat(float64(milli)/bucket.Milli, 'f', -1, 64) + " is not a whole number of tokens"
		}
	}
	own := l.own()
	if wrong := limit.Check(own.PerCall[i]); wrong != "" {
		return "", wrong
	}
	text = fmt.Sprintf("%s=%d", l.spec.Limits[i], limit.Capacity/bucket.Milli)
	if limit.Period != own.Limits[i].Period {
		text += "/" + every(limit.Period)
	}
	if limit.Burst != limit.Capacity {
		text += fmt.Sprintf(",burst=%d", limit.Burst/bucket.Milli)
	}
	if limit.Refill != limit.Capacity {
		text += fmt.Sprintf(",refill=%d", limit.Refill/bucket.Milli)
	}
	return text, ""
}

// every writes a period, in ms, as gen.ParsePeriod reads it: no fractions.
func every(ms int64) string {
	if ms%1000 != 0 {
		return fmt.Sprintf("%dms", ms)
	}
	return span(time.Duration(ms) * time.Millisecond)
}
