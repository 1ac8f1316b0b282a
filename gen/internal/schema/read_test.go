package schema

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func pos(line, col int) Pos { return Pos{File: "limits.yaml", Line: line, Col: col} }

// TestReadDemo reads the demonstration's limits.yaml to the last field.
func TestReadDemo(t *testing.T) {
	got, problems := Read("limits.yaml", cases(t)["demo"])
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	rpm := Numbers{Capacity: 100, Burst: 100, Refill: 100, Period: time.Minute}
	tpm := Numbers{Capacity: 10_000, Burst: 15_000, Refill: 10_000, Period: time.Minute}
	rps := Numbers{Capacity: 20, Burst: 20, Refill: 20, Period: time.Second}
	want := &Schema{
		Version: 1, Owner: "acme", Revision: 1, RevisionPos: pos(4, 11),
		Package: "generated", Out: "./generated", Stores: []string{"dynamodb"},
		OutPos: pos(5, 1), GoPos: pos(5, 1), KindsPos: pos(8, 1), ResourcesPos: pos(13, 1), StoresPos: pos(6, 1),
		Kinds: []*Kind{
			{Name: "org", GoName: "Org", Parent: -1, Pos: pos(9, 3), ParentPos: pos(9, 3)},
			{Name: "project", GoName: "Project", Parent: 0, Pos: pos(10, 3), ParentPos: pos(10, 13)},
			{Name: "user", GoName: "User", Parent: 1, Pos: pos(11, 3), ParentPos: pos(11, 10)},
		},
		Resources: []*Resource{
			{
				Name: "gpt-4", GoName: "GPT4", Doc: "Chat completions on gpt-4.", Pos: pos(14, 3),
				Limits: []*Limit{
					{Name: "rpm", GoName: "RPM", Doc: "requests per minute", Numbers: rpm, PerCall: 1, Pos: pos(17, 7)},
					{Name: "tpm", GoName: "TPM", Doc: "tokens per minute", Numbers: tpm, Pos: pos(18, 7)},
				},
				Charged: []Charged{
					{Kind: 2, Limits: []Numbers{rpm, tpm}, PerCall: []int64{1, 0}, Pos: pos(20, 7)},
					{
						Kind: 1,
						Limits: []Numbers{
							{Capacity: 1000, Burst: 1000, Refill: 1000, Period: time.Minute},
							{Capacity: 100_000, Burst: 150_000, Refill: 100_000, Period: time.Minute},
						},
						PerCall: []int64{1, 0}, Pos: pos(21, 7),
					},
				},
				Cascade: "atomic", OnUnavailable: "local", Settle: "now",
				GlobalPos: pos(14, 3), CascadePos: pos(14, 3), OnUnavailablePos: pos(24, 5), SettlePos: pos(14,
					3), PrefetchPos: pos(14, 3), ShadowPos: pos(14, 3), PlansPos: pos(14, 3), NamesPos: pos(14, 3),
			},
			{
				Name: "embeddings", GoName: "Embeddings", Doc: "Embedding batches, charged to projects " +
					"only.", Pos: pos(25, 3),
				Limits: []*Limit{{Name: "rps", GoName: "RPS", Doc: "batches per second", Numbers: rps, PerCall: 1,
					Pos: pos(28, 7)}},
				Charged: []Charged{{Kind: 1, Limits: []Numbers{rps}, PerCall: []int64{1}, Pos: pos(29, 16)}},
				Cascade: "none", OnUnavailable: "allow", Settle: "now",
				GlobalPos: pos(25, 3), CascadePos: pos(30, 5), OnUnavailablePos: pos(25, 3), SettlePos: pos(25,
					3), PrefetchPos: pos(25, 3), ShadowPos: pos(25, 3), PlansPos: pos(25, 3), NamesPos: pos(25, 3),
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Schema differs (-want +got):\n%s", diff)
	}
}

// readOne reads a file with one resource, whose lines below its name are given, and the kinds user and team.
func readOne(t *testing.T, lines ...string) *Resource {
	t.Helper()
	src := "version: 1\nowner: acme\nrevision: 1\ngo: {package: limits}\n" +
		"entities: {user: {}, team: {}}\nresources:\n  api:\n    " +
		strings.Join(lines, "\n    ")
	s, problems := Read("limits.yaml", []byte(src))
	if len(problems) > 0 {
		t.Fatalf("%v\nin\n%s", problems, src)
	}
	return s.Resources[0]
}

// TestBaseNumbers reads limits in the forms that they can have.
func TestBaseNumbers(t *testing.T) {
	for _, c := range []struct {
		text    string
		want    Numbers
		perCall int64
	}{
		{"capacity: 10, every: 1s", evenly(10, 10, 10, time.Second), 0},
		{"capacity: 10, every: 1s, refill: 5", evenly(10, 10, 5, time.Second), 0},
		{"capacity: 10, every: 1s, burst: 15", evenly(10, 15, 10, time.Second), 0},
		{"capacity: 10, every: 1s, burst: 15, refill: 20, per_call: 15", evenly(10, 15, 20, time.Second), 15},
		{"capacity: 1_0, every: 1s", evenly(10, 10, 10, time.Second), 0},
		{"capacity: '1_0', every: '1s'", evenly(10, 10, 10, time.Second), 0},
		{`capacity: "10", every: "1s"`, evenly(10, 10, 10, time.Second), 0},
		{"capacity: 1, every: 1ms", evenly(1, 1, 1, time.Millisecond), 0},
		{"capacity: 1, every: 1000000ns", evenly(1, 1, 1, time.Millisecond), 0},
		{"capacity: 1, every: 1.5h", evenly(1, 1, 1, 90*time.Minute), 0},
		{"capacity: 1, every: 1d", evenly(1, 1, 1, 24*time.Hour), 0},
		{"capacity: 1, every: 1d12h30m", evenly(1, 1, 1, 36*time.Hour+30*time.Minute), 0},
		{"capacity: 1, every: 366d", evenly(1, 1, 1, 366*24*time.Hour), 0},
		{"capacity: 1, every: 8784h", evenly(1, 1, 1, 366*24*time.Hour), 0},
		// the bounds themselves
		{"capacity: 10_000_000, every: 1s", evenly(1e7, 1e7, 1e7, time.Second), 0},
		{"capacity: 10_000, every: 1ms", evenly(1e4, 1e4, 1e4, time.Millisecond), 0},
		{"capacity: 1_000_000_000_000, every: 100000s", evenly(1e12, 1e12, 1e12, 100_000*time.Second), 0},
		{"capacity: 3_650, refill: 1, every: 1d", evenly(3650, 3650, 1, 24*time.Hour), 0},
	} {
		r := readOne(t, "limits: {rps: {"+c.text+"}}", "entities: {user: {}}")
		if l := r.Limits[0]; l.Numbers != c.want || l.PerCall != c.perCall {
			t.Errorf("%s: got %+v per call %d, want %+v and %d", c.text, l.Numbers, l.PerCall, c.want, c.perCall)
		}
		if c1 := r.Charged[0]; c1.Limits[0] != c.want || c1.PerCall[0] != c.perCall {
			t.Errorf("%s: a kind that restates nothing has %+v per call %d", c.text, c1.Limits[0], c1.PerCall[0])
		}
	}
}

// TestRestatedNumbers holds to the rule: refill and burst follow the restated capacity, per_call and every
// are inherited.
func TestRestatedNumbers(t *testing.T) {
	base := Numbers{Capacity: 10, Burst: 15, Refill: 5, Period: time.Minute} // per call 2
	for _, c := range []struct {
		text    string
		want    Numbers
		perCall int64
	}{
		{"capacity: 100", evenly(100, 100, 100, time.Minute), 2},
		{"capacity: 100, burst: 150", evenly(100, 150, 100, time.Minute), 2},
		{"capacity: 100, refill: 50", evenly(100, 100, 50, time.Minute), 2},
		{"capacity: 10", evenly(10, 10, 10, time.Minute), 2},
		{"capacity: 10, per_call: 3", evenly(10, 10, 10, time.Minute), 3},
		{"capacity: 100, refill: 2, burst: 300, per_call: 300", evenly(100, 300, 2, time.Minute), 300},
	} {
		r := readOne(t,
			"limits:",
			"  other: {capacity: 1, every: 1s}",
			"  rpm: {capacity: 10, burst: 15, refill: 5, every: 1m, per_call: 2}",
			"entities: {team: {rpm: {"+c.text+"}}, user: {}}")
		team, user := r.Charged[0], r.Charged[1]
		if team.Kind != 1 || team.Limits[1] != c.want || team.PerCall[1] != c.perCall {
			t.Errorf("%s: got kind %d, %+v per call %d, want kind 1, %+v and %d", c.text, team.Kind, team.Limits[1],
				team.PerCall[1], c.want, c.perCall)
		}
		if user.Kind != 0 || user.Limits[1] != base || user.PerCall[1] != 2 {
			t.Errorf("%s: another kind is changed too: %+v", c.text, user)
		}
	}
}

// TestChoices reads the keys that take one of a few words.
func TestChoices(t *testing.T) {
	for _, cascade := range []string{"atomic", "compensated", "none"} {
		for _, policy := range []string{"allow", "deny", "local"} {
			for _, settle := range []string{"now", "lazy"} {
				r := readOne(t, "limits: {rps: {capacity: 1, every: 1s}}", "entities: {user: {}}",
					"cascade: "+cascade, "on_unavailable: "+policy, "settle: "+settle)
				if r.Cascade != cascade || r.OnUnavailable != policy || r.Settle != settle {
					t.Errorf("%s, %s and %s were read as %s, %s and %s", cascade, policy, settle, r.Cascade, r.OnUnavailable,
						r.Settle)
				}
			}
		}
	}
}

// TestDoc reads texts as they go into comments.
func TestDoc(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"one line", "one line"},
		{"'  padded '", "padded"},
		{`"two \n\n lines\t \n"`, "two\n\n lines"},
		{`"DOS\r\nlines"`, "DOS\nlines"},
		{`"tab\tkept"`, "tab\tkept"},
		{"2026-01-02", "2026-01-02"},
		{`""`, ""},
		{`"*/ // ` + "`" + ` ünï"`, "*/ // ` ünï"},
	} {
		r := readOne(t, "doc: "+c.text, "limits: {rps: {capacity: 1, every: 1s}}", "entities: {user: {}}")
		if r.Doc != c.want {
			t.Errorf("doc: %s is %q, want %q", c.text, r.Doc, c.want)
		}
	}
}

