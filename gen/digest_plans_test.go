package gen

import (
	"strings"
	"testing"
)

// TestRevisionPlans: the numbers of plans are numbers, and so are those that a plan begins to restate.
// Another plan is none: programs with it run beside those without.
func TestRevisionPlans(t *testing.T) {
	const planned = `version: 1
owner: acme
revision: 3
go: {package: limits}
entities: {key: {parent: org}, org: {}, team: {parent: org}}
plans: {kind: org, names: [free, pro]}
resources:
  api:
    limits: {rps: {capacity: 10, every: 1s}, day: {capacity: 100, window: day}}
    entities: {key: {}, org: {}}
    plans: {pro: {key: {rps: {capacity: 20}}}}
  jobs:
    limits: {rpm: {capacity: 5, every: 1m, per_call: 1}}
    entities: {org: {}}
`
	const reused, changed = "3:11: REVISION_REUSED: the numbers of revision 3 have changed (", "): raise " +
		"revision to 4"
	for _, tc := range []struct{ name, old, new, want string }{
		{"nothing", "", "", ""},
		{"order of plans", "[free, pro]", "[pro, free]", ""},
		{"same in other words", "{rps: {capacity: 20}}", "{rps: {capacity: 20, refill: 20}}", ""},
		{"another plan, with numbers", "[free, pro]}", "[free, pro, big]}", ""},
		{"raised", "revision: 3", "revision: 4", ""},
		{"a kind below", "{key: {}, org: {}}", "{key: {}, org: {}, team: {}}", ""},

		{"capacity", "{rps: {capacity: 20}}", "{rps: {capacity: 21}}", "api for pro.key"},
		{"unlimited", "{rps: {capacity: 20}}", "{rps: {capacity: unlimited}}", "api for pro.key"},
		{"another limit", "{rps: {capacity: 20}}", "{rps: {capacity: 20}, day: {capacity: 7}}", "api for pro.key"},
		{"another kind", "{pro: {", "{pro: {org: {day: {capacity: 7}}, ", "api for pro.org"},
		{"another plan that there was", "plans: {pro:", "plans: {free: {key: {day: {capacity: 1}}}, pro:",
			"api for free.key"},
		{"a plan less", "[free, pro]", "[pro]", "api for free.key is gone, api for free.org is gone"},
		{"plans of another kind", "{kind: org,", "{kind: key,", "api for free.key, api for free.org is gone, " +
			"api for pro.key, api for pro.org is gone"},
		{"no plans any more", "    plans: {pro: {key: {rps: {capacity: 20}}}}\n", "", "api for free.key is gone, " +
			"api for free.org is gone, api for pro.key is gone, api for pro.org is gone"},
		{"the first plans", "entities: {org: {}}\n",
			"entities: {org: {}}\n    plans: {pro: {org: {rpm: {capacity: 6}}}}\n", "jobs has plans"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			schemaAt(t, dir, planned)
			generate(t, dir)
			if !strings.Contains(planned, tc.old) {
				t.Fatalf("%s is not in the schema", tc.old)
			}
			text := strings.Replace(planned, tc.old, tc.new, 1)
			if tc.name == "another plan, with numbers" {
				text = strings.Replace(text, "plans: {pro:", "plans: {big: {key: {rps: {capacity: 99}}}, pro:", 1)
			}
			cfg := schemaAt(t, dir, text)
			want, got := "", ""
			if tc.want != "" {
				want = cfg.Schema + ":" + reused + tc.want + changed
			}
			if _, err := Run(cfg); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("Run returned %s, want %s", got, want)
			}
		})
	}
}
