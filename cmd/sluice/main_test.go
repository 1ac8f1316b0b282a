package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluice-go/sluice/internal/test/longform"
)

// Scripts run this test binary under the name of sluice: the command as users have it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sluice": main})
}

func TestScripts(t *testing.T) {
	longform.NoRace(t, "package cli's tests run those commands that do several things at a time")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition:           long,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"appendline": appendLine, "exitcode": exitCode, "copy": copyFile,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("SLUICE_ROOT", root)
			return inheritGo(env)
		},
	})
}

// long is the condition [long]: this run is of the long form.
func long(condition string) (bool, error) {
	if condition != "long" {
		return false, fmt.Errorf("unknown condition %q", condition)
	}
	return longform.Wanted(), nil
}

// inheritGo gives scripts, which start from an empty environment, this machine's go: its caches, proxy and
// flags.
func inheritGo(env *testscript.Env) error {
	names := []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN", "GOFLAGS"}
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		return err
	}
	for i, value := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		env.Setenv(names[i], value)
	}
	return nil
}

// appendLine is `appendline FILE`: it changes a file as an edit by hand does.
func appendLine(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(ts.ReadFile(args[0])+"// drift\n"), 0o600))
}

// exitCode is `exitcode N COMMAND...`, for codes that `! exec` does not tell apart.
func exitCode(ts *testscript.TestScript, _ bool, args []string) {
	got := 0
	if failed, ok := errors.AsType[*exec.ExitError](ts.Exec(args[1], args[2:]...)); ok {
		got = failed.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// copyFile is `copy FROM TO`: cp takes no file from outside the script's folder.
func copyFile(ts *testscript.TestScript, _ bool, args []string) {
	data, err := os.ReadFile(args[0])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), data, 0o600))
}
