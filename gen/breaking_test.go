package gen

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// breakingFolder has a folder per rule: old.yaml, new.yaml, and what the change gives.
const breakingFolder = "testdata/breaking"

// TestBreaking holds what each testdata/breaking/<rule> gives against its stdout.txt: the rule itself, and it
// may be others.
func TestBreaking(t *testing.T) {
	for _, rule := range BreakingRules() {
		t.Run(rule.ID, func(t *testing.T) {
			dir := filepath.Join(breakingFolder, strings.ToLower(rule.ID))
			text := func(name string) []byte {
				data, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil && !(*update && errors.Is(err, os.ErrNotExist)) {
					t.Fatal(err)
				}
				return data
			}
			changes := breaks(t, t.TempDir(), string(text("old.yaml")), string(text("new.yaml")))
			if !slices.ContainsFunc(changes, func(c BreakingChange) bool { return c.Rule == rule.ID }) {
				t.Errorf("%s does not fire", rule.ID)
			}
			got := lines(changes)
			if *update {
				if err := os.WriteFile(filepath.Join(dir, "stdout.txt"), []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(text("stdout.txt")), got); diff != "" {
				t.Errorf("changes differ (-want +got), run go test ./gen -update if that is right:\n%s", diff)
			}
		})
	}
	entries, err := os.ReadDir(breakingFolder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.ContainsFunc(BreakingRules(),
			func(r BreakingRule) bool { return strings.ToLower(r.ID) == e.Name() }) {
			t.Errorf("%s/%s is no rule's", breakingFolder, e.Name())
		}
	}
}

// breaks returns what the change from one text to another breaks. It writes to dir.
func breaks(t interface {
	Fatalf(format string, args ...any)
	Helper()
}, dir, old, after string,
) []BreakingChange {
	t.Helper()
	path := filepath.Join(dir, "new.yaml")
	if err := os.WriteFile(path, []byte(after), 0o600); err != nil {
		t.Fatalf("%v", err)
	}
	changes, err := Breaking(path, OldSchema{Name: "old.yaml", Text: []byte(old)})
	if err != nil {
		t.Fatalf("%v\nfrom\n%s\nto\n%s", err, old, after)
	}
	for i := range changes {
		changes[i].File = "new.yaml"
	}
	return changes
}

// lines returns changes as text has them.
func lines(changes []BreakingChange) string {
	var b strings.Builder
	for _, c := range changes {
		b.WriteString(c.String() + "\n")
	}
	return b.String()
}

// fires holds the rules that edits of a schema break against want. edits are old, new, old, new.
func fires(t *testing.T, old string, edits []string, want string) {
	t.Helper()
	after := old
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(after, edits[i]) {
			t.Fatalf("there is no %q to change", edits[i])
		}
		after = strings.Replace(after, edits[i], edits[i+1], 1)
	}
	changes := breaks(t, t.TempDir(), old, after)
	var fired []string
	for _, c := range changes {
		fired = append(fired, c.Rule)
	}
	if got := strings.Join(fired, " "); got != want {
		t.Errorf("got %q, want %q:\n%s", got, want, lines(changes))
	}
}

