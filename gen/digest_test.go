package gen

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const numbers = `version: 1
owner: acme
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
	const reused, changed = "3:11: REVISION_REUSED: the numbers of revision 3 have changed (", "): raise " +
		"revision to 4"
	for _, tc := range []struct{ name, old, new, want string }{
		{"nothing", "", "", ""},
		{"doc", "rps: {", "rps: {doc: calls, ", ""},
		{"per_call", "per_call: 1", "per_call: 2", ""},
		{"order", "      rps: {capacity: 10, every: 1s}\n      rpd: {capacity: 100, every: 1d}\n",
			"      rpd: {capacity: 100, every: 1d}\n      rps: {capacity: 10, every: 1s}\n", ""},
		{"cascade", "removed: [old]", "removed: [old]\n    cascade: none", ""},
		{"on_unavailable", "removed: [old]", "removed: [old]\n    on_unavailable: deny", ""},
		{"settle", "removed: [old]", "removed: [old]\n    settle: lazy", ""},
		{"shadow", "removed: [old]", "removed: [old]\n    shadow: true", ""},
		{"same in other words", "every: 1d", "every: 24h, refill: 100, burst: 1_00", ""},
		{"new kind", "entities: {org: {}}", "entities: {org: {}, user: {}}", ""},
		{"new resource", "resources:\n", "resources:\n  fresh: {limits: {rps: {capacity: 1, every: 1s}}, " +
			"entities: {org: {}}}\n", ""},

		{"capacity", "rps: {capacity: 20}", "rps: {capacity: 21}", reused + "api for org" + changed},
		{"burst", "every: 1d", "every: 1d, burst: 200", reused + "api for user, api for org" + changed},
		{"refill", "every: 1d", "every: 1d, refill: 2", reused + "api for user, api for org" + changed},
		{"period", "every: 1m", "every: 1h", reused + "jobs for org" + changed},
		{"renamed limit", "rpm:", "rph:", reused + "jobs for org" + changed},
		{"new limit", "limits: {rpm", "limits: {rps: {capacity: 1, every: 1s}, rpm", reused + "jobs for org" +
			changed},
		{"removed", "[old]", "[old, older]", reused + "jobs removes older" + changed},
		{"no longer removed", "    removed: [old]\n", "", ""},
		{"kind gone", "{user: {}, org: {rps", "{org: {rps", reused + "api for user is gone" + changed},
		{"renamed resource", "jobs:", "tasks:", reused + "jobs for org is gone" + changed},

		{"raised", "revision: 3", "revision: 4", ""},
		{"lowered", "revision: 3", "revision: 2",
			"3:11: REVISION_LOWERED: revision 2 is lower than 3, which the generated code has: buckets may have " +
				"its numbers; raise revision to 4, also to bring old numbers back"},
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

// TestCommitted: numbers are compared with those of the last commit, if that is known, and a schema that was
// never committed has none.
func TestCommitted(t *testing.T) {
	changed := strings.Replace(numbers, "capacity: 5", "capacity: 6", 1)
	raised := strings.Replace(changed, "revision: 3", "revision: 4", 1)
	const lowered = "REVISION_LOWERED: "
	const reused = "REVISION_REUSED: the numbers of revision 3 have changed (jobs for org): raise revision to 4"
	for _, tc := range []struct{ name, schema, generated, file, want string }{
		{"never committed", "", "", changed, ""},
		{"committed", numbers, numbers, changed, reused},
		{"not the generated code", numbers, "", changed, reused},
		{"not the schema", "", numbers, changed, reused},
		{"changed and not generated", changed, numbers, changed, reused},
		{"raised", numbers, numbers, raised, ""},
		{"raised before, and changed since", numbers, numbers, strings.Replace(raised, "capacity: 6", "capacity: 7",
			1), ""},
		{"lowered", raised, raised, changed, lowered},
		{"lowered, not the generated code", raised, "", changed, lowered},
		{"a schema with mistakes", "version: 2", numbers, changed, reused},
		{"a schema with mistakes alone", "version: 2", "", changed, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := map[string]string{"limits.yaml": tc.schema}
			if tc.generated != "" {
				dir := t.TempDir()
				schemaAt(t, dir, tc.generated)
				generate(t, dir)
				files["limits/limits.go"] = tree(t, dir)["limits/limits.go"]
			}
			// what the last run has generated does not matter
			dir := t.TempDir()
			schemaAt(t, dir, raised)
			generate(t, dir)
			cfg := schemaAt(t, dir, tc.file)
			cfg.Committed = func(path string) ([]byte, error) {
				rel, err := filepath.Rel(dir, path)
				if text := files[filepath.ToSlash(rel)]; text != "" {
					return []byte(text), err
				}
				return nil, err
			}
			_, err := Run(cfg)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Run returned %v, want %q", err, tc.want)
			}
		})
	}
}

// TestRevisionRegions: what regions keep of a limit is one of its numbers.
func TestRevisionRegions(t *testing.T) {
	const shared = "regions: {names: [eu, us], window: 10s}\n"
	global := strings.NewReplacer("entities: {user: {}, org: {}}\n", shared+"entities: {user: {}, org: {}}\n",
		"    removed: [old]\n", "    removed: [old]\n    global: true\n").Replace(numbers)
	const changed = "3:11: REVISION_REUSED: the numbers of revision 3 have changed (jobs for org): raise " +
		"revision to 4"
	for _, tc := range []struct{ name, old, new, want string }{
		{"nothing", "", "", ""},
		{"order", "[eu, us]", "[us, eu]", ""},
		{"same in other words", "window: 10s", "window: 10000ms, floor: 5", ""},
		{"raised", "revision: 3", "revision: 4", ""},

		{"names", "[eu, us]", "[eu, us, ap]", changed},
		{"other names", "[eu, us]", "[eu, ap]", changed},
		{"floor", "window: 10s", "floor: 6", changed},
		{"window", "window: 10s", "window: 11s", changed},
		{"another is global too", "every: 1d}\n", "every: 1d}\n    global: true\n",
			strings.Replace(changed, "jobs for org", "api for user, api for org", 1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			schemaAt(t, dir, global)
			generate(t, dir)
			cfg := schemaAt(t, dir, strings.Replace(global, tc.old, tc.new, 1))
			want := tc.want
			if want != "" {
				want = cfg.Schema + ":" + want
			}
			got := ""
			if _, err := Run(cfg); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("Run returned %s, want %s", got, want)
			}
		})
	}
}

// TestRemovedReused gives a limit a name that was in removed: refused until the schema says why, at that
// place or of the rule, and forgotten once that is generated.
func TestRemovedReused(t *testing.T) {
	reused := strings.NewReplacer("revision: 3", "revision: 4", "limits: {rpm",
		"limits: {old: {capacity: 1, every: 1s}, rpm", "    removed: [old]\n", "").Replace(numbers)
	elsewhere := strings.ReplaceAll(reused, "jobs:", "tasks:")
	const refused = "13:14: REMOVED_REUSED: limit old of jobs has a name that was in removed: a bucket that " +
		"was not written since goes on with the balance it had then, instead of starting full, and overrides " +
		"stored under the name apply again; choose another name, or say under breaking why no bucket has it: " +
		"ignore_only: [{rule: REMOVED_REUSED, at: jobs/old, reason: ...}]"
	for _, tc := range []struct{ name, text, want string }{
		{"reused", reused, refused},
		{"with a higher revision", strings.Replace(reused, "revision: 4", "revision: 40", 1), refused},
		{"not reused", numbers, ""},
		{"of another resource", elsewhere, ""},
		{"said", reused + "breaking: {ignore_only: [{rule: REMOVED_REUSED, at: jobs/old, reason: never " +
			"deployed}]}\n", ""},
		{"said of all", reused + "breaking: {except: [{rule: REMOVED_REUSED, reason: never deployed}]}\n", ""},
		{"said of another", reused + "breaking: {ignore_only: [{rule: REMOVED_REUSED, at: jobs/rpm, reason: " +
			"never deployed}]}\n", refused},
		{"another rule said", reused + "breaking: {ignore_only: [{rule: PERIOD_UNIT, at: jobs/old, reason: never " +
			"deployed}]}\n", refused},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			schemaAt(t, dir, numbers)
			generate(t, dir)
			cfg := schemaAt(t, dir, tc.text)
			_, err := Run(cfg)
			if tc.want != "" {
				if _, ok := errors.AsType[Problems](err); !ok || err.Error() != cfg.Schema+":"+tc.want {
					t.Errorf("Run returned %v, want %s", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			generate(t, dir)
			plain, _, _ := strings.Cut(tc.text, "breaking:")
			if _, err := Run(schemaAt(t, dir, plain)); err != nil {
				t.Errorf("once generated: %v", err)
			}
		})
	}
}

// TestRevisionMerge: branches that change different numbers under the same new revision meet in a real merge.
func TestRevisionMerge(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	limitsOf := func(text string) string {
		dir := t.TempDir()
		schemaAt(t, dir, text)
		generate(t, dir)
		return filepath.Join(dir, "limits", "limits.go")
	}
	raised := strings.Replace(numbers, "revision: 3", "revision: 4", 1)
	base := limitsOf(numbers)
	const user, jobs = "rps: {capacity: 10,", "rpm: {capacity: 5,"
	other := func(old string) string { return strings.TrimSuffix(old, ",") + "0," }
	ours := limitsOf(strings.Replace(raised, user, other(user), 1))
	theirs := limitsOf(strings.Replace(raised, jobs, other(jobs), 1))
	merged := strings.NewReplacer(user, other(user), jobs, other(jobs)).Replace(raised)

	merge := func(t *testing.T, args ...string) (string, bool) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"merge-file", "-p"},
			args...)...).Output()
		exit, failed := errors.AsType[*exec.ExitError](err)
		if err != nil && (!failed || exit.ExitCode() > 127) {
			t.Fatal(err)
		}
		return string(out), failed
	}
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	conflict, conflicts := merge(t, ours, base, theirs)
	if !conflicts {
		t.Fatalf("git merged two changes under one revision:\n%s", conflict)
	}
	// The control: without totals the entries, a line apart, merge.
	total := regexp.MustCompile(` \([0-9a-f]{16}\)`)
	plain := func(path string) string {
		copied := filepath.Join(t.TempDir(), "limits.go")
		write(t, copied, total.ReplaceAllString(read(path), ""))
		return copied
	}
	if out, conflicts := merge(t, plain(ours), plain(base), plain(theirs)); conflicts {
		t.Errorf("git stops without totals too, so that this test shows nothing:\n%s", out)
	}
	takeOurs, _ := merge(t, "--ours", ours, base, theirs)
	takeTheirs, _ := merge(t, "--theirs", ours, base, theirs)
	union, _ := merge(t, "--union", ours, base, theirs)
	all := read(limitsOf(merged))
	const mixed = "two branches" // in the message; which one is right does not show
	for _, tc := range []struct{ name, file, schema, want string }{
		{"unresolved", conflict, merged, mixed},
		{"unresolved, with CRLF", strings.ReplaceAll(conflict, "\n", "\r\n"), merged, mixed},
		{"our side of the conflict", takeOurs, merged, "raise revision to 5"},
		{"their side of the conflict", takeTheirs, merged, "raise revision to 5"},
		{"our head, all entries", total.ReplaceAllString(all, total.FindString(read(ours))), merged, mixed},
		{"their head, all entries", total.ReplaceAllString(all, total.FindString(read(theirs))), merged, mixed},
		{"both", union, merged, mixed},
		{"one side's file", read(ours), merged, "(jobs for org)"},
		{"the other side's file", read(theirs), merged, "(api for user)"},
		{"an entry by hand", strings.Replace(read(base), "jobs -old", "jobs -older", 1), numbers, mixed},
		{"no total", total.ReplaceAllString(read(base), ""), numbers, mixed},
		{"not merged", read(ours), strings.Replace(raised, user, other(user), 1), ""},
		{"raised", conflict, strings.Replace(merged, "revision: 4", "revision: 5", 1), ""},
		{"our side, raised", takeOurs, strings.Replace(merged, "revision: 4", "revision: 5", 1), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			cfg := schemaAt(t, dir, tc.schema)
			if err := os.Mkdir(filepath.Join(dir, "limits"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "limits", "limits.go"), []byte(tc.file), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := Run(cfg); (err == nil) != (tc.want == "") || err != nil &&
				!strings.Contains(err.Error(), tc.want) {
				t.Errorf("Run returned %v, want %q", err, tc.want)
			}
		})
	}
}
