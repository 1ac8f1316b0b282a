package nocompile

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/errors.txt anew")

// TestErrors builds every program of testdata and compares the compiler's messages.
func TestErrors(t *testing.T) {
	programs, err := filepath.Glob("testdata/*/x.go")
	if err != nil || len(programs) == 0 {
		t.Fatal("no programs:", err)
	}
	args := []string{"build", "-gcflags=-e"}
	for _, p := range programs {
		args = append(args, "./"+filepath.ToSlash(filepath.Dir(p)))
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	if err == nil {
		t.Fatal("everything compiles")
	}
	const golden = "testdata/errors.txt"
	if *update {
		var sorted bytes.Buffer
		by := sections(out)
		for _, pkg := range slices.Sorted(maps.Keys(by)) {
			sorted.WriteString("# " + pkg + "\n" + by[pkg])
		}
		if err := os.WriteFile(golden, sorted.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sections(want), sections(out)); diff != "" {
		t.Errorf("messages (-want +got), run go test -update ./internal/test/nocompile if they are as good:\n%s",
			diff)
	}
	for _, p := range programs {
		name := filepath.Base(filepath.Dir(p))
		refused := bytes.Contains(out, []byte("testdata/"+name+"/x.go:"))
		if refused == (name == "accepted") {
			t.Errorf("%s: refused is %v", name, refused)
		}
	}
}

// sections splits the go command's output by package: it builds them in any order.
func sections(out []byte) map[string]string {
	by := map[string]string{}
	for section := range strings.SplitSeq(string(out), "# ") {
		if pkg, text, ok := strings.Cut(section, "\n"); ok {
			by[pkg] = text
		}
	}
	return by
}
