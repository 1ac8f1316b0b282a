// Package gomod finds the module around a folder, and the workspace of this repository.
package gomod

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is the name of the file that makes a folder the root of a module.
const File = "go.mod"

// Root returns the folder itself or the nearest one above it that has a go.mod. The error matches
// fs.ErrNotExist if there is none; any other says what could not be read.
func Root(folder string) (string, error) { return nearest(folder, "module", File) }

// Workspace is Root for a go.work. This repository has one at its root, above the modules of its command and
// documents.
func Workspace(folder string) (string, error) { return nearest(folder, "workspace", "go.work") }

// nearest returns the folder itself or the nearest one above it that has a file of this name.
func nearest(folder, what, name string) (string, error) {
	dir, err := filepath.Abs(folder)
	for ; err == nil; dir = filepath.Dir(dir) {
		_, err = os.Stat(filepath.Join(dir, name))
		if err == nil {
			return dir, nil
		}
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			err = nil
		}
	}
	return "", fmt.Errorf("find the %s around %s: %w", what, folder, err)
}
