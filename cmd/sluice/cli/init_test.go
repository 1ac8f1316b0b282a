package cli_test

import (
	"os"
	"strings"
	"testing"
)

// TestInitInProc: a folder that cannot be created is no missing parent.
func TestInitInProc(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("no /proc on this system")
	}
	code, out, errs := command(t.Context(), "init", "/proc/foo")
	const want = "sluice: init /proc/foo: the folder cannot be created in /proc: choose one in which this " +
		"user may create folders: "
	if code != 1 || out != "" || !strings.HasPrefix(errs, want) {
		t.Errorf("exit code %d\n%s%s\nwant %s", code, out, errs, want)
	}
}

// TestEchoed: numbers are echoed as they were typed.
func TestEchoed(t *testing.T) {
	for args, want := range map[string]string{
		"load --rate 99999999999999": "--rate 99999999999999 is out of",
		"override set user-1 gpt-4 rpm=99999999999999 --endpoint http://[::1]": "capacity 99999999999999 is above",
	} {
		code, out, errs := sluice(t, start, append(strings.Fields(args), "--file", demo)...)
		if code != 2 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d\n%s%s\nwant %s", args, code, out, errs, want)
		}
	}
}
