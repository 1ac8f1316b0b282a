package gen

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawn is a limits.yaml by its lines, which can be written in any order of kinds, resources and limits.
type drawn struct {
	head             string
	kinds, resources []string
	limits           [][]string // of each resource
	rest             []string   // of each resource: what follows its limits
}

func draw(t *rapid.T, label string) drawn {
	d := drawn{head: fmt.Sprintf("version: 1\nowner: acme\nrevision: %d\ngo: {package: %s}\n",
		rapid.IntRange(1, 3).Draw(t, label+"revision"),
		rapid.SampledFrom([]string{"limits", "quotas"}).Draw(t, label+"package"))}
	names := []string{"org", "team", "user", "robot"}[:rapid.IntRange(1, 4).Draw(t, label+"kinds")]
	top := rapid.IntRange(-1, len(names)-1).Draw(t, label+"kind of plans")
	onPlans := make([]bool, len(names))
	for i, name := range names {
		parent := ""
		onPlans[i] = i == top
		if p := rapid.IntRange(-1, i-1).Draw(t, label+"parent"); p >= 0 {
			parent = "parent: " + names[p]
			onPlans[i] = onPlans[i] || onPlans[p]
		}
		d.kinds = append(d.kinds, fmt.Sprintf("  %s: {%s}\n", name, parent))
	}
	plans := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"free", "pro", "big"}), 1, 3,
		rapid.ID[string]).Draw(t, label+"plans")
	if top >= 0 {
		d.head += fmt.Sprintf("plans: {kind: %s, names: [%s]}\n", names[top], strings.Join(plans, ", "))
	}
	number := func(of string) int { return rapid.SampledFrom([]int{10, 20}).Draw(t, label+of) }
	resources := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"api", "gpt-4", "v1/users"}), 1, 3,
		rapid.ID[string]).Draw(t, label+"resources")
	global := rapid.SampledFrom(append(resources, "")).Draw(t, label+"global")
	if global != "" {
		d.head += fmt.Sprintf("regions: {names: [%s], floor: %d, window: %s}\n",
			strings.Join(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"ap", "eu", "us"}), 2, 3,
				rapid.ID[string]).Draw(t, label+"regions"), ", "),
			number("floor"), rapid.SampledFrom([]string{"10s", "1m"}).Draw(t, label+"window"))
	}
	for _, r := range resources {
		d.resources = append(d.resources, "  "+r+":\n    limits:\n")
		limits := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"rps", "rpm", "tpm"}), 1, 3,
			rapid.ID[string]).Draw(t, label+"limits")
		var lines []string
		for _, l := range limits {
			how := fmt.Sprintf("burst: %d, every: %s", number("burst")+10,
				rapid.SampledFrom([]string{"1s", "1m"}).Draw(t, label+"every"))
			if r != global && rapid.Bool().Draw(t, label+"windows") {
				how = rapid.SampledFrom([]string{
					"window: day", "window: day, zone: entity", "window: month, starts: 15", "window: 5h, starts: first_use",
					"window: day, on_crash: release", "in_flight: true",
				}).Draw(t, label+"window of a limit")
			}
			lines = append(lines, fmt.Sprintf("      %s: {capacity: %d, %s%s}\n", l, number("capacity"), how,
				rapid.SampledFrom([]string{"", ", per_call: 1", ", per_call: 2"}).Draw(t, label+"per_call")))
		}
		d.limits = append(d.limits, lines)
		var removed []string
		for _, l := range []string{"rps", "rpm", "tpm"} {
			if !slices.Contains(limits, l) && rapid.Bool().Draw(t, label+"removed") {
				removed = append(removed, l)
			}
		}
		var charged []string
		planned := ""
		for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, len(names), rapid.ID[string]).Draw(t,
			label+"charged") {
			restated := ""
			if rapid.Bool().Draw(t, label+"restate") {
				restated = fmt.Sprintf("%s: {capacity: %d, per_call: 3}", limits[0], number("restated"))
			}
			charged = append(charged, k+": {"+restated+"}")
			if onPlans[slices.Index(names, k)] && r != global && planned == "" {
				capacity := rapid.SampledFrom([]string{"9", "20", "unlimited"}).Draw(t, label+"on plan")
				planned = fmt.Sprintf("    plans: {%s: {%s: {%s: {capacity: %s}}}}\n",
					rapid.SampledFrom(plans).Draw(t, label+"plan"), k, limits[0], capacity)
			}
		}
		if rapid.Bool().Draw(t, label+"without plans") {
			planned = ""
		}
		d.rest = append(d.rest, fmt.Sprintf("    removed: [%s]\n    entities: {%s}\n    cascade: %s\n    "+
			"on_unavailable: %s\n    settle: %s\n    global: %v\n    shadow: %v\n",
			strings.Join(removed, ", "), strings.Join(charged, ", "),
			rapid.SampledFrom([]string{"atomic", "compensated", "none"}).Draw(t, label+"cascade"),
			rapid.SampledFrom([]string{"allow", "deny", "local"}).Draw(t, label+"on_unavailable"),
			rapid.SampledFrom([]string{"now", "lazy"}).Draw(t, label+"settle"), r == global,
			rapid.Bool().Draw(t, label+"shadow"))+planned)
	}
	return d
}