// TestReadRest reads what the demonstration does not have: a single kind, removed limits, go_name, out, any
// order of keys.
func TestReadRest(t *testing.T) {
	s, problems := Read("limits.yaml", []byte(`
resources:
  4o:
    removed: [rpd, old_limit]
    go_name: Omni
    limits: {in_tokens: {every: 1s, capacity: 5, go_name: Input}}
entities: {service_account: {doc: A robot., go_name: Robot}}
go: {out: ../gen/limits, package: limits}
revision: "90_000"
version: "1"
owner: acme
`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	n := evenly(5, 5, 5, time.Second)
	want := &Schema{
		Version: 1, Owner: "acme", Revision: 90_000, RevisionPos: pos(9,
			11), Package: "limits", Out: "../gen/limits", Stores: []string{"dynamodb"},
		OutPos: pos(8, 11), GoPos: pos(8, 1), KindsPos: pos(7, 1), ResourcesPos: pos(2, 1), StoresPos: pos(8, 1),
		Kinds: []*Kind{{Name: "service_account", GoName: "Robot", Doc: "A robot.", Parent: -1, Pos: pos(7, 12),
			ParentPos: pos(7, 12)}},
		Resources: []*Resource{{
			Name: "4o", GoName: "Omni", Removed: []string{"rpd", "old_limit"}, Pos: pos(3, 3),
			Limits:  []*Limit{{Name: "in_tokens", GoName: "Input", Numbers: n, Pos: pos(6, 14)}},
			Charged: []Charged{{Kind: 0, Limits: []Numbers{n}, PerCall: []int64{0}, Pos: pos(3, 3)}},
			Cascade: "atomic", OnUnavailable: "allow", Settle: "now",
			GlobalPos: pos(3, 3), CascadePos: pos(3, 3), OnUnavailablePos: pos(3, 3), SettlePos: pos(3,
				3), PrefetchPos: pos(3, 3), ShadowPos: pos(3, 3), PlansPos: pos(3, 3), NamesPos: pos(3, 3),
		}},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("Schema differs (-want +got):\n%s", diff)
	}
}

// TestReadRegions reads regions, in any order, and what they are where they leave something out.
func TestReadRegions(t *testing.T) {
	got, problems := Read("limits.yaml", cases(t)["regions_good"])
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := &Regions{
		Names: []string{"ap-south-1", "eu-central-1", "us-east-1"}, Floor: 10, Window: time.Minute,
		Drift: 15, Horizon: 2,
		Pos: pos(6, 1), NamesPos: pos(7, 3), FloorPos: pos(8, 3), WindowPos: pos(9, 3),
	}
	if diff := cmp.Diff(want, got.Regions); diff != "" {
		t.Errorf("Regions differ (-want +got):\n%s", diff)
	}
	for i, r := range []Resource{{Global: true, GlobalPos: pos(14, 5)}, {GlobalPos: pos(17, 5)},
		{GlobalPos: pos(18, 3)}} {
		if is := got.Resources[i]; is.Global != r.Global || is.GlobalPos != r.GlobalPos {
			t.Errorf("%s: global %v, at %v; want %v, at %v", is.Name, is.Global, is.GlobalPos, r.Global, r.GlobalPos)
		}
	}
	src := strings.NewReplacer("  floor: 10\n", "", "  window: 1m\n",
		"").Replace(string(cases(t)["regions_good"]))
	got, problems = Read("limits.yaml", []byte(src))
	if len(problems) > 0 || got.Regions.Floor != 5 || got.Regions.Window != 10*time.Second ||
		got.Regions.FloorPos != pos(6, 1) || got.Regions.WindowPos != pos(6, 1) {
		t.Errorf("by default: %+v, %v", got.Regions, problems)
	}
	src = strings.ReplaceAll(string(cases(t)["regions_good"]), "  window: 1m\n", "  drift: 20\n  horizon: 3\n")
	if got, problems = Read("limits.yaml", []byte(src)); len(problems) > 0 || got.Regions.Drift != 20 ||
		got.Regions.Horizon != 3 {
		t.Errorf("with drift and horizon: %+v, %v", got.Regions, problems)
	}
}

// evenly returns the numbers of a limit that refills.
func evenly(capacity, burst, refill int64, period time.Duration) Numbers {
	return Numbers{Capacity: capacity, Burst: burst, Refill: refill, Period: period}
}
