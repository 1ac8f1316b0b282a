package emit

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// numbers says what n is, in words: 100 per minute, burst 150.
func numbers(n schema.Numbers) string {
	s := digits(n.Capacity, ",")
	if n.Refill == n.Capacity {
		s += " per " + period(n.Period)
	} else {
		s += ", refilled by " + digits(n.Refill, ",") + " per " + period(n.Period)
	}
	if n.Burst != n.Capacity {
		s += ", burst " + digits(n.Burst, ",")
	}
	return s
}

// period says how long d is: minute, 5 minutes, 1,500 milliseconds.
func period(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		switch {
		case d == u.unit:
			return u.name
		case d%u.unit == 0:
			return digits(int64(d/u.unit), ",") + " " + u.name + "s"
		}
	}
	if d == time.Millisecond {
		return "millisecond"
	}
	return digits(d.Milliseconds(), ",") + " milliseconds"
}

// list joins words: a, b and c.
func list(words []string, last string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " " + last + " " + words[n-1]
	}
	return strings.Join(words, "")
}

// article puts a or an before a name.
func article(name string) string {
	if strings.ContainsAny(name[:1], "AEIOaeio") {
		return "an " + name
	}
	return "a " + name
}

// oneLine joins the lines of a doc.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// about appends what the schema's author says to a sentence of ours: in the same paragraph if it is one line.
func about(sentence, text string) string {
	switch {
	case text == "":
		return sentence
	case strings.Contains(text, "\n"):
		return sentence + "\n\n" + text
	}
	return sentence + " " + text
}

// limitNames returns the names of r's limits.
func limitNames(r *model.Resource) []string {
	names := make([]string, len(r.Limits))
	for i, l := range r.Limits {
		names[i] = l.Name
	}
	return names
}

// chargedTypes returns the types of the kinds that have a bucket of r.
func chargedTypes(r *model.Resource, with func(string) string) []string {
	names := make([]string, len(r.Charged))
	for i, c := range r.Charged {
		names[i] = with(c.Kind.Type)
	}
	return names
}

func plain(s string) string { return s }

// costNote says what limit i is and what a 0 stands for.
func costNote(r *model.Resource, i int) string {
	note := oneLine(r.Limits[i].Doc)
	if zero := zeroNote(r, i); zero != "" {
		if note != "" {
			note = strings.TrimSuffix(note, ".") + "; "
		}
		note += zero
	}
	return note
}

// zeroNote says what a 0 stands for in a cost, kind by kind where they differ.
func zeroNote(r *model.Resource, i int) string {
	same := true
	var kinds []string
	for _, c := range r.Charged {
		same = same && c.PerCall[i] == r.Charged[0].PerCall[i]
		kinds = append(kinds, fmt.Sprintf("%s for %s", digits(c.PerCall[i], ","), article(c.Kind.Type)))
	}
	switch {
	case !same:
		return "0 means " + list(kinds, "and") + " (per_call)"
	case r.Charged[0].PerCall[i] == 0:
		return ""
	}
	return "0 means " + digits(r.Charged[0].PerCall[i], ",") + " (per_call)"
}

// bucketNumbers lists what each kind's bucket holds.
func bucketNumbers(r *model.Resource) string {
	var b strings.Builder
	for _, c := range r.Charged {
		limits := make([]string, len(r.Limits))
		for i, l := range r.Limits {
			limits[i] = l.Name + " " + numbers(c.Numbers[i])
		}
		fmt.Fprintf(&b, "\n  - %s: %s", c.Kind.Type, strings.Join(limits, "; "))
	}
	return b.String()
}