// TestBreakingSafe changes a schema in ways that break nothing. The last ones are controls, each nearly one
// of those.
func TestBreakingSafe(t *testing.T) {
	const old = `version: 1
owner: acme
revision: 3
go: {package: limits}
entities: {user: {parent: org}, org: {}, robot: {}}
resources:
  api:
    limits:
      rps: {capacity: 10, every: 1s, per_call: 1}
      rpd: {capacity: 100, burst: 150, every: 1d}
    removed: [old]
    entities: {user: {}, robot: {}}
  jobs:
    limits: {rpm: {capacity: 5, every: 1m}}
    entities: {org: {}}
`
	for _, tc := range []struct {
		name  string
		edits []string // old, new, old, new
		want  string   // rules that fire
	}{
		{"nothing", nil, ""},
		{"raised numbers", []string{"revision: 3", "revision: 4", "capacity: 10,", "capacity: 20,"}, ""},
		{"raised revision alone", []string{"revision: 3", "revision: 9"}, ""},
		{"lower capacity and refill under the same burst", []string{"revision: 3", "revision: 4", "capacity: 100,",
			"capacity: 50, refill: 20,"}, "RATE_LOWERED"},
		{"added limit", []string{"revision: 3", "revision: 4", "limits: {rpm",
			"limits: {rph: {capacity: 5, every: 1h}, rpm"}, ""},
		{"added limit of numbers that another has", []string{"revision: 3", "revision: 4", "limits: {rpm",
			"limits: {rpn: {capacity: 5, every: 1m}, rpm"}, ""},
		{"added resource", []string{"resources:\n",
			"resources:\n  fresh: {limits: {rps: {capacity: 1, every: 1s}}, entities: {org: {}}}\n"}, ""},
		{"added kind", []string{"robot: {}}\nres", "robot: {}, team: {}}\nres"}, ""},
		{"added charged kind, below", []string{"entities: {org: {}}", "entities: {org: {}, user: {}}"}, ""},
		{"added charged kind, beside", []string{"entities: {org: {}}", "entities: {org: {}, robot: {}}"}, ""},
		{"added parent that nothing charges", []string{"robot: {}}\nres", "robot: {parent: org}}\nres"}, ""},
		{"added tombstone", []string{"revision: 3", "revision: 4", "[old]", "[old, older]"}, ""},
		{"docs, order and comments", []string{
			"entities: {user: {parent: org}, org: {}, robot: {}}", "entities: {robot: {doc: It works.}, org: {}, " +
				"user: {parent: org}} # order",
			"rps: {capacity: 10, every: 1s, per_call: 1}\n      rpd: {capacity: 100, burst: 150, every: 1d}",
			"rpd: {capacity: 100, burst: 150, every: 1d, doc: calls}\n      rps: {capacity: 10, every: 1s, " +
				"per_call: 1}",
		}, ""},
		{"defaults written out", []string{
			"go: {package: limits}", "go: {package: limits, out: limits/}\nstores: [dynamodb]",
			"    entities: {org: {}}", "    entities: {org: {rpm: {capacity: 5}}}\n    cascade: atomic\n    " +
				"on_unavailable: allow\n    settle: now\n    shadow: false",
			"capacity: 10, every: 1s", "capacity: 10, every: 1000ms, refill: 10, burst: 10, go_name: RPS",
		}, ""},
		{"added store", []string{"go: {package: limits}", "go: {package: limits}\nstores: [redis, dynamodb]"}, ""},
		{"cascade without ancestors", []string{"    removed: [old]",
			"    removed: [old]\n    cascade: compensated"}, ""},
		{"tombstone of a limit that goes", []string{
			"revision: 3", "revision: 4", "      rps: {capacity: 10, every: 1s, per_call: " +
				"1}\n", "", "[old]", "[old, rps]",
		}, "LIMIT_GO_NAME_CHANGED"},

		{"added parent that is charged, by no cascade", []string{
			"org: {}, robot: {}}", "org: {}, robot: {parent: user}}", "    removed: [old]", "    removed: [old]\n   " +
				" cascade: none",
		}, ""},
		{"added charged kind, above, by no cascade", []string{
			"    entities: {user: {}, robot: {}}", "    entities: {user: {}, robot: {}, org: {}}\n    cascade: none",
		}, ""},
		{"added parent for a kind that is charged nowhere", []string{
			"revision: 3", "revision: 4", "org: {}, robot: {}}\n", "org: {parent: team}, robot: {}, team: {}}\n", " " +
				"   entities: {org: {}}", "    entities: {team: {}}",
		}, "KIND_UNCHARGED"},
		{"another store", []string{"go: {package: limits}", "go: {package: limits}\nstores: [redis]"},
			"STORE_REMOVED"},
		{"numbers under the old revision", []string{"capacity: 10,", "capacity: 20,"}, "REVISION_REUSED"},
		{"added charged kind, above", []string{"entities: {user: {}, robot: {}}",
			"entities: {user: {}, robot: {}, org: {}}"}, "PRICE_RAISED ANCESTOR_CHARGED"},
		{"added parent that is charged", []string{
			"org: {}, robot: {}}", "org: {}, robot: {parent: user}}",
		}, "ENTITY_CHAIN PRICE_RAISED"},
		{"slower by a longer every", []string{"revision: 3", "revision: 4", "capacity: 5, every: 1m",
			"capacity: 5, every: 2m"}, "PERIOD_UNIT RATE_LOWERED"},
		{"as fast by a longer every", []string{"revision: 3", "revision: 4", "capacity: 5, every: 1m",
			"capacity: 10, every: 2m"}, "PERIOD_UNIT"},
		{"slower by the least", []string{"revision: 3", "revision: 4", "capacity: 5, every: 1m",
			"capacity: 6, every: 60001ms, refill: 5"}, "PERIOD_UNIT RATE_LOWERED"},
		{"prefetch", []string{"    entities: {org: {}}", "    entities: {org: {}}\n    prefetch: 1s"},
			"PREFETCH_CHANGED"},
		{"a cheaper settle", []string{"    entities: {org: {}}", "    entities: {org: {}}\n    settle: lazy"},
			"SETTLE_CHANGED"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fires(t, old, tc.edits, tc.want)
		})
	}
}