// text writes d in an order that rnd shuffles, with docs that it makes up.
func (d drawn) text(rnd *rand.Rand) string {
	var b strings.Builder
	b.WriteString(d.head + "entities:\n")
	for _, i := range rnd.Perm(len(d.kinds)) {
		b.WriteString(d.kinds[i])
	}
	b.WriteString("resources:\n")
	for _, i := range rnd.Perm(len(d.resources)) {
		b.WriteString(d.resources[i])
		for _, j := range rnd.Perm(len(d.limits[i])) {
			b.WriteString(strings.Replace(d.limits[i][j], "{", fmt.Sprintf("{doc: number %d, ", rnd.IntN(100)), 1))
		}
		b.WriteString(d.rest[i])
	}
	return b.String()
}

// TestBreakingProperty: a schema breaks nothing of itself, in whatever order it is written. Findings between
// two schemas are sorted, each is there once, and each has a rule, a line of the new file and a valid place.
// An exception at that place accepts that finding and no other.
func TestBreakingProperty(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))
		a, b := draw(t, "a "), draw(t, "b ")
		if changes := breaks(t, dir, a.text(rnd), a.text(rnd)); len(changes) > 0 {
			t.Fatalf("a schema breaks something of itself:\n%s", lines(changes))
		}
		old, after := a.text(rnd), b.text(rnd)
		changes := breaks(t, dir, old, after)
		for i, c := range changes {
			rule := slices.IndexFunc(BreakingRules(), func(r BreakingRule) bool { return r.ID == c.Rule })
			switch {
			case rule < 0 || BreakingRules()[rule].Severity != c.Severity:
				t.Fatalf("no rule: %v", c)
			case c.Line < 1 || c.Line > strings.Count(after, "\n") || c.Col < 1 ||
				strings.ContainsAny(c.Message, "\n\r") || c.Ignored != "":
				t.Fatalf("bad place or message: %v", c)
			case (c.Place == "") != (BreakingRules()[rule].At == ""):
				t.Fatalf("place %q: %v", c.Place, c)
			case i > 0 && changes[i-1].Pos.Compare(c.Pos) > 0 || slices.Contains(changes[:i], c):
				t.Fatalf("not sorted, or twice:\n%s", lines(changes))
			}
		}
		if len(changes) == 0 {
			return
		}
		ignored := rapid.SampledFrom(changes).Draw(t, "ignored")
		text := fmt.Sprintf("breaking: {except: [{rule: %s, reason: so}]}\n", ignored.Rule)
		if ignored.Place != "" {
			text = fmt.Sprintf("breaking: {ignore_only: [{rule: %s, at: %s, reason: so}]}\n", ignored.Rule,
				ignored.Place)
		}
		for i, c := range breaks(t, dir, old, after+text) {
			want := changes[i]
			if c.Rule == ignored.Rule && c.Place == ignored.Place {
				want.Ignored = "so"
			}
			if c != want {
				t.Fatalf("ignoring %v: got %+v, want %+v", ignored, c, want)
			}
		}
	})
}
