package style

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	listFolder = flag.String("list", "", "print the findings of a `folder`, relative to the repository's root")
	update     = flag.Bool("update", false, "lower the numbers of baseline.txt to the present ones")
)

const (
	repository = "../../.."
	baseline   = "baseline.txt"
	store      = "runtime/dynamo"
)

// TestStyle holds the repository to what the baseline allows.
func TestStyle(t *testing.T) {
	found, err := Repository.Check(repository)
	if err != nil {
		t.Fatal(err)
	}
	coupled, pairs, err := Repository.Couplings(t.Context(), repository, store)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d pairs of files of %s", pairs, store)
	found = append(found, coupled...)
	Sort(found)
	counts := map[string]int{}
	for _, f := range found {
		counts[f.Rule]++
		if *listFolder != "" && f.In(*listFolder) {
			t.Log(f)
		}
	}
	allowed := readBaseline(t)
	var lines strings.Builder
	for _, rule := range Rules {
		if *update {
			allowed[rule] = min(allowed[rule], counts[rule])
		}
		if allowed[rule] > 0 {
			fmt.Fprintf(&lines, "%s %d\n", rule, allowed[rule])
		}
		if counts[rule] > allowed[rule] {
			t.Errorf("%s: %d findings, %d allowed:\n%s", rule, counts[rule], allowed[rule], byFolder(found, rule))
		}
	}
	if *update {
		if err := os.WriteFile(baseline, []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// byFolder returns the findings of a rule if they are few, or their number in each folder.
func byFolder(found []Finding, rule string) string {
	var few []string
	folders := map[string]int{}
	for _, f := range found {
		if f.Rule == rule {
			few = append(few, f.String())
			folder, _, ok := cutLast(f.Path, "/")
			if !ok {
				folder = "."
			}
			folders[folder]++
		}
	}
	if len(few) <= 20 {
		return strings.Join(few, "\n")
	}
	var lines []string
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		lines = append(lines, fmt.Sprintf("%5d %s", folders[folder], folder))
	}
	return strings.Join(lines, "\n") +
		"\nrun: go test ./internal/test/style -v -run TestStyle -args -list FOLDER"
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// readBaseline returns the number of findings allowed, by rule. It has a line for each rule that is not held
// yet.
func readBaseline(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(baseline)
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var rule string
		var n int
		if _, err := fmt.Sscan(line, &rule, &n); err != nil || !slices.Contains(Rules, rule) {
			t.Fatalf("%s: %q is not a rule and a number", baseline, line)
		}
		allowed[rule] = n
	}
	return allowed
}

// TestBroken shows that each rule finds what breaks it in a tree made for that, by smaller bounds, and
// nothing else.
func TestBroken(t *testing.T) {
	const root = "testdata/broken"
	bounds := Bounds{Columns: 110, Words: 30, Methods: 2, Package: 40, File: 20, Function: 5, Names: 2, Pairs: 1}
	found, err := bounds.Check(root)
	if err != nil {
		t.Fatal(err)
	}
	coupled, pairs, err := bounds.Couplings(t.Context(), root, store)
	if err != nil {
		t.Fatal(err)
	}
	found = append(found, coupled...)
	Sort(found)
	var got strings.Builder
	broken := map[string]bool{}
	for _, f := range found {
		broken[f.Rule] = true
		fmt.Fprintln(&got, f)
	}
	fmt.Fprintf(&got, "%d pairs of files\n", pairs)
	for _, rule := range Rules {
		if !broken[rule] {
			t.Errorf("nothing in %s breaks %s", root, rule)
		}
	}
	const golden = "testdata/broken.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// TestCamelWords splits identifiers into words.
func TestCamelWords(t *testing.T) {
	for name, want := range map[string]string{
		"charge":       "charge",
		"newCharge":    "new charge",
		"HTTPServer":   "http server",
		"newHTTP":      "new http",
		"shadow_test":  "shadow test",
		"leg2":         "leg 2",
		"retryAfterMs": "retry after ms",
		"_":            "",
	} {
		if got := strings.Join(camelWords(name), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestPrivate finds private words, but no word that only contains one, and none in its other sense.
func TestPrivate(t *testing.T) {
	for name, want := range map[string]string{
		"legs":        "legs",
		"nextLeg":     "leg",
		"legal":       "",
		"charge":      "charge",
		"chargeAll":   "",
		"floorShare":  "",
		"shareOfA":    "share",
		"maxInFlight": "",
		"flight":      "flight",
		"planeFlight": "flight",
	} {
		if got, _ := private(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
