package initialize

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCommand: the line that generates runs the same version for everybody, where there is one.
func TestCommand(t *testing.T) {
	without, with := t.TempDir(), t.TempDir()
	for dir, mod := range map[string]string{without: "module a\n", with: "module a\n\ntool " + tool + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ dir, published, want string }{
		{without, "v0.1.0", "go run github.com/sluice-go/sluice/cmd/sluice@v0.1.0"},
		{without, "", "sluice"},
		{with, "v0.1.0", "go tool sluice"},
		{with, "", "go tool sluice"},
	} {
		if got, err := command(test.dir, test.published); got != test.want || err != nil {
			t.Errorf("%s of a module in %s: %q, %v; want %q", test.published, test.dir, got, err, test.want)
		}
	}
}
