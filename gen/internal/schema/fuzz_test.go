package schema

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/gen/internal/window"
)

// FuzzRead: for any text, Read returns sorted problems of known rules on one line each, or a Schema that is
// complete, consistent, in bounds, and valid by the JSON Schema.
func FuzzRead(f *testing.F) {
	for _, src := range cases(f) {
		f.Add(src)
	}
	js := compileSchema(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		checkRead(t, js, src)
	})
}

// mutable names the valid texts that TestReadMutated changes.
var mutable = []string{"demo", "regions_good", "windows_good", "in_flight_good", "money_good", "plans_good",
	"credits_good"}

var word = regexp.MustCompile(`[A-Za-z0-9_-]+`)

// TestReadMutated is FuzzRead on texts that are nearly a limits.yaml: it changes a few values and lines of a
// valid one. Such a text nearly always gets past YAML, and sometimes past every rule. TestReadOneWord makes
// sure of the latter, since the few draws of a short run may all break a rule.
func TestReadMutated(t *testing.T) {
	js := compileSchema(t)
	texts := cases(t)
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Split(string(texts[rapid.SampledFrom(mutable).Draw(rt, "text")]), "\n")
		changes := rapid.IntRange(0, 4).Draw(rt, "changes")
		for range changes {
			at := rapid.IntRange(0, len(text)-1).Draw(rt, "line")
			switch rapid.IntRange(0, 8).Draw(rt, "change") {
			case 0:
				text = slices.Delete(text, at, at+1)
			case 1:
				text = slices.Insert(text, at, text[at])
			case 2:
				other := rapid.IntRange(0, len(text)-1).Draw(rt, "other")
				text[at], text[other] = text[other], text[at]
			default:
				words := word.FindAllStringIndex(text[at], -1)
				if len(words) == 0 {
					continue
				}
				w := rapid.SampledFrom(words).Draw(rt, "word")
				text[at] = text[at][:w[0]] + rapid.SampledFrom([]string{
					"0", "1", "10", "1_000", "0100", "1_000_000_000_000", "1_000_000_000_001", "99999999999999999999",
					"1ms", "1s", "366d", "1d12h", "true", "null", "~", "{}", "[]", "''", "&a", "*a", "<<", "!!str",
					"user", "org", "project", "rpm", "tpm", "rps", "cost", "error", "ttl", "id", "gpt-4", "gpt4",
					"gpt-4-rpm", "embeddings",
					"cascade", "on_unavailable", "stores", "dynamodb", "redis", "compensated", "deny", "local", "settle",
					"now", "lazy", "shadow",
					"limits", "entities", "global", "regions", "names", "floor", "window",
					"day", "week", "month", "year", "never", "5h", "starts", "first_use", "entity", "monday", "zone", "UTC",
					"in_flight", "on_crash", "release", "charge",
					"money", "counts", "usage", "price", "input", "USD", "EUR", "0.50", ".5", "1e3", "2.5/1M",
					"drift", "horizon", "50", "51", "eu-central-1", "unlimited", "plans", "kind", "free", "pro",
					"capacity", "burst", "refill", "per_call", "every", "doc", "go_name", "parent", "removed", "GPT4",
					"User",
				}).Draw(rt, "new") + text[at][w[1]:]
			}
		}
		if valid := checkRead(rt, js, []byte(strings.Join(text, "\n"))); changes == 0 && !valid {
			rt.Error("the text without changes has problems")
		}
	})
}

// TestReadOneWord is FuzzRead on every text that differs from a valid one in one word, which becomes a
// number. Unlike the drawn changes of TestReadMutated, these always include texts with problems and texts
// without.
func TestReadOneWord(t *testing.T) {
	js := compileSchema(t)
	texts := cases(t)
	for _, name := range mutable {
		text := texts[name]
		valid, invalid := 0, 0
		for _, w := range word.FindAllIndex(text, -1) {
			if checkRead(t, js, slices.Concat(text[:w[0]], []byte("10"), text[w[1]:])) {
				valid++
			} else {
				invalid++
			}
		}
		t.Logf("%s: %d texts without problems, %d with", name, valid, invalid)
		if valid == 0 || invalid == 0 {
			t.Errorf("%s: %d texts without problems, %d with: both need testing", name, valid, invalid)
		}
	}
}

