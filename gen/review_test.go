package gen

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/gen/internal/review"
)

// document is the review's among the files of r.
func document(t *testing.T, r *Result) File {
	t.Helper()
	i := slices.IndexFunc(r.Files, func(f File) bool { return filepath.Base(f.Path) == review.File })
	if i < 0 {
		t.Fatalf("there is no %s", review.File)
	}
	return r.Files[i]
}

// changed returns the lines of the review's document that a change of a schema takes away and adds.
func changed(t *testing.T, schema string, replace ...string) []string {
	t.Helper()
	dir := t.TempDir()
	schemaAt(t, dir, schema)
	generate(t, dir)
	r, err := Run(schemaAt(t, dir, strings.NewReplacer(append(replace, "revision: 3",
		"revision: 4")...).Replace(schema)))
	if err != nil {
		t.Fatal(err)
	}
	f := document(t, r)
	var lines []string
	for line := range strings.Lines(udiff.Unified("", "", string(f.Present), string(f.Data))) {
		if line = strings.TrimSuffix(line, "\n"); line[0] == '-' && line != "--- " || line[0] == '+' &&
			line != "+++ " {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestReviewChange: the document's diff is what a change of the schema changes, and nothing else.
func TestReviewChange(t *testing.T) {
	for _, tc := range []struct {
		name    string
		replace []string
		want    []string
	}{
		{"revision", nil, nil},
		{"capacity", []string{"rps: {capacity: 20}", "rps: {capacity: 25, burst: 50}"}, []string{
			"-| org | `rps` | 20 per second: 1 token every 50 ms, empty to full in 1 s |",
			"+| org | `rps` | 25 per second, burst 50: 1 token every 40 ms, empty to full in 2 s |",
			"-| org | 351 | 383 | with ids of 250 bytes or 9 more limits |",
			"+| org | 353 | 385 | with ids of 250 bytes or 9 more limits |",
		}},
		{"longer number", []string{"rpd: {capacity: 100,", "rpd: {capacity: 123,"}, []string{
			"-| user | `rpd` | 100 per day: 1 token every 14.4 min, empty to full in 24 h |",
			"+| user | `rpd` | 123 per day: 1 token about every 11.7 min, empty to full in 24 h |",
			"-| org | `rpd` | 100 per day: 1 token every 14.4 min, empty to full in 24 h |",
			"+| org | `rpd` | 123 per day: 1 token about every 11.7 min, empty to full in 24 h |",
			"-| user | 354 | 386 | with ids of 249 bytes or 9 more limits |",
			"-| org | 351 | 383 | with ids of 250 bytes or 9 more limits |",
			"+| user | 358 | 389 | with ids of 248 bytes or 9 more limits |",
			"+| org | 355 | 386 | with ids of 249 bytes or 9 more limits |",
		}},
		{"number of as many digits", []string{"every: 1m, per_call", "every: 2m, per_call"}, []string{
			"-| org | `rpm` | 5 per minute: 1 token every 12 s, empty to full in 60 s | 1 |",
			"+| org | `rpm` | 5 per 2 minutes: 1 token every 24 s, empty to full in 2 min | 1 |",
		}},
		{"per_call", []string{"per_call: 1", "per_call: 2"}, []string{
			"-| org | `rpm` | 5 per minute: 1 token every 12 s, empty to full in 60 s | 1 |",
			"+| org | `rpm` | 5 per minute: 1 token every 12 s, empty to full in 60 s | 2 |",
		}},
		{"no per_call", []string{", per_call: 1", ""}, []string{
			"-| bucket of | limit | allows | per_call |",
			"-|---|---|---|--:|",
			"-| org | `rpm` | 5 per minute: 1 token every 12 s, empty to full in 60 s | 1 |",
			"+| bucket of | limit | allows |",
			"+|---|---|---|",
			"+| org | `rpm` | 5 per minute: 1 token every 12 s, empty to full in 60 s |",
		}},
		{"on_unavailable", []string{"    removed: [old]", "    removed: [old]\n    on_unavailable: deny"}, []string{
			"-- `on_unavailable: allow`: while the store does not answer, calls are admitted.",
			"+- `on_unavailable: deny`: while the store does not answer, calls fail with an `UnavailableError`.",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, changed(t, numbers, tc.replace...)); diff != "" {
				t.Errorf("the document's diff is another one (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReviewApart: what is new in one resource changes no line of another, and a new resource takes no line
// away.
func TestReviewApart(t *testing.T) {
	for _, line := range changed(t, numbers, "limits: {rpm:", "limits: {rph: {capacity: 9, every: 1h}, rpm:") {
		if strings.Contains(line, "rps") || strings.Contains(line, "rpd") {
			t.Errorf("a new limit of jobs changes a line of api: %s", line)
		}
	}
	added := changed(t, numbers, "  jobs:\n",
		"  mail:\n    limits: {rps: {capacity: 1, every: 1s}}\n    entities: {user: {}}\n  jobs:\n")
	if len(added) == 0 {
		t.Error("a new resource adds no line")
	}
	for _, line := range added {
		if line[0] == '-' {
			t.Errorf("a new resource takes away the line %s", line)
		}
	}
}

// TestReviewRemoved: removed limits are named in the document, and the code REMOVEs them.
func TestReviewRemoved(t *testing.T) {
	dir := t.TempDir()
	r, err := Run(schemaAt(t, dir, numbers))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(); err != nil {
		t.Fatal(err)
	}
	files := tree(t, filepath.Dir(document(t, r).Path))
	for name, want := range map[string]string{
		review.File: "\n- `old` is removed: reshape drops what buckets still hold of it.\n",
		"jobs_dynamodb.go": "\nREMOVE b_old_tk, b_old_cp, b_old_bx, b_old_ra, b_old_rp, b_old_tc, " +
			"b_old_we, b_old_h0, b_old_h1, b_old_e`\n",
	} {
		if strings.Count(files[name], want) != 1 {
			t.Errorf("%s does not have once %q", name, want)
		}
	}
}

// TestReviewStale: a generated document is stale if the schema gives none, and any other document is not.
func TestReviewStale(t *testing.T) {
	for text, stale := range map[string]bool{
		review.Header + "\n":           true,
		review.Header + "\r\nedited\n": true,
		"# What I run\n":               false,
		"":                             false,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, review.File)
		write(t, path, text)
		r := &Result{}
		if err := r.compare(dir, dir); err != nil {
			t.Fatal(err)
		}
		if got := len(r.Stale) == 1 && r.Stale[0].Path == path; got != stale {
			t.Errorf("%q is stale: %v, want %v", text, got, stale)
		}
		if err := r.Write(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); os.IsNotExist(err) != stale {
			t.Errorf("%q is gone: %v, want %v", text, !stale, stale)
		}
	}
}
