package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"release": main})
}

// TestScripts plays what users do with a version, and what the maintainers do to make one.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the modules as users do")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	version, env := publish(t, root)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(name string) (bool, error) {
			if name != "long" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return os.Getenv("SLUICE_TEST") == "long", nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"modules": modules},
		Setup: func(e *testscript.Env) error {
			e.Setenv("ROOT", root)
			e.Setenv("VERSION", version)
			e.Setenv("HOME", e.WorkDir)
			for _, v := range env {
				name, value, _ := strings.Cut(v, "=")
				e.Setenv(name, value)
			}
			return nil
		},
	})
}

// publish writes a proxy of this tree, and returns the tree's version and an environment that finds it. Other
// modules come from the usual cache, compiled as they are. The version is one that is never published. It
// leaves the cache when the test ends.
func publish(t *testing.T, root string) (version string, env []string) {
	t.Helper()
	version = "v0.0.0-tree.h" + treeHash(t, root)
	dir := t.TempDir()
	p := proxy{root: root, version: version, dir: dir, untracked: true}
	if err := p.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := command(t.Context(), root, "go", "env", "GOCACHE", "GOMODCACHE", "GOTOOLCHAIN", "GOPROXY")
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Split(out, "\n")
	t.Cleanup(func() { uncache(t, found[1], version) })
	return version, []string{"GOCACHE=" + found[0], "GOMODCACHE=" + found[1], "GOTOOLCHAIN=" + found[2],
		"GOPROXY=" + fileURL(dir) + "," + found[3], "GONOSUMDB=" + rootPath, "GOFLAGS=-modcacherw", "GOWORK=off"}
}

// treeHash hashes what the modules consist of.
func treeHash(t *testing.T, root string) string {
	t.Helper()
	out, err := command(t.Context(), root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	for name := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(fmt.Appendf(nil, "%s %d\n%s", name, len(data), data))
	}
	return fmt.Sprintf("%x", sum.Sum(nil))[:12]
}

// uncache removes a version of our modules from a cache.
func uncache(t *testing.T, cache, version string) {
	t.Helper()
	at := filepath.Join(cache, filepath.FromSlash(rootPath))
	for _, dir := range released {
		name := filepath.Join(at, dir)
		if err := os.RemoveAll(name + "@" + version); err != nil {
			t.Error(err)
		}
		found, err := filepath.Glob(filepath.Join(cache, "cache", "download", rootPath, dir, "@v", version+".*"))
		if err != nil {
			t.Error(err)
		}
		for _, f := range found {
			if err := os.Remove(f); err != nil {
				t.Error(err)
			}
		}
	}
}

// modules is `modules MOST`: the go.mod lists at most that many modules, and replaces none.
func modules(ts *testscript.TestScript, _ bool, args []string) {
	var most int
	if _, err := fmt.Sscan(args[0], &most); err != nil {
		ts.Fatalf("%v", err)
	}
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = ts.Getenv("WORK")
	out, err := cmd.Output()
	ts.Check(err)
	n := strings.Count(string(out), `"Path":`) - 1 // the module's own
	ts.Logf("%d modules", n)
	if n > most || strings.Contains(string(out), `"New":`) {
		ts.Fatalf("%d modules, want at most %d and no replace line:\n%s", n, most, out)
	}
}