// tester is what a fuzz target and a property test have in common.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// checkRead reads src and holds Read to its word. It says whether there were no problems.
func checkRead(t tester, js *jsonschema.Schema, src []byte) bool {
	t.Helper()
	s, problems := Read("limits.yaml", src)
	if len(problems) == 0 {
		checkSchema(t, s)
		if err := validate(t, js, src); err != nil {
			t.Errorf("Read takes what the JSON Schema does not: %v", err)
		}
		return true
	}
	sorted := slices.Clone(problems)
	sorted.Sort()
	if !slices.Equal(sorted, problems) {
		t.Errorf("problems are not sorted:\n%v", problems)
	}
	if compact := slices.Compact(sorted); len(compact) != len(problems) {
		t.Errorf("a problem is reported twice:\n%v", problems)
	}
	for _, p := range problems {
		if !slices.ContainsFunc(Rules(), func(r Rule) bool { return r.ID == p.Rule }) {
			t.Errorf("unknown rule: %v", p)
		}
		if p.File != "limits.yaml" || p.Line < 1 || p.Col < 1 || strings.ContainsAny(p.Message, "\n\r") {
			t.Errorf("bad place or message: %q", p.String())
		}
	}
	return false
}

// checkSchema fails unless s is complete and consistent.
func checkSchema(t tester, s *Schema) {
	t.Helper()
	if s.Version != 1 || s.Revision < 1 || s.Revision > 90_000 || s.RevisionPos.Line < 1 || s.Package == "" ||
		s.Out == "" ||
		!properSubset(s.Stores) || len(s.Kinds) == 0 || len(s.Resources) == 0 {
		t.Fatalf("incomplete: %+v", s)
	}
	checkRegions(t, s)
	checkPlans(t, s)
	for i, k := range s.Kinds {
		if k.Name == "" || k.GoName == "" || k.Parent < -1 || k.Parent >= len(s.Kinds) || k.Pos.Line < 1 {
			t.Errorf("bad kind: %+v", k)
		}
		steps := 0
		for p := i; p >= 0 && steps <= len(s.Kinds); p = s.Kinds[p].Parent {
			steps++
		}
		if steps > len(s.Kinds) {
			t.Errorf("kind %s is its own ancestor", k.Name)
		}
	}
	for _, r := range s.Resources {
		if r.Name == "" || r.GoName == "" || r.Pos.Line < 1 || len(r.Limits) == 0 || len(r.Charged) == 0 ||
			!slices.Contains(cascades(), r.Cascade) || !slices.Contains(policies(), r.OnUnavailable) ||
			!slices.Contains(settles(), r.Settle) {
			t.Errorf("bad resource: %+v", r)
		}
		for _, l := range r.Limits {
			if l.Name == "" || l.GoName == "" || l.Pos.Line < 1 || slices.Contains(r.Removed, l.Name) {
				t.Errorf("bad limit: %+v", l)
			}
			checkNumbers(t, l.Numbers, l.PerCall)
			checkWindow(t, l)
			if l.InFlight && (r.Global || l.PerCall == 0) || l.Release && l.Window == nil {
				t.Errorf("limit %s of %+v has bad holds: %+v", l.Name, r, l)
			}
		}
		checkUsage(t, s, r)
		for i, c := range r.Charged {
			if c.Kind < 0 || c.Kind >= len(s.Kinds) || len(c.Limits) != len(r.Limits) ||
				len(c.PerCall) != len(r.Limits) || c.Pos.Line < 1 ||
				slices.ContainsFunc(r.Charged[:i], func(d Charged) bool { return d.Kind == c.Kind }) {
				t.Fatalf("bad charged kind of %s: %+v", r.Name, c)
			}
			for j, n := range c.Limits {
				checkNumbers(t, n, c.PerCall[j])
				if l := r.Limits[j]; !n.Absent() && (n.Windowed() != (l.Window != nil) || n.InFlight() != l.InFlight ||
					n.Period != l.Period || n.Currency != l.Currency) {
					t.Errorf("limit %s has %+v for a kind, and itself %+v", l.Name, n, l)
				}
			}
		}
	}
	for _, e := range s.Exceptions {
		if e.Rule == "" || e.Reason == "" || e.RulePos.Line < 1 || e.AtPos.Line < 1 {
			t.Errorf("bad exception: %+v", e)
		}
	}
}

