package filestore_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/region/filestore"
)

var (
	_ region.Snapshots = (*filestore.Store)(nil)
	_ region.Prober    = (*filestore.Store)(nil)
)

const name = "eu-west-1/snapshot.json"

func open(t *testing.T, dir string) *filestore.Store {
	t.Helper()
	s, err := filestore.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPutAndGet: what is read is what was put last, by whichever Store, and nothing else stays in the folder.
func TestPutAndGet(t *testing.T) {
	dir := t.TempDir()
	here, there := open(t, dir), open(t, dir)
	if _, err := there.Get(t.Context(), name); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), filepath.Join(dir, name)) {
		t.Errorf("before the first put: %v", err)
	}
	for _, text := range []string{"one", "another", ""} {
		if err := here.Put(t.Context(), name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := there.Get(t.Context(), name); err != nil || string(got) != text {
			t.Errorf("after %q: %q, %v", text, got, err)
		}
	}
	files, err := os.ReadDir(filepath.Join(dir, "eu-west-1"))
	if err != nil || len(files) != 1 {
		t.Fatalf("left: %v, %v", files, err)
	}
	if info, err := files[0].Info(); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v: the other regions may be run by others", info.Mode(), err)
	}
}

// TestProbe: what Put would fail for is said beforehand, and what is there stays.
func TestProbe(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for range 2 {
		if err := s.Probe(t.Context(), name); err != nil {
			t.Error(err)
		}
		if files, err := os.ReadDir(filepath.Join(dir, "eu-west-1")); err != nil || len(files) > 1 ||
			len(files) == 1 && files[0].Name() != "snapshot.json" {
			t.Errorf("left: %v, %v", files, err)
		}
		if err := s.Put(t.Context(), name, []byte("text")); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Get(t.Context(), name); err != nil || string(got) != "text" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "us-east-1"), nil, 0o600); err != nil { // no folder
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for what, err := range map[string]error{
		"writable for this process":                      s.Probe(t.Context(), "us-east-1/snapshot.json"),
		"is not the name of an object: want region/name": s.Probe(t.Context(), "../snapshot.json"),
		"context canceled":                               s.Probe(ended, name),
	} {
		if err == nil || !strings.HasSuffix(err.Error(), what) {
			t.Errorf("%v, want %s", err, what)
		}
	}
}

// TestNeverHalf: a read during a write returns the old object or the new one, whole. The control is a
// writer in place.
func TestNeverHalf(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	objects := []string{strings.Repeat("a", 1<<16), strings.Repeat("b", 1<<17)}
	half := func() bool {
		got, err := s.Get(t.Context(), name)
		return err != nil || string(got) != objects[0] && string(got) != objects[1]
	}
	put := func(i int) {
		if err := s.Put(t.Context(), name, []byte(objects[i%2])); err != nil {
			t.Error(err)
		}
	}
	put(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			put(i)
		}
	}()
	for writing := true; writing; {
		if half() {
			t.Error("a read was of no whole object")
		}
		select {
		case <-done:
			writing = false
		default:
		}
	}

	if half() {
		t.Error("after the last put there is no whole object")
	}
	// as one that has not written all yet
	if err := os.WriteFile(filepath.Join(dir, name), []byte(objects[0][1:]), 0o600); err != nil {
		t.Fatal(err)
	}
	if !half() {
		t.Error("nobody noticed a part of an object")
	}
}

// TestMistakes: each names the place and what to do, and leaves what was there.
func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const cure = " | make it, or mount what the regions share"
	for at, want := range map[string]string{
		"":                       "setup: no directory is named for the regions' snapshots" + cure,
		filepath.Join(dir, "no"): "setup: there is no directory " + filepath.Join(dir, "no") + cure,
		file:                     "setup: " + file + " is not a directory" + cure,
		filepath.Join(file, "no"): "setup: directory " + filepath.Join(file, "no") + " | stat " +
			filepath.Join(file, "no") + ": not a directory" + cure,
	} {
		s, err := filestore.New(at)
		if errtext.Of(err) != want || s != nil {
			t.Errorf("%q: %v\nwant %s", at, err, want)
		}
	}
	s := open(t, dir)
	for _, bad := range []string{"../snapshot.json", "/etc/snapshot.json", "", "eu/../../x", "eu//x"} {
		want := `is not the name of an object: want region/name`
		if err := s.Put(t.Context(), bad, nil); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("put %q: %v", bad, err)
		}
		if _, err := s.Get(t.Context(), bad); err == nil || !strings.HasSuffix(err.Error(), want) ||
			errors.Is(err, fs.ErrNotExist) {
			t.Errorf("get %q: %v", bad, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Put(ended, name, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("put after the end: %v", err)
	}
	if _, err := s.Get(ended, name); !errors.Is(err, context.Canceled) {
		t.Errorf("get after the end: %v", err)
	}

	removed := filepath.Join(t.TempDir(), "mounted")
	if err := os.Mkdir(removed, 0o755); err != nil {
		t.Fatal(err)
	}
	s = open(t, removed)
	if err := os.Remove(removed); err != nil {
		t.Fatal(err)
	}
	err := s.Put(t.Context(), name, []byte("x"))
	if want := "mkdir " + filepath.Join(removed, "eu-west-1") + ": no such file or directory; see to it that " +
		removed +
		" is there, has space, and is writable for this process"; err == nil || err.Error() != want {
		t.Errorf("put where the directory is removed: %v\nwant %s", err, want)
	}
	_, err = s.Get(t.Context(), name)
	if want := "stat " + removed + ": no such file or directory; see to it that " + removed +
		" is there"; err == nil || err.Error() != want ||
		errors.Is(err, fs.ErrNotExist) {
		t.Errorf("get where the directory is removed: %v\nwant %s", err, want)
	}

	// A failure to write the new file leaves the old one, and nothing beside it.
	s = open(t, dir)
	if err := os.MkdirAll(filepath.Join(dir, name, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), name, []byte("x")); err == nil ||
		!strings.Contains(err.Error(), filepath.Join(dir, name)) {
		t.Errorf("put over a folder: %v", err)
	}
	if _, err := s.Get(t.Context(), name); err == nil || errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), filepath.Join(dir, name)) {
		t.Errorf("get of a folder: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "eu-west-1")); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}
