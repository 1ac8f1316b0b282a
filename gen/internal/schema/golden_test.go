package schema

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/*/stderr.txt")

// cases returns the text of each testdata/<case>/limits.yaml.
func cases(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*/limits.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	texts := make(map[string][]byte, len(files))
	for _, f := range files {
		if texts[filepath.Base(filepath.Dir(f))], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return texts
}

// TestGolden holds what Read reports against testdata/<case>/stderr.txt, which good cases do not have.
func TestGolden(t *testing.T) {
	for name, src := range cases(t) {
		t.Run(name, func(t *testing.T) {
			_, problems := Read("limits.yaml", src)
			got := ""
			if len(problems) > 0 {
				got = problems.Error() + "\n"
			}
			golden := filepath.Join("testdata", name, "stderr.txt")
			if *update {
				if err := os.Remove(golden); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				if got != "" {
					if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("problems differ (-want +got), run go test -update if that is right:\n%s", diff)
			}
		})
	}
}

// TestEveryRuleFires holds the table of rules and the golden cases against each other.
func TestEveryRuleFires(t *testing.T) {
	fired := make(map[string]bool)
	for name, src := range cases(t) {
		_, problems := Read("limits.yaml", src)
		for _, p := range problems {
			fired[p.Rule] = true
			if !slices.ContainsFunc(Rules(), func(r Rule) bool { return r.ID == p.Rule }) {
				t.Errorf("%s: rule %s is not in Rules", name, p.Rule)
			}
		}
	}
	seen := make(map[string]bool)
	for _, r := range Rules() {
		if !fired[r.ID] {
			t.Errorf("no case in testdata fires %s", r.ID)
		}
		if seen[r.ID] || r.Purpose == "" {
			t.Errorf("rule %s stands in Rules twice, or without purpose", r.ID)
		}
		seen[r.ID] = true
	}
}
