package gomod_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluice-go/sluice/internal/tool/gomod"
)

func TestRoot(t *testing.T) {
	outer := t.TempDir()
	inner := filepath.Join(outer, "a", "b")
	if err := os.MkdirAll(filepath.Join(inner, "c"), 0o777); err != nil {
		t.Fatal(err)
	}
	if got, err := gomod.Root(inner); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a go.mod: %q, %v", got, err)
	}
	for _, root := range []string{outer, inner} { // the nearest counts
		if err := os.WriteFile(filepath.Join(root, gomod.File), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		for _, folder := range []string{inner, filepath.Join(inner, "c"), filepath.Join(inner, "missing")} {
			if got, err := gomod.Root(folder); err != nil || got != root {
				t.Errorf("of %s: %q, %v; want %q", folder, got, err, root)
			}
		}
	}
}
