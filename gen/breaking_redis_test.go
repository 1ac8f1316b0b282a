package gen

import (
	"strings"
	"testing"
)

// TestBreakingRedis: what a change does to buckets in Redis is not what it does to a table. On a cluster
// buckets start full where calls end at another kind.
func TestBreakingRedis(t *testing.T) {
	const (
		old = `version: 1
owner: acme
revision: 1
go: {package: limits}
stores: [redis]
entities: {user: {parent: project}, project: {}, org: {}}
resources:
  api:
    limits: {rpm: {capacity: 100, every: 1m}, tpm: {capacity: 1_000, every: 1m}}
    entities: {user: {}, project: {}}
    cascade: atomic
`
		cluster = "on a Redis cluster, whose keys have the last entity that a call charges, buckets of "
	)
	both := func(stores string) string { return strings.Replace(old, "stores: [redis]", stores, 1) }
	for _, tc := range []struct {
		name, old  string
		edits      []string // old, new, old, new
		rule, want string   // part of what the rule says; "" if it does not fire
		not        string   // no part of it
	}{
		{"chain ends higher", old, []string{"project: {}, org", "project: {parent: org}, org", "project: {}}",
			"project: {}, org: {}}"},
			"ANCESTOR_CHARGED", cluster + "User and Project start full", ""},
		{"kind has a parent that is charged", both("stores: [redis, dynamodb]"),
			[]string{"project: {}, org", "project: {parent: org}, org", "project: {}}", "project: {}, org: {}}"},
			"ENTITY_CHAIN", cluster + "User and Project start full", ""},
		{"chain ends lower", old, []string{"user: {}, project: {}}", "user: {}}"}, "KIND_UNCHARGED", cluster +
			"User start full", ""},
		{"chain starts higher", old, []string{"user: {}, project: {}}", "project: {}}"}, "KIND_UNCHARGED",
			"put user back", "cluster"},
		{"another parent", old, []string{"parent: project", "parent: org"}, "PARENT_CHANGED", cluster +
			"User start full", ""},
		{"no parent", old, []string{"{parent: project}", "{}"}, "PARENT_CHANGED", cluster + "User start full", ""},
		{"no cascade", old, []string{"cascade: atomic", "cascade: none"}, "CASCADE_CHANGED", cluster +
			"User start full", ""},
		{"no cascade in a table", both("stores: [dynamodb]"), []string{"cascade: atomic", "cascade: none"},
			"CASCADE_CHANGED", "write cascade: atomic", "cluster"},
		{"cascade by single writes", old, []string{"atomic", "compensated"}, "CASCADE_CHANGED", "", ""},
		{"cascade by single writes in both", both("stores: [dynamodb, redis]"), []string{"atomic", "compensated"},
			"CASCADE_CHANGED", "given back", "cluster"},
		{"limit removed", old, []string{", tpm: {capacity: 1_000, every: 1m}", ""}, "LIMIT_REMOVED",
			"its hashes expire", "b_tpm_"},
		{"limit removed in both", both("stores: [dynamodb, redis]"),
			[]string{", tpm: {capacity: 1_000, every: 1m}", ""}, "LIMIT_REMOVED", "b_tpm_", "hashes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			after := strings.NewReplacer(append([]string{"revision: 1", "revision: 2"},
				tc.edits...)...).Replace(tc.old)
			said := ""
			for _, c := range breaks(t, t.TempDir(), tc.old, after) {
				if c.Rule == tc.rule {
					said += c.String() + "\n"
				}
			}
			switch {
			case (said == "") != (tc.want == ""), !strings.Contains(said, tc.want), tc.not != "" &&
				strings.Contains(said, tc.not):
				t.Errorf("%s says\n%swant %q, and not %q", tc.rule, said, tc.want, tc.not)
			}
		})
	}
}
