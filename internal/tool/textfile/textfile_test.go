package textfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestRead: a file of the most bytes is read, and one of a byte more is refused, as is a file without end.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	for _, size := range []int{0, 1, most} {
		want := bytes.Repeat([]byte("x"), size)
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: read %d, %v", size, len(got), err)
		}
	}
	if err := os.Truncate(path, most+1); err != nil {
		t.Fatal(err)
	}
	endless := []string{path}
	if _, err := os.Stat("/dev/zero"); err == nil {
		endless = append(endless, "/dev/zero")
	}
	for _, path := range endless {
		want := path + " has more than 16 MiB: check that it is the file that is meant, or split it"
		if got, err := Read(path); got != nil || err == nil || err.Error() != want {
			t.Errorf("%s: %d bytes, %v; want %s", path, len(got), err, want)
		}
	}
	if _, err := Read(path + ".none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