// checkPlans fails unless the schema's plans are complete, and those of its resources are within them.
func checkPlans(t tester, s *Schema) {
	t.Helper()
	if p := s.Plans; p != nil {
		if p.Kind < 0 || p.Kind >= len(s.Kinds) || len(p.Names) == 0 || len(p.Names) > maxPlans || p.Pos.Line < 1 ||
			p.KindPos.Line < 1 || p.NamesPos.Line < 1 {
			t.Fatalf("bad plans: %+v", p)
		}
		for i, plan := range p.Names {
			if plan.Name == "" || plan.GoName == "" || plan.Pos.Line < 1 || p.Index(plan.Name) != i {
				t.Errorf("bad plan: %+v", plan)
			}
		}
	}
	for _, r := range s.Resources {
		if r.PlansPos.Line < 1 || r.OnPlans && (s.Plans == nil || r.Global) {
			t.Fatalf("resource %s has plans that it cannot have", r.Name)
		}
		for _, c := range r.Charged {
			if !r.OnPlans && c.Plans == nil {
				continue
			}
			if !r.OnPlans || len(c.Plans) != len(s.Plans.Names) {
				t.Fatalf("resource %s has numbers of %d plans for %d", r.Name, len(c.Plans), c.Kind)
			}
			for _, numbers := range c.Plans {
				if numbers != nil && (len(numbers) != len(r.Limits) || !s.OnPlans(c.Kind)) {
					t.Fatalf("resource %s has numbers %+v for %d", r.Name, numbers, c.Kind)
				}
				for i, n := range numbers {
					checkNumbers(t, n, c.PerCall[i])
					if base := c.Limits[i]; !n.Absent() && (base.Absent() || n.Period != base.Period ||
						n.Currency != base.Currency || n.Windowed() != base.Windowed() || n.InFlight() != base.InFlight()) {
						t.Errorf("a plan has %+v for a kind that has %+v", n, base)
					}
				}
			}
		}
	}
}

// checkUsage fails unless r's usage and its limits of money fit each other.
func checkUsage(t tester, s *Schema, r *Resource) {
	t.Helper()
	for _, u := range r.Usage {
		if u.Name == "" || u.GoName == "" || u.Pos.Line < 1 || u.Price < 0 || u.Price > 1e18 ||
			u.Price > 0 && r.Money() == "" {
			t.Errorf("bad usage of %s: %+v", r.Name, u)
		}
	}
	for _, l := range r.Limits {
		if l.Currency != "" && (l.Currency != r.Money() || l.Counts != nil) ||
			l.Currency != "" && slices.Contains(s.Stores, StoreRedis) && l.Capacity > 9e15 {
			t.Errorf("bad money of %s: %+v", r.Name, l)
		}
		for _, name := range l.Counts {
			if !slices.ContainsFunc(r.Usage, func(u *Usage) bool { return u.Name == name }) {
				t.Errorf("limit %s of %s counts %s, which is no usage", l.Name, r.Name, name)
			}
		}
	}
}

// checkRegions fails unless there are regions where a resource is global, and only there, within their
// bounds.
func checkRegions(t tester, s *Schema) {
	t.Helper()
	if global := slices.ContainsFunc(s.Resources,
		func(r *Resource) bool { return r.Global }); global != (s.Regions != nil) {
		t.Fatalf("a resource is global: %v, regions: %+v", global, s.Regions)
	}
	r := s.Regions
	if r == nil {
		return
	}
	name := regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
	unique := slices.Compact(slices.Sorted(slices.Values(r.Names)))
	if len(unique) < 2 || len(unique) > 32 || !slices.Equal(unique, r.Names) || r.Floor < 0 || r.Floor > 50 ||
		slices.ContainsFunc(r.Names, func(n string) bool { return !name.MatchString(n) }) ||
		r.Window < time.Second || r.Window > time.Hour || r.Window%time.Second != 0 || r.Pos.Line < 1 ||
		r.FloorPos.Line < 1 || r.WindowPos.Line < 1 {
		t.Errorf("bad regions: %+v", r)
	}
}

