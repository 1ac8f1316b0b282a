package lua

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// scene is what a script meets: buckets in any state, and calls at several instants, the clock going back
// too.
type scene struct {
	limits  []string
	chain   int
	buckets []bucket
	at      []int64
	calls   [][]call // at each instant
}

// names are what limits may be called, and what scripts or Lua call something too.
func names() []string {
	return []string{
		"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil",
		"not", "or", "repeat",
		"return", "then", "true", "until", "while", "goto",
		"redis", "math", "ipairs", "call", "floor", "ceil", "clock", "now", "bucket", "reply", "refused", "i", "at",
		"ms", "seconds", "wait",
		"cost", "rpm", "rpm_burst", "rpm_burst1", "rpm1", "rpm_", "a",
	}
}

// scenes draws scenes. Many balances and instants are such that a comparison is close.
func scenes() *rapid.Generator[scene] {
	const start, longest = 1_700_000_000_000, 3650 * 86_400_000 // ms that a schema's limit may take to be full
	burst := rapid.SampledFrom([]float64{1, 10, 100, 15_000, 1e7, 1e12})
	refill := rapid.SampledFrom([]float64{1.0 / 3e10, 1000 / 864e5, 100 / 6e4, 1, 1e4, 1.0 / 3, 7 / 1500.0})
	return rapid.Custom(func(t *rapid.T) scene {
		s := scene{chain: rapid.IntRange(1, 4).Draw(t, "chain")}
		s.limits = rapid.SliceOfNDistinct(rapid.SampledFrom(names()), 1, 3, rapid.ID[string]).Draw(t, "limits")
		n := s.chain * len(s.limits)
		for i := range n {
			b := bucket{key: fmt.Sprint(i), burst: burst.Draw(t, "burst"), refill: refill.Draw(t, "refill")}
			b.refill = max(b.refill, b.burst/longest)
			b.missing = rapid.IntRange(0, 3).Draw(t, "missing") == 0
			b.half = b.missing && rapid.Bool().Draw(t, "half")
			b.since = start + rapid.SampledFrom([]int64{0, 0, -1, -1000, -59_999, -600_000, -86_400_000, 5,
				5000}).Draw(t, "since")
			b.tokens = b.burst*rapid.SampledFrom([]float64{0, 0.5, 1, -1, 1.5, 1.0 / 3}).Draw(t, "share") +
				rapid.SampledFrom([]float64{0, 0.1, -5e-10, -2e-9, -1, -3.7, -1e12}).Draw(t, "off")
			b.filledBy = rapid.SampledFrom([]int64{0, 0, 1, start}).Draw(t, "filled by")
			b.filledTo = burst.Draw(t, "filled to")
			b.filledAt = start - rapid.SampledFrom([]int64{0, 1000, age, age + 1, 2 * age}).Draw(t, "filled since")
			b.version = rapid.SampledFrom([]int64{0, 1, start}).Draw(t, "version")
			s.buckets = append(s.buckets, b)
		}
		now := int64(start)
		for range rapid.IntRange(1, 3).Draw(t, "instants") {
			now += rapid.SampledFrom([]int64{0, 1, 600, 86_400, -3, -700}).Draw(t, "later")
			s.at = append(s.at, now)
			var calls []call
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				c := call{fit: rapid.IntRange(0, 3).Draw(t, "fit") > 0}
				for i := range n {
					c.costs = append(c.costs, rapid.SampledFrom([]float64{0, 1, 1, 0.001, 3, -2, s.buckets[i].burst,
						s.buckets[i].burst / 2}).Draw(t, "cost"))
				}
				calls = append(calls, c)
			}
			s.calls = append(s.calls, calls)
		}
		return s
	})
}

