// Package filestore has regions publish in a directory: for trying regional sync on one machine, or where they share a file system.
package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	system "runtime"

	"github.com/sluice-go/sluice/runtime/store"
)

// Store is a directory. It implements region.Snapshots and region.Prober. Its methods are safe for concurrent use.
type Store struct{ dir string }

// New returns the store in dir, which has to be there: one that is made by mistake looks like a world without other regions.
func New(dir string) (*Store, error) {
	const cure = "make it, or mount what the regions share"
	fail := func(what string, err error) (*Store, error) {
		return nil, &store.SetupError{What: "filestore.New: " + what, Do: cure, Err: err}
	}
	switch info, err := os.Stat(dir); {
	case dir == "":
		return fail("no directory is named", nil)
	case errors.Is(err, fs.ErrNotExist):
		return fail("there is no directory "+dir, nil)
	case err != nil:
		return fail("directory "+dir, err)
	case !info.IsDir():
		return fail(dir+" is no directory", nil)
	}
	return &Store{dir}, nil
}

// Get returns what was last put under a name, an error that is fs.ErrNotExist where that is nothing.
func (s *Store) Get(ctx context.Context, name string) ([]byte, error) {
	file, err := s.file(name)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	object, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(s.dir); err != nil { // where nothing is mounted, nobody is to be told that nothing was published
			return nil, fmt.Errorf("%v; see to it that %s is there", err, s.dir) //nolint:errorlint // is not fs.ErrNotExist on purpose
		}
		return nil, fmt.Errorf("file %s: %w", file, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; make it readable for who runs this", err)
	}
	return object, nil
}

// Put puts object in place of what is under a name. A reader sees the one or the other, never a part, whatever breaks off; once Put
// has returned, a power failure does not bring back the old one, by which a region would hand over twice what it has handed over.
func (s *Store) Put(ctx context.Context, name string, object []byte) error {
	file, err := s.file(name)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	return s.explain(s.put(file, object))
}

// Probe returns why Put under a name would fail, by writing a file of no length beside it, which it removes again.
func (s *Store) Probe(ctx context.Context, name string) error {
	file, err := s.file(name)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	return s.explain(s.probe(file))
}

func (s *Store) probe(name string) error {
	if err := s.makeFolder(filepath.Dir(name)); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(name), unfinished)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// explain adds to the error of a write what to do.
func (s *Store) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; see to it that %s is there, has space, and is writable for who runs this", err, s.dir)
}

func (s *Store) put(file string, object []byte) error {
	if err := s.makeFolder(filepath.Dir(file)); err != nil {
		return err
	}
	return replace(file, object)
}

// makeFolder makes a region's folder where it lacks. It does not make the directory: that it is gone is for people to see.
func (s *Store) makeFolder(name string) error {
	switch err := os.Mkdir(name, 0o755); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return syncFolder(s.dir)
}

// file returns where a name is. One that leads out of the directory is refused.
func (s *Store) file(name string) (string, error) {
	if !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fmt.Errorf("%q is no name of an object: want region/name", name)
	}
	return filepath.Join(s.dir, filepath.FromSlash(name)), nil
}

// unfinished is the pattern of names that files have until they are whole.
const unfinished = ".*.tmp"

// replace writes a file beside the one that it replaces, and gives it that one's name once the disk has all of it.
func replace(name string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(name), unfinished)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = errors.Join(file.Chmod(0o644), file.Sync()) // readable for the other regions, whoever runs them
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return syncFolder(filepath.Dir(name))
}

// syncFolder has the disk know the names in a folder. Windows sees to that by itself, and refuses to be told.
func syncFolder(name string) error {
	if system.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
