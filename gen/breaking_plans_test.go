package gen

import "testing"

// TestBreakingPlans changes plans in ways that break nothing. The last ones are controls.
func TestBreakingPlans(t *testing.T) {
	const old = `version: 1
owner: acme
revision: 3
go: {package: limits}
entities: {key: {parent: org}, org: {parent: holding}, holding: {}, ip: {}}
plans: {kind: org, names: [free, pro]}
resources:
  api:
    limits: {rps: {capacity: 10, every: 1s}, day: {capacity: 100, window: day}}
    entities: {key: {}, ip: {}}
    plans: {pro: {key: {rps: {capacity: 20}, day: {capacity: unlimited}}}}
  jobs:
    limits: {rpm: {capacity: 5, every: 1m}}
    entities: {org: {}, key: {}}
  mail:
    limits: {rpm: {capacity: 5, every: 1m}}
    entities: {key: {}}
    cascade: none
`
	const raised, higher = "revision: 3", "revision: 4"
	for _, tc := range []struct {
		name  string
		edits []string // old, new, old, new
		want  string   // rules that fire
	}{
		{"order", []string{"[free, pro]", "[pro, free]"}, ""},
		{"another plan", []string{"[free, pro]", "[free, big, pro]", "plans: {pro: ",
			"plans: {big: {key: {rps: {capacity: 1}}}, pro: "}, ""},
		{"a plan gives more", []string{raised, higher, "rps: {capacity: 20}", "rps: {capacity: unlimited}"}, ""},
		{"a plan begins to give more", []string{raised, higher, "plans: {pro: ",
			"plans: {free: {key: {day: {capacity: 101}}}, pro: "}, ""},
		{"a number that a plan has anyway", []string{raised, higher, "plans: {pro: ",
			"plans: {free: {key: {day: {capacity: 100}}}, pro: "}, ""},
		{"first plans of the schema", []string{"plans: {kind: org, names: [free, pro]}\n",
			"plans: {kind: org, names: [free, pro, other]}\n"}, ""},
		{"first plans of a resource, whose calls charge the org", []string{raised, higher,
			"entities: {org: {}, key: {}}\n",
			"entities: {org: {}, key: {}}\n    plans: {pro: {org: {rpm: {capacity: 6}}}}\n"}, ""},

		{"first plans of a resource", []string{raised, higher, "    cascade: none\n",
			"    cascade: none\n    plans: {pro: {key: {rpm: {capacity: 6}}}}\n"}, "PARENT_NEEDED"},
		{"first plans of a resource, which give less", []string{raised, higher, "    cascade: none\n",
			"    cascade: none\n    plans: {pro: {key: {rpm: {capacity: 4}}}}\n"}, "PARENT_NEEDED PLAN_LOWERED"},
		{"plans of a kind above", []string{raised, higher, "kind: org", "kind: holding"},
			"PLAN_KIND_CHANGED PARENT_NEEDED"},
		{"a plan gives less", []string{raised, higher, "rps: {capacity: 20}", "rps: {capacity: 20, refill: 19}"},
			"PLAN_LOWERED"},
		{"a plan no longer gives more", []string{raised, higher, ", day: {capacity: unlimited}", ""},
			"PLAN_LOWERED"},
		{"a resource without plans", []string{raised, higher,
			"    plans: {pro: {key: {rps: {capacity: 20}, day: {capacity: unlimited}}}}\n", ""},
			"PLAN_LOWERED PLAN_LOWERED"},
		{"less without a plan, and so on one that says nothing", []string{raised, higher, "capacity: 100,",
			"capacity: 99,"}, "BURST_LOWERED"},
		{"numbers under the old revision", []string{"rps: {capacity: 20}", "rps: {capacity: 21}"},
			"REVISION_REUSED"},
		{"a plan less", []string{raised, higher, "[free, pro]", "[pro]"}, "PLAN_REMOVED"},
		{"no plans", []string{raised, higher, "plans: {kind: org, names: [free, pro]}\n", "",
			"    plans: {pro: {key: {rps: {capacity: 20}, day: {capacity: unlimited}}}}\n", ""},
			"PLAN_REMOVED PLAN_REMOVED"},
		{"a plan less, for a reason", []string{raised, higher, "[free, pro]", "[pro]", "resources:\n",
			"breaking: {ignore_only: [{rule: PLAN_REMOVED, at: free, reason: nobody is on it}]}\nresources:\n"},
			"PLAN_REMOVED"},
	} {
		t.Run(tc.name, func(t *testing.T) { fires(t, old, tc.edits, tc.want) })
	}
}
