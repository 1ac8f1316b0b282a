// Package filestore stores the regions' snapshots in a directory: to try regional sync on one machine, or for
// regions that share a file system.
//
//	snapshots, err := filestore.New(dir) // the directory must exist
//	if err != nil {
//		return nil, err
//	}
//	return snapshots, snapshots.Put(ctx, "eu-central-1/snapshot.json", []byte("{}"))
//
// A region.Sync whose Config has the [Store] as its Snapshots calls Put and Get by itself.
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

// Store is a directory. It implements region.Snapshots and region.Prober. Its methods are safe for concurrent
// use.
type Store struct{ dir string }

// New returns the store in dir, which must exist: a directory created by mistake would look like a world
// without other regions.
func New(dir string) (*Store, error) {
	const cure = "make it, or mount what the regions share"
	fail := func(what string, err error) (*Store, error) {
		return nil, &store.SetupError{What: what, Do: cure, Err: err}
	}
	switch info, err := os.Stat(dir); {
	case dir == "":
		return fail("no directory is named for the regions' snapshots", nil)
	case errors.Is(err, fs.ErrNotExist):
		return fail("there is no directory "+dir, nil)
	case err != nil:
		return fail("directory "+dir, err)
	case !info.IsDir():
		return fail(dir+" is not a directory", nil)
	}
	return &Store{dir}, nil
}

// Get returns the object last put under a name. Without one, the error is fs.ErrNotExist.
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
		// without a mount, the error must not mean that nothing was published
		if _, err := os.Stat(s.dir); err != nil {
			//nolint:errorlint // is not fs.ErrNotExist on purpose
			return nil, fmt.Errorf("%v; see to it that %s is there", err, s.dir)
		}
		return nil, fmt.Errorf("file %s: %w", file, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; make it readable for this process", err)
	}
	return object, nil
}

// Put replaces the object under a name. A reader sees the old or the new object, never a part, even after a
// crash. Once Put has returned, a power failure does not bring back the old object; with it a region would
// give again what it has given already.
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

// Probe returns the error with which Put under a name would fail. It creates an empty file beside the
// object's and removes it.
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
	return fmt.Errorf("%w; see to it that %s is there, has space, and is writable for this process", err, s.dir)
}

func (s *Store) put(file string, object []byte) error {
	if err := s.makeFolder(filepath.Dir(file)); err != nil {
		return err
	}
	return replace(file, object)
}

// makeFolder creates a region's folder if it is missing. It does not create the store's directory: if that is
// missing, an operator must see it.
func (s *Store) makeFolder(name string) error {
	switch err := os.Mkdir(name, 0o755); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return syncFolder(s.dir)
}

// file returns the file of a name. It rejects a name that leads out of the directory.
func (s *Store) file(name string) (string, error) {
	if !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fmt.Errorf("%q is not the name of an object: want region/name", name)
	}
	return filepath.Join(s.dir, filepath.FromSlash(name)), nil
}

// unfinished is the name pattern of files that are not written completely.
const unfinished = ".*.tmp"

// replace writes a file beside the one that it replaces, and renames it once it is synced to disk.
func replace(name string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(name), unfinished)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = errors.Join(file.Chmod(0o644), file.Sync()) // readable for the other regions under any user
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return syncFolder(filepath.Dir(name))
}

// syncFolder syncs the names in a folder to disk. Windows does so by itself, and rejects the call.
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