// TestBreakingRegions changes what regions share in ways that break nothing. The last ones are controls.
func TestBreakingRegions(t *testing.T) {
	const old = `version: 1
owner: acme
revision: 3
go: {package: limits}
regions: {names: [eu, us]}
entities: {user: {}}
resources:
  api: {limits: {rps: {capacity: 10, every: 1s}}, global: true}
  jobs: {limits: {rps: {capacity: 10, every: 1s}}}
`
	none := strings.NewReplacer("regions: {names: [eu, us]}\n", "", ", global: true", "").Replace(old)
	for _, tc := range []struct {
		name, old string
		edits     []string // old, new, old, new
		want      string   // rules that fire
	}{
		{"order", old, []string{"[eu, us]", "[us, eu]"}, ""},
		{"defaults written out", old, []string{"[eu, us]", "[eu, us], floor: 5, window: 10000ms", "1s}}}\n",
			"1s}}, global: false}\n"}, ""},
		{"added global resource", old, []string{"resources:\n",
			"resources:\n  fresh: {limits: {rps: {capacity: 1, every: 1s}}, global: true}\n"}, ""},
		{"added regions and a global resource", none, []string{
			"entities:", "regions: {names: [eu, us]}\nentities:", "resources:\n", "resources:\n  fresh: {limits: " +
				"{rps: {capacity: 1, every: 1s}}, global: true}\n",
		}, ""},

		{"regions and global are gone", old, []string{"revision: 3", "revision: 4", "regions: {names: [eu, us]}\n",
			"", ", global: true", ""}, "GLOBAL_CHANGED"},
		{"floor under the old revision", old, []string{"[eu, us]", "[eu, us], floor: 4"},
			"REVISION_REUSED REGION_FLOOR_CHANGED"},
		{"all at once", old, []string{"revision: 3", "revision: 4", "[eu, us]", "[eu, ap], floor: 4, window: 9s",
			"1s}}}\n", "1s}}, global: true}\n"},
			"REGION_ADDED REGION_REMOVED REGION_FLOOR_CHANGED REGION_WINDOW_CHANGED GLOBAL_CHANGED"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fires(t, tc.old, tc.edits, tc.want)
		})
	}
}