// play runs a scene on a script and on that for any number of keys. It returns where they differ, "" if
// nowhere.
func (s *server) play(t testing.TB, sc scene, script string) string {
	t.Helper()
	s.store(t, "any:", sc.buckets)
	s.store(t, "own:", sc.buckets)
	for i, now := range sc.at {
		want, got := s.run(t, s.any, "any:", now, sc.buckets, sc.calls[i]...), s.run(t, script, "own:", now,
			sc.buckets, sc.calls[i]...)
		if !slices.Equal(want, got) {
			return fmt.Sprintf("reply %d is %d, want %d", i, got, want)
		}
		if want, got := s.left(t, "any:", sc.buckets), s.left(t, "own:", sc.buckets); want != got {
			return fmt.Sprintf("reply %d leaves\n%swant\n%s", i, got, want)
		}
	}
	return ""
}

// TestSame: a script replies and leaves what redisstore's any.lua does, to the byte, whatever limits are
// called. So do windows.lua and holds.lua, where no limit has windows or holds.
func TestSame(t *testing.T) {
	s := newServer(t)
	rapid.Check(t, func(rt *rapid.T) {
		sc := scenes().Draw(rt, "scene")
		if diff := s.play(t, sc, scriptOf(sc.chain, sc.limits...)); diff != "" {
			rt.Fatal(diff)
		}
		if diff := s.play(t, sc, s.dated); diff != "" {
			rt.Fatalf("windows.lua: %s", diff)
		}
		if diff := s.play(t, sc, s.held); diff != "" {
			rt.Fatalf("holds.lua: %s", diff)
		}
	})
}

// TestSpoilt is the control of TestSame: it finds a script without one of its parts.
func TestSpoilt(t *testing.T) {
	s := newServer(t)
	const name = `[a-z0-9_]+`
	for _, tc := range []struct{ what, part, instead string }{
		{"tolerance", ` \+ 1e-9 >= `, " >= "},
		{"clock that goes back", `now > (` + name + `) and now - ` + name + ` or 0`, "now - $1"},
		{"instant that does not", `if now > (` + name + `) then ` + name + ` = now end`, "$1 = now"},
		{"burst", `min\(([^,]+),\s+` + name + `_burst\d*\)`, "($1)"},
		{"cost of nothing", `or ` + name + `_cost\d* <= 0`, ""},
		{"call that need not fit", `ARGV\[i\] ~= '1'`, "false"},
		{"write that changes nothing", `if ` + name + ` ~= ` + name + `_before\d* then`, "if true then"},
		{"life in debt", `\(` + name + ` < 0 and ` + name + ` or 0\)`, "0"},
		{"shortest life", `seconds < 1 and 2 or seconds > 1e11`, "seconds > 1e11"},
		{"longest life", `seconds > 1e11 and 2e11 or `, ""},
		{"longest wait", `if ms > 1e14 then ms = 1e14 end`, ""},
		{"life", `call\('EXPIRE'.*\)`, ""},
		{"bucket that is missing", ` = (` + name + `), now\n`, " = $1, (bucket[2] or now) + 0\n"},
		{"millitokens in debt", `= floor\((.*) \* 1000\)`, "= $1 * 1000"},
		{"burst of newer overrides", `then ` + name + ` = bucket\[4\] \+ 0 end`, "then end"},
		{"older overrides alone", `and bucket\[3\] \+ 0 > ARGV\[\d+\] \+ 0`, ""},
		{"age of overrides", `and now - bucket\[5\] <= ARGV\[1\] \+ 0`, ""},
		{"wait for what is stored", `ceil\(\(cost - 1e-9 - stored\)`, "ceil((cost - 1e-9 - math.min(stored, 0))"},
		{"wait since then", ` \+ since - now`, ""},
		{"one key's number", `KEYS\[1\]`, "KEYS[#KEYS]"},
	} {
		part, caught := regexp.MustCompile(tc.part), false
		for seed := 0; seed < 400 && !caught; seed++ {
			sc := scenes().Example(seed)
			whole := scriptOf(sc.chain, sc.limits...)
			spoilt := part.ReplaceAllString(whole, tc.instead)
			if spoilt == whole {
				t.Fatalf("%s: nothing to spoil in\n%s", tc.what, whole)
			}
			caught = s.play(t, sc, spoilt) != ""
		}
		if !caught {
			t.Errorf("%s: a script without is not told from any.lua", tc.what)
		}
	}
}

