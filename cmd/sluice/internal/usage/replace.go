package usage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// replaceFile replaces a file by what write writes, once that is complete. If write fails, the file is
// unchanged. A target that is no regular file, such as /dev/stdout, is written to.
func replaceFile(name string, write func(io.Writer) error) error {
	mode := fs.FileMode(0o644)
	switch info, err := os.Stat(name); {
	case err == nil && !info.Mode().IsRegular():
		file, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(file), file.Close())
	case err == nil:
		mode = info.Mode().Perm()
		if name, err = filepath.EvalSymlinks(name); err != nil { // a link is kept
			return err
		}
	}
	folder := filepath.Dir(name)
	file, err := os.CreateTemp(folder, ".sluice-*.tmp")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no folder %s: create it, or correct the path", folder)
	case err != nil:
		return err
	}
	err = errors.Join(write(file), file.Chmod(mode), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
