package gen

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const numbers = `version: 1
revision: 3
go: {package: limits}
entities: {user: {}, org: {}}
resources:
  api:
    limits:
      rps: {capacity: 10, every: 1s}
      rpd: {capacity: 100, every: 1d}
    entities: {user: {}, org: {rps: {capacity: 20}}}
  jobs:
    limits: {rpm: {capacity: 5, every: 1m, per_call: 1}}
    removed: [old]
    entities: {org: {}}
`

// schemaAt writes a limits.yaml to dir.
func schemaAt(t *testing.T, dir, text string) Config {
	t.Helper()
	path := filepath.Join(dir, "limits.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return Config{Schema: path}
}

// TestRevision changes a schema after a run and runs again.
func TestRevision(t *testing.T) {
	const reused, changed = "2:11: REVISION_REUSED: the numbers of revision 3 have changed (", "): raise revision to 4"
	for _, tc := range []struct{ name, old, new, want string }{
		{"nothing", "", "", ""},
		{"doc", "rps: {", "rps: {doc: calls, ", ""},
		{"per_call", "per_call: 1", "per_call: 2", ""},
		{"order", "      rps: {capacity: 10, every: 1s}\n      rpd: {capacity: 100, every: 1d}\n",
			"      rpd: {capacity: 100, every: 1d}\n      rps: {capacity: 10, every: 1s}\n", ""},
		{"same in other words", "every: 1d", "every: 24h, refill: 100, burst: 1_00", ""},
		{"new kind", "entities: {org: {}}", "entities: {org: {}, user: {}}", ""},
		{"new resource", "resources:\n", "resources:\n  fresh: {limits: {rps: {capacity: 1, every: 1s}}, entities: {org: {}}}\n", ""},

		{"capacity", "rps: {capacity: 20}", "rps: {capacity: 21}", reused + "api for org" + changed},
		{"burst", "every: 1d", "every: 1d, burst: 200", reused + "api for user, api for org" + changed},
		{"refill", "every: 1d", "every: 1d, refill: 2", reused + "api for user, api for org" + changed},
		{"period", "every: 1m", "every: 1h", reused + "jobs for org" + changed},
		{"renamed limit", "rpm:", "rph:", reused + "jobs for org" + changed},
		{"new limit", "limits: {rpm", "limits: {rps: {capacity: 1, every: 1s}, rpm", reused + "jobs for org" + changed},
		{"removed", "[old]", "[old, older]", reused + "jobs for org" + changed},
		{"kind gone", "{user: {}, org: {rps", "{org: {rps", reused + "api for user is gone" + changed},
		{"renamed resource", "jobs:", "tasks:", reused + "jobs for org is gone" + changed},

		{"raised", "revision: 3", "revision: 4", ""},
		{"lowered", "revision: 3", "revision: 2", "2:11: REVISION_LOWERED: revision 2 is lower than 3, which the generated code has: " +
			"buckets may have its numbers; raise revision to 4, also to bring old numbers back"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			schemaAt(t, dir, numbers)
			generate(t, dir)
			cfg := schemaAt(t, dir, strings.Replace(numbers, tc.old, tc.new, 1))
			want := tc.want
			if want != "" {
				want = cfg.Schema + ":" + want
			}
			_, err := Run(cfg)
			switch _, ok := errors.AsType[Problems](err); {
			case err == nil && want != "":
				t.Errorf("Run succeeded, want %s", want)
			case err != nil && (!ok || err.Error() != want):
				t.Errorf("Run returned %v, want %s", err, want)
			}
		})
	}
}

// TestRevisionConflict: of a merge conflict's two sides, both count.
func TestRevisionConflict(t *testing.T) {
	dir := t.TempDir()
	schemaAt(t, dir, numbers)
	generate(t, dir)
	ours, err := os.ReadFile(filepath.Join(dir, "limits", "limits.go"))
	if err != nil {
		t.Fatal(err)
	}
	theirs := strings.Replace(numbers, "capacity: 5", "capacity: 6", 1)
	other := t.TempDir()
	schemaAt(t, other, theirs)
	generate(t, other)
	conflict, err := os.ReadFile(filepath.Join(other, "limits", "limits.go"))
	if err != nil {
		t.Fatal(err)
	}
	both := string(ours) + "<<<<<<<\n" + string(conflict) + ">>>>>>>\r\n"
	if err := os.WriteFile(filepath.Join(dir, "limits", "limits.go"), []byte(both), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{numbers, theirs} {
		if _, err := Run(schemaAt(t, dir, text)); err == nil || !strings.Contains(err.Error(), "jobs for org") {
			t.Errorf("Run returned %v, want REVISION_REUSED", err)
		}
	}
	schemaAt(t, dir, strings.Replace(theirs, "revision: 3", "revision: 4", 1))
	generate(t, dir)
}