// TestBreakingRenames tells what has another name from what is gone.
func TestBreakingRenames(t *testing.T) {
	const head = "version: 1\nowner: acme\nrevision: 1\ngo: {package: limits}\n" +
		"entities: {user: {}, org: {}}\nresources:\n"
	resource := func(name string, limits ...string) string {
		return "  " + name + ":\n    limits:\n      " + strings.Join(limits, "\n      ") + "\n"
	}
	const ten, twenty, thirtyOf = ": {capacity: 10, every: 1s}", ": {capacity: 20, every: 1s}", ": {capacity: " +
		"30}"
	users := func(text, restated string) string { return text + "    entities: {user: {" + restated + "}}\n" }
	for _, tc := range []struct{ name, old, after, want string }{
		{
			"one of two limits", users(resource("api", "a"+ten, "b"+ten), ""), users(resource("api", "c"+ten), ""),
			"LIMIT_REMOVED api/b, LIMIT_RENAMED api/a",
		},
		{"both of two limits", users(resource("api", "a"+ten, "b"+ten), ""),
			users(resource("api", "c"+ten, "d"+ten), ""),
			"LIMIT_RENAMED api/a, LIMIT_RENAMED api/b"},
		{"to no limit that was there", users(resource("api", "a"+ten, "b"+ten), ""),
			users(resource("api", "b"+ten), ""), "LIMIT_REMOVED api/a"},
		{"to no limit of other numbers", users(resource("api", "a"+ten), ""),
			users(resource("api", "b"+twenty), ""), "LIMIT_REMOVED api/a"},
		{"to no limit of other numbers for a kind", users(resource("api", "a"+ten), ""),
			users(resource("api", "b"+ten), "b"+thirtyOf), "LIMIT_REMOVED api/a"},
		{
			"to no limit of other numbers for new kinds", users(resource("api", "a"+ten),
				"a"+thirtyOf), users(resource("api", "b"+twenty), "b"+thirtyOf),
			"LIMIT_REMOVED api/a",
		},
		{
			"one of two resources", users(resource("one", "a"+ten), "") +
				users(resource("two", "a"+ten), ""), users(resource("three", "a"+ten), ""),
			"RESOURCE_REMOVED two, RESOURCE_RENAMED one",
		},
		{
			"to no resource that was there", users(resource("one", "a"+ten), "") +
				users(resource("two", "a"+ten), ""), users(resource("two", "a"+ten), ""),
			"RESOURCE_REMOVED one",
		},
		{"to no resource with more limits", users(resource("one", "a"+ten), ""),
			users(resource("three", "a"+ten, "b"+ten), ""), "RESOURCE_REMOVED one"},
		{"to no resource of other numbers", users(resource("one", "a"+ten), ""),
			users(resource("three", "a"+twenty), ""), "RESOURCE_REMOVED one"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, c := range breaks(t, t.TempDir(), head+tc.old, strings.Replace(head, "revision: 1", "revision: 2",
				1)+tc.after) {
				if c.Severity == "data" && !strings.HasPrefix(c.Rule, "REVISION_") {
					got = append(got, c.Rule+" "+c.Place)
				}
			}
			slices.Sort(got)
			if got := strings.Join(got, ", "); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestBreakingGoNames tells Go names that are gone from those that something else has now, by which callers
// compile and mean that.
func TestBreakingGoNames(t *testing.T) {
	const head = "version: 1\nowner: acme\nrevision: 1\ngo: {package: limits}\n"
	const old = head + `entities: {user: {}, robot: {}}
resources:
  api: {limits: {rps: {capacity: 10, every: 1s}, rpm: {capacity: 20, every: 1m}}, ` +
		`entities: {user: {}, robot: {}}}
  jobs: {limits: {rps: {capacity: 10, every: 1s}}, entities: {user: {}, robot: {}}}
`
	for _, tc := range []struct {
		name  string
		edits []string          // old, new, old, new
		want  map[string]string // by place: parts of the message
	}{
		{"two limits' swapped", []string{"rps: {capacity: 10, every: 1s}, rpm: {",
			"rps: {go_name: RPM, capacity: 10, every: 1s}, rpm: {go_name: RPS, "},
			map[string]string{"api/rps": "is RPM now|RPS is limit rpm",
				"api/rpm": "is RPS now|RPM is limit rps"}},
		{"of a limit that is gone, to one that was there", []string{"rps: {capacity: 10, every: 1s}, rpm: {",
			"rpm: {go_name: RPS, "},
			map[string]string{"api/rps": "is gone|RPS is limit rpm",
				"api/rpm": "is RPS now"}},
		{"of a limit, to a new one", []string{"rps: {capacity: 10, every: 1s}, rpm: {",
			"rpd: {go_name: RPS, capacity: 10, every: 1d}, rps: {go_name: Old, capacity: 10, every: 1s}, rpm: {"},
			map[string]string{"api/rps": "is Old now|RPS is limit rpd"}},
		{"kept by what may be the limit's new name", []string{"rps: {capacity: 10, every: 1s}, rpm: {",
			"rpz: {go_name: RPS, capacity: 10, every: 1s}, rpm: {"}, nil},
		{"of a limit that is gone", []string{"rps: {capacity: 10, every: 1s}, rpm: {", "rpm: {"},
			map[string]string{"api/rps": "is gone"}},
		{"two resources' swapped", []string{"api: {", "api: {go_name: Jobs, ", "jobs: {", "jobs: {go_name: API, "},
			map[string]string{"api": "is Jobs now|API is resource jobs",
				"jobs": "is API now|Jobs is resource api"}},
		{"of a resource that is gone, to one that was there",
			[]string{"  api: {limits: {rps: {capacity: 10, every: 1s}, rpm: {capacity: 20, every: 1m}}, entities: " +
				"{user: {}, robot: {}}}\n", "", "jobs: {", "jobs: {go_name: API, "},
			map[string]string{"api": "is gone|API is resource jobs",
				"jobs": "is API now"}},
		{"two kinds' swapped", []string{"user: {}, robot: {}}\n",
			"user: {go_name: Robot}, robot: {go_name: User}}\n"},
			map[string]string{"user": "is Robot now|User is kind robot",
				"robot": "is User now|Robot is kind user"}},
		{"of a kind that is gone, to one that was there", []string{"user: {}, robot: {}}\n",
			"robot: {go_name: User}}\n", "user: {}, robot", "robot", "user: {}, robot", "robot"},
			map[string]string{"user": "is gone|User is kind robot",
				"robot": "is User now"}},
		{"kept by what may be the kind's new name", []string{"user: {}, robot: {}}\n",
			"member: {go_name: User}, robot: {}}\n", "user: {}", "member: {}", "user: {}", "member: {}"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			after := old
			for i := 0; i < len(tc.edits); i += 2 {
				if !strings.Contains(after, tc.edits[i]) {
					t.Fatalf("there is no %q to change", tc.edits[i])
				}
				after = strings.Replace(after, tc.edits[i], tc.edits[i+1], 1)
			}
			found := 0
			for _, c := range breaks(t, t.TempDir(), old, after) {
				if !strings.HasSuffix(c.Rule, "_GO_NAME_CHANGED") {
					continue
				}
				found++
				for part := range strings.SplitSeq(tc.want[c.Place], "|") {
					if part == "" || !strings.Contains(c.Message, part) {
						t.Errorf("%s: got %s, want %q", c.Place, c.Message, part)
					}
				}
			}
			if found != len(tc.want) {
				t.Errorf("%d findings, want %d", found, len(tc.want))
			}
		})
	}
}

// TestBreakingParents: the field of a parent is gone with its Go name alone.
func TestBreakingParents(t *testing.T) {
	const old = `version: 1
owner: acme
revision: 1
go: {package: limits}
entities: {org: {}, user: {parent: org}}
resources: {api: {limits: {rps: {capacity: 10, every: 1s}}, entities: {user: {}}}}
`
	for firm, renamed := range map[string]bool{"firm: {}": true, "firm: {go_name: Org}": false} {
		found := false
		for _, c := range breaks(t, t.TempDir(), old, strings.NewReplacer("org: {}", firm, "parent: org",
			"parent: firm").Replace(old)) {
			if c.Rule == "PARENT_CHANGED" {
				found = true
				if strings.Contains(c.Message, "field Org of User is gone") != renamed {
					t.Errorf("%s: %s", firm, c.Message)
				}
			}
		}
		if !found {
			t.Errorf("%s: PARENT_CHANGED does not fire", firm)
		}
	}
}

// TestBreakingIgnored takes changes as they are, by rule and by place, and other changes not.
func TestBreakingIgnored(t *testing.T) {
	const old = `version: 1
owner: acme
revision: 3
go: {package: limits}
entities: {user: {}}
resources:
  api:
    limits: {rps: {capacity: 10, every: 1s}}
  jobs:
    limits: {rps: {capacity: 10, every: 1s}}
`
	after := strings.ReplaceAll(old, "every: 1s}}",
		"every: 1s}}\n    settle: lazy\n    on_unavailable: deny") + `breaking:
  except: [{rule: SETTLE_CHANGED, reason: nobody waits}]
  ignore_only: [{rule: ON_UNAVAILABLE_CHANGED, at: api, reason: asked for}]
`
	var got []string
	for _, c := range breaks(t, t.TempDir(), old, after) {
		got = append(got, c.Place+" "+c.Rule+" "+c.Severity+" "+c.Ignored)
	}
	want := []string{
		"api SETTLE_CHANGED behaviour nobody waits", "api ON_UNAVAILABLE_CHANGED behaviour asked for",
		"jobs SETTLE_CHANGED behaviour nobody waits", "jobs ON_UNAVAILABLE_CHANGED behaviour ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes differ (-want +got):\n%s", diff)
	}
}

// TestBreakingPlaces: a limit, a resource and a kind whose places read the same are ignored one by one.
func TestBreakingPlaces(t *testing.T) {
	const old = `version: 1
owner: acme
revision: 1
go: {package: limits}
entities: {api: {go_name: Client}}
resources:
  api: {go_name: API, limits: {rps: {go_name: Calls, capacity: 10, every: 1s}}}
  api/rps: {go_name: APIRate, limits: {rpm: {capacity: 5, every: 1m}}}
  jobs: {go_name: Jobs, limits: {rpm: {capacity: 5, every: 1m}}}
`
	after := strings.NewReplacer("Client", "Service", "Calls", "PerSecond", "APIRate", "Rate", "Jobs",
		"Tasks").Replace(old)
	sameResource := strings.NewReplacer("go_name: API,", "go_name: Calls,").Replace(after)
	for _, tc := range []struct{ after, ignored, want string }{
		{after, "LIMIT_GO_NAME_CHANGED, at: api/rps", "KIND api, RESOURCE api/rps, RESOURCE jobs"},
		{after, "RESOURCE_GO_NAME_CHANGED, at: api/rps", "KIND api, LIMIT api/rps, RESOURCE jobs"},
		{after, "KIND_GO_NAME_CHANGED, at: api", "LIMIT api/rps, RESOURCE api/rps, RESOURCE jobs"},
		{sameResource, "KIND_GO_NAME_CHANGED, at: api", "RESOURCE api, RESOURCE api/rps, RESOURCE jobs"},
	} {
		t.Run(tc.ignored, func(t *testing.T) {
			var got []string
			for _, c := range breaks(t, t.TempDir(), old,
				tc.after+"breaking: {ignore_only: [{rule: "+tc.ignored+", reason: so}]}\n") {
				if what, ok := strings.CutSuffix(c.Rule, "_GO_NAME_CHANGED"); !ok {
					t.Error(c)
				} else if c.Ignored == "" {
					got = append(got, what+" "+c.Place)
				}
			}
			slices.Sort(got)
			if got := strings.Join(got, ", "); got != tc.want {
				t.Errorf("not ignored: %s, want %s", got, tc.want)
			}
		})
	}
}

// TestBreakingMoved: a schema in another folder has its package in another, unless out says otherwise.
func TestBreakingMoved(t *testing.T) {
	old := OldSchema{Name: "old.yaml", Folder: "../api", Text: []byte(numbers)}
	changes, err := Breaking(schemaAt(t, t.TempDir(), numbers).Schema, old)
	if err != nil || len(changes) != 1 || changes[0].Rule != "PACKAGE_CHANGED" ||
		!strings.HasSuffix(changes[0].Message, "write package: limits and out: ../api/limits to keep it") {
		t.Errorf("moved: %v, %v", changes, err)
	}
	there := strings.Replace(numbers, "{package: limits", "{package: limits, out: ../api/limits", 1)
	if changes, err := Breaking(schemaAt(t, t.TempDir(), there).Schema, old); err != nil || len(changes) > 0 {
		t.Errorf("moved, and its package was not: %v, %v", changes, err)
	}
}

// TestBreakingErrors: mistakes of either file.
func TestBreakingErrors(t *testing.T) {
	cfg := schemaAt(t, t.TempDir(), numbers)
	old := OldSchema{Name: "old.yaml", Text: []byte(numbers)}
	if _, err := Breaking(cfg.Schema, old); err != nil {
		t.Fatal(err)
	}
	_, err := Breaking(cfg.Schema, OldSchema{Name: "git:v1:limits.yaml",
		Text: []byte(strings.Replace(numbers, "capacity: 5", "capacity: 0", 1))})
	if _, ok := errors.AsType[Problems](err); !ok || !strings.HasPrefix(err.Error(),
		"what to compare with, git:v1:limits.yaml, does not pass the rules of this sluice; ") ||
		!strings.HasSuffix(err.Error(), "\ngit:v1:limits.yaml:13:30: ZERO_NUMBER: capacity is 0: it must be at "+
			"least 1") {
		t.Errorf("a mistake in the old file: %v", err)
	}
	if _, err := Breaking(cfg.Schema+".none", old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no new file: %v", err)
	}
	wrong := schemaAt(t, t.TempDir(), strings.Replace(numbers, "capacity: 5", "capacity: 0", 1))
	if _, err := Breaking(wrong.Schema, old); err == nil ||
		err.Error() != wrong.Schema+":13:30: ZERO_NUMBER: capacity is 0: it must be at least 1" {
		t.Errorf("a mistake in the new file: %v", err)
	}
}

// TestBreakingWindow: who may use a quota for longer is rolled out to last where the window is longer, and
// first where it is shorter.
func TestBreakingWindow(t *testing.T) {
	dir := filepath.Join(breakingFolder, "region_window_changed")
	var texts []string
	for _, name := range []string{"old.yaml", "new.yaml"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, strings.Replace(string(text), "revision: 2", "revision: 1", 1))
	}
	const sync, services = "regional sync and its schedule", "the services"
	for i, order := range [][2]string{{sync, services}, {services, sync}} {
		got := lines(breaks(t, t.TempDir(), texts[i], texts[1-i]))
		if want := "roll it out to " + order[0] + " in all regions first, and to " + order[1] +
			" once that is done, or "; !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