// TestSpoiltWindows is the control of TestSame: it finds a windows.lua, or a holds.lua, that charges limits
// that refill in another way.
func TestSpoiltWindows(t *testing.T) {
	s := newServer(t)
	for name, script := range map[string]string{"windows.lua": s.dated, "holds.lua": s.held} {
		spoil(t, s, name, script)
	}
}

// spoil plays scenes on spoilt forms of a script.
func spoil(t *testing.T, s *server, name, script string) {
	t.Helper()
	for what, part := range map[string][2]string{
		"tolerance":                {" + 1e-9 < cost", " < cost"},
		"burst":                    {"math.min(burst[k], tokens[k] - cost[k])", "tokens[k] - cost[k]"},
		"clock that goes back":     {"math.max(0, now - since[k])", "(now - since[k])"},
		"burst of newer overrides": {"burst[k] = bucket[4] + 0", ""},
		"call that need not fit":   {"fit == '1' and ", ""},
	} {
		spoilt, caught := strings.Replace(script, part[0], part[1], 1), false
		if spoilt == script {
			t.Fatalf("%s: nothing to spoil in\n%s", what, script)
		}
		for seed := 0; seed < 400 && !caught; seed++ {
			control := *s
			control.dated = spoilt // run passes it the number of keys
			caught = control.play(t, scenes().Example(seed), spoilt) != ""
		}
		if !caught {
			t.Errorf("%s: a %s without is not told from any.lua", what, name)
		}
	}
}

// TestHalf: a hash without lastRefill is no bucket, and refused before anything is written, or who waits
// would wait for good.
func TestHalf(t *testing.T) {
	s := newServer(t)
	for what, script := range map[string]string{"any.lua": s.any, "script": scriptOf(2, "rpm")} {
		args := []any{age, "10", "1", "0", "10", "1", "0", "1", "1", "1"}
		if script == s.any {
			args = append([]any{"2"}, args...)
		}
		whole, half := s.prefix+what+"whole", s.prefix+what+"half"
		if err := s.client.HSet(t.Context(), half, "tokens", 5).Err(); err != nil {
			t.Fatal(err)
		}
		err := s.client.Eval(t.Context(), script, []string{whole, half}, args...).Err()
		if err == nil || !strings.Contains(err.Error(), "boolean") {
			t.Errorf("%s: %v, want that lastRefill is no number", what, err)
		}
		if n := s.client.Exists(t.Context(), whole).Val(); n != 0 {
			t.Errorf("%s: the other bucket is charged", what)
		}
	}
}

// TestMostKeys: as many keys as are written out still are few enough for Lua, and one more is not written.
func TestMostKeys(t *testing.T) {
	s := newServer(t)
	limits := strings.Fields("a b c d e f g h i j k l")
	if script := scriptOf(1, slices.Repeat(limits, 3)[:MaxKeys+1]...); script != "" {
		t.Errorf("%d keys are written out", MaxKeys+1)
	}
	for chain := 1; chain <= 4; chain++ {
		own := make([]string, MaxKeys/chain)
		for i := range own {
			own[i] = fmt.Sprintf("limit_%d", i)
		}
		script, buckets, costs := scriptOf(chain, own...), []bucket(nil), []float64(nil)
		for i := range MaxKeys {
			buckets, costs = append(buckets, bucket{key: fmt.Sprint(i), missing: true, burst: 10,
				refill: 1}), append(costs, float64(i))
		}
		sc := scene{buckets: buckets, at: []int64{1e12}, calls: [][]call{{{fit: true, costs: costs},
			{costs: costs}}}}
		if diff := s.play(t, sc, script); diff != "" {
			t.Errorf("chain of %d: %s", chain, diff)
		}
	}
}
