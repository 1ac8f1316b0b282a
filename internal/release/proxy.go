package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// proxy writes the files that `go help goproxy` describes: for each released module its go.mod, its zip and
// its .info. It takes the files that git tracks, as they are on disk. With untracked it also takes those that
// git does not ignore.
type proxy struct {
	root, version, dir string
	untracked          bool
}

func (p proxy) write(ctx context.Context) error {
	if err := checkVersion(p.version); err != nil {
		return err
	}
	args := []string{"git", "ls-files", "-z", "--cached"}
	if p.untracked {
		args = append(args, "--others", "--exclude-standard")
	}
	out, err := command(ctx, p.root, args...)
	if err != nil {
		return err
	}
	listed := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for _, dir := range released {
		if err := p.module(dir, listed); err != nil {
			return fmt.Errorf("the module in %s: %w", dir, err)
		}
	}
	return nil
}

// module writes a module's files.
func (p proxy) module(dir string, listed []string) error {
	mod, err := os.ReadFile(filepath.Join(p.root, dir, "go.mod"))
	if err != nil {
		return err
	}
	if mod, err = withVersions(path.Join(dir, "go.mod"), mod, p.version); err != nil {
		return err
	}
	files := p.files(dir, listed, mod)
	id := module.Version{Path: modulePath(dir), Version: p.version}
	var archive bytes.Buffer
	if err := zip.Create(&archive, id, files); err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{p.version, time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	escaped, err := module.EscapePath(id.Path)
	if err != nil {
		return err
	}
	at := filepath.Join(p.dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	for suffix, text := range map[string][]byte{".info": info, ".mod": mod, ".zip": archive.Bytes()} {
		if err := os.WriteFile(filepath.Join(at, p.version+suffix), text, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(at, "list"), []byte(p.version+"\n"), 0o644)
}

// files returns what belongs to the module in a folder: what is listed below it, except nested modules. A
// nested module gets the license of the root, as the go command does it.
func (p proxy) files(dir string, listed []string, mod []byte) []zip.File {
	var nested []string
	for _, name := range listed {
		if at := path.Dir(name); path.Base(name) == "go.mod" && at != dir {
			nested = append(nested, at)
		}
	}
	var all []zip.File
	for _, name := range listed {
		relative, inside := strings.CutPrefix(name, dir+"/")
		if dir == "." {
			relative, inside = name, true
		}
		apart := slices.ContainsFunc(nested, func(n string) bool {
			return strings.HasPrefix(name, n+"/") && (dir == "." || strings.HasPrefix(n, dir+"/"))
		})
		switch {
		case name == "LICENSE" && dir != ".":
			all = append(all, file{name: name, disk: filepath.Join(p.root, name)})
		case !inside || apart:
		case relative == "go.mod":
			all = append(all, file{name: relative, disk: filepath.Join(p.root, name), text: mod})
		default:
			all = append(all, file{name: relative, disk: filepath.Join(p.root, name)})
		}
	}
	return all
}

// file is one of a module, as it is on disk or with another text.
type file struct {
	name, disk string
	text       []byte
}

// Path implements zip.File.
func (f file) Path() string { return f.name }

// Lstat implements zip.File.
func (f file) Lstat() (os.FileInfo, error) {
	info, err := os.Lstat(f.disk)
	if err != nil || f.text == nil {
		return info, err
	}
	return sized{info, int64(len(f.text))}, nil
}

// Open implements zip.File.
func (f file) Open() (io.ReadCloser, error) {
	if f.text != nil {
		return io.NopCloser(bytes.NewReader(f.text)), nil
	}
	return os.Open(f.disk)
}

// sized is a file's information with another size.
type sized struct {
	os.FileInfo
	size int64
}

// Size implements fs.FileInfo.
func (s sized) Size() int64 { return s.size }
