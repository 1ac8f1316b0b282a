// Package crossbuild builds the programs of this repository for machines other than this one.
package crossbuild

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sluice-go/sluice/internal/test/longform"
)

// Lambda builds the program in the working directory as a Lambda function on arm64. With an empty cache this
// compiles the whole AWS SDK for a second machine. The usual form therefore resolves the program's imports
// for that machine only.
func Lambda(t *testing.T) {
	t.Helper()
	args := []string{"list", "-deps", "-tags", "lambda.norpc", "."}
	if longform.Wanted() {
		args = []string{"build", "-tags", "lambda.norpc", "-o", filepath.Join(t.TempDir(), "bootstrap"), "."}
	} else {
		t.Attr(longform.Attribute, "the build itself; its imports are resolved")
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %v: %v\n%s", args, err, out)
	}
}
