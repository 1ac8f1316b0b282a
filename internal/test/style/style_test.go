package style

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the findings in testdata/broken to broken.txt")

const (
	repository = "../../.."
	store      = "runtime/dynamo"
)

// TestStyle holds the repository to the bounds.
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
	for _, f := range found {
		t.Error(f)
	}
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
