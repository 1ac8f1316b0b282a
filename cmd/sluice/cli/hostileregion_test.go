package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/store"
)

// TestHostileSnapshot: commands print what another region has published as Go strings unless it is plain.
// Each line that they print is their own.
func TestHostileSnapshot(t *testing.T) {
	sequential(t)
	w := newPlaces(t)
	for range 4 {
		w.cycle(45, 15)
	}
	file := filepath.Join(w.dir, w.names[0], "snapshot.json")
	object, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const evil, literal = `"a\u001b[2J\nus-east-1 live\u202e"`, `"a\x1b[2J\nus-east-1 live\u202e`
	publish := func(old, what string, times int) {
		t.Helper()
		text := strings.Replace(string(object), old, what, times)
		if text == string(object) {
			t.Fatalf("no %s in %s", old, object)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := func(shown bool, code int, out, errs string) {
		t.Helper()
		for line := range strings.Lines(out + errs) {
			if !store.IsPlain(strings.TrimSuffix(line, "\n")) || strings.HasPrefix(line, "us-east-1 live") {
				t.Errorf("printed %q", line)
			}
		}
		if shown && !strings.Contains(out+errs, literal) {
			t.Errorf("exit code %d\n%s%s\nwithout %s", code, out, errs, literal)
		}
	}
	status := func(shown bool, flags ...string) {
		t.Helper()
		code, out, errs := w.status(flags...)
		check(shown, code, out, errs)
	}
	publish(`"gpt-4"`, evil, -1) // a valid snapshot of a resource that nobody has
	status(true)
	status(true, "--entity", "user-1")
	status(false, "--json")
	publish(`"limit":"rpm",`, `"limit":"rpm","given":{`+evil+`:-1},`, 1)
	status(true)
	code, out, errs := w.sync(1, "--once")
	check(true, code, out, errs)
}
