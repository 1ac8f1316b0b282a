package usage

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestReplaceFile: a file is as it was or as it is to be, never half, and nothing is left beside it.
func TestReplaceFile(t *testing.T) {
	folder := t.TempDir()
	name, link := filepath.Join(folder, "chart.svg"), filepath.Join(folder, "link.svg")
	if err := os.Symlink("chart.svg", link); err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	for _, at := range []struct {
		name, text string
		fails      error
		want       string
	}{
		{name, "old", nil, "old"},
		{name, "half of", full, "old"},
		{link, "half of", full, "old"},
		{link, "new", nil, "new"},
	} {
		if err := replaceFile(at.name, func(w io.Writer) error {
			_, err := io.WriteString(w, at.text)
			return errors.Join(err, at.fails)
		}); !errors.Is(err, at.fails) {
			t.Errorf("%q: got %v", at.text, err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != at.want {
			t.Errorf("after %q: %q, %v", at.text, got, err)
		}
	}
	if err := replaceFile(os.DevNull, func(w io.Writer) error {
		_, err := io.WriteString(w, "gone")
		return err
	}); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link: %v, %v", info, err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 2 {
		t.Errorf("left: %v, %v", left, err)
	}
}