// properSubset says that stores are one or more that there are, each once.
func properSubset(of []string) bool {
	sorted := slices.Sorted(slices.Values(of))
	return len(of) > 0 && len(slices.Compact(sorted)) == len(of) &&
		!slices.ContainsFunc(of, func(name string) bool { return !slices.Contains(stores(), name) })
}

// checkWindow fails unless l has windows that are complete, or refills.
func checkWindow(t tester, l *Limit) {
	t.Helper()
	w := l.Window
	if (w != nil) != l.Windowed() {
		t.Fatalf("limit %s has window %v and numbers %+v", l.Name, w, l.Numbers)
	}
	if l.InFlight != l.Numbers.InFlight() || l.InFlight && l.Refills {
		t.Errorf("limit %s is in flight: %v, and has numbers %+v", l.Name, l.InFlight, l.Numbers)
	}
	if w == nil {
		return
	}
	own, none := w.OwnStarts || w.OwnZone, w.Unit == window.FirstUse || w.Unit == window.Never
	if w.Length != l.Period || l.Refills || w.At < 0 || w.At >= 24*time.Hour ||
		(w.Unit == window.Month) != (w.Date >= 1 && w.Date <= 31) ||
		none != (w.Zone == "") || none && own ||
		w.Zone != "" && !window.KnownZone(w.Zone) {
		t.Errorf("limit %s has bad windows: %+v", l.Name, *w)
	}
}

func checkNumbers(t tester, n Numbers, perCall int64) {
	t.Helper()
	const tokens = 1e12
	if n.Absent() {
		return
	}
	if n.Period == window.Of("never").Length { // it may begin with nothing, and a call may cost more than that
		if n.Capacity == 0 && n.Burst == 0 {
			n.Capacity, n.Burst = 1000, 1000
		}
		n.Period, perCall = time.Hour, min(perCall, n.Capacity)
	}
	if n.Currency != "" {
		if !n.Windowed() || len(n.Currency) != 3 || n.Capacity < 1000 || n.Burst != n.Capacity ||
			n.Capacity > 1e17 || n.Capacity%1000 != 0 || perCall < 0 || perCall > n.Capacity || perCall%1000 != 0 {
			t.Errorf("money out of bounds: %+v, per call %d", n, perCall)
		}
		return
	}
	if n.Windowed() {
		if n.Capacity < 1 || n.Burst != n.Capacity || n.Capacity > tokens || perCall < 0 || perCall > n.Capacity ||
			n.Period < time.Minute || n.Period > 366*24*time.Hour || n.Period%time.Millisecond != 0 {
			t.Errorf("numbers of windows out of bounds: %+v, per call %d", n, perCall)
		}
		return
	}
	if n.InFlight() {
		if n.Capacity < 1 || n.Burst != n.Capacity || n.Capacity > tokens || perCall < 0 || perCall > n.Capacity {
			t.Errorf("numbers in flight out of bounds: %+v, per call %d", n, perCall)
		}
		return
	}
	if n.Capacity < 1 || n.Burst < n.Capacity || n.Burst > tokens || n.Refill < 1 || n.Refill > tokens ||
		perCall < 0 || perCall > n.Burst ||
		n.Period < time.Millisecond || n.Period > 366*24*time.Hour || n.Period%time.Millisecond != 0 ||
		float64(n.Refill)/n.Period.Seconds() > 1.000001e7 ||
		float64(n.Burst)/float64(n.Refill)*n.Period.Hours() > 3650*24*1.000001 {
		t.Errorf("numbers out of bounds: %+v, per call %d", n, perCall)
	}
}
