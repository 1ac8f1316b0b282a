package packagedoc

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the findings in testdata/broken to broken.txt")

// TestPackages holds the packages of the repository to the rules. The four that users call first are among
// those for users: the phrase in the wrong doc would end all checks of it.
func TestPackages(t *testing.T) {
	found, users, err := Check("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
	t.Logf("for users: %s", strings.Join(users, ", "))
	for _, folder := range []string{"runtime", "runtime/dynamo", "runtime/usage", "runtime/region"} {
		if !slices.Contains(users, folder) {
			t.Errorf("%s is not for users", folder)
		}
	}
}

// TestBroken shows that each rule finds what breaks it in a tree made for that, and nothing else.
func TestBroken(t *testing.T) {
	found, users, err := Check("testdata/broken")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	broken := map[string]bool{}
	for _, f := range found {
		broken[f.Rule] = true
		fmt.Fprintln(&got, f)
	}
	fmt.Fprintln(&got, "for users:", strings.Join(users, ", "))
	for _, rule := range Rules {
		if !broken[rule] {
			t.Errorf("nothing breaks %s", rule)
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
