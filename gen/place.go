package gen

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/emit"
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/internal/tool/gomod"
)

// checkInside returns a problem if out is outside of the module around folder, the schema's. Symbolic links
// are resolved before: a schema from elsewhere does not write to any folder of this machine. Without a module
// around the schema, out is in its folder or in a module.
func checkInside(s *schema.Schema, folder, out string) (problems Problems, err error) {
	if folder, err = resolve(folder); err != nil {
		return nil, err
	}
	at, err := resolve(out)
	if err != nil {
		return nil, err
	}
	root, err := gomod.Root(folder)
	none := errors.Is(err, fs.ErrNotExist)
	if none {
		root, err = folder, nil
	}
	if err != nil {
		return nil, err
	}
	if to, err := filepath.Rel(root, at); err == nil && filepath.IsLocal(to) {
		return nil, nil
	}
	if !none {
		problems.Add(s.OutPos, schema.RuleOutPath, "out %q is outside of the module around this file: write a "+
			"folder inside it, such as ./limits, or move this file to the module that has the folder", s.Out)
		return problems, nil
	}
	if _, err := gomod.Root(at); errors.Is(err, fs.ErrNotExist) {
		problems.Add(s.OutPos, schema.RuleOutPath, "out %q is in no module: write a folder of one, or one below "+
			"this file's, such as ./limits", s.Out)
		return problems, nil
	}
	return nil, nil
}

// resolve returns path as an absolute one without symbolic links. Folders at its end need not exist yet.
func resolve(path string) (string, error) {
	at, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	missing := ""
	for {
		target, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(target, missing), nil
		}
		if exists(at) { // a link to nothing, or in a circle
			return "", fmt.Errorf("resolve the folder to generate into: %w", err)
		}
		at, missing = filepath.Dir(at), filepath.Join(filepath.Base(at), missing)
	}
}

// checkPlace fails if out is a folder of another package, or if the schema has generated another folder. A
// package left behind would still be built, and its digests would not be compared.
func checkPlace(schemaFile, out, pkg string) error {
	switch info, err := os.Stat(out); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("look at the folder to generate into, which go.out names: %w", err)
	case !info.IsDir():
		return fmt.Errorf("%s is in the way: it is a file, and the folder to generate into; move it, or set "+
			"go.out to another folder", out)
	default:
		name, file, err := packageIn(out, isOurs)
		if err != nil {
			return err
		}
		if file != "" && name != pkg {
			return fmt.Errorf("%s is of package %s, and package %s cannot be generated beside it: set go.out to "+
				"another folder", file, name, pkg)
		}
	}

	source := filepath.Base(schemaFile)
	limits := filepath.Join(out, emit.LimitsFile)
	switch was, err := sourceOf(limits); {
	case err != nil:
		return fmt.Errorf("look for what is generated already: %w", err)
	case was == source:
		return nil
	case was != "":
		return fmt.Errorf("%s was generated from %s: set go.out to another folder; if %s is its new name, write "+
			"that into %s (%s%s)",
			limits, was, source, limits, emit.SourcePrefix, source)
	}
	old, err := generatedFrom(schemaFile)
	if err != nil {
		return fmt.Errorf("look for what is generated already: %w", err)
	}
	if old != "" {
		return fmt.Errorf("%s was generated from this file, which now gives %s: move it (git mv %s %s) or remove "+
			"it", old, out, old, out)
	}
	return nil
}

// generatedFrom returns the folder below the schema's that was generated from it, "" if there is none. It
// skips folders that the go command or git ignores, other modules, and folders that have a schema of the same
// name.
func generatedFrom(schemaFile string) (string, error) {
	root, source := filepath.Split(schemaFile)
	root = filepath.Clean(root)
	var found string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && path == root:
			return err
		case err != nil: // a folder that cannot be read was not written by us
			return fs.SkipDir
		case !e.IsDir():
			return nil
		case path != root && (ignored(e.Name()) || exists(filepath.Join(path, "go.mod")) ||
			exists(filepath.Join(path, source))):
			return fs.SkipDir
		}
		was, err := sourceOf(filepath.Join(path, emit.LimitsFile))
		if err == nil && was == source {
			found = path
			return fs.SkipAll
		}
		return nil
	})
	return found, err
}

func ignored(folder string) bool {
	return strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_") ||
		folder == "vendor" || folder == "node_modules" || folder == "testdata"
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// isOurs reports whether the Go file at path was generated.
func isOurs(path string) bool {
	src, err := os.ReadFile(path)
	return err == nil && ours(path, src)
}

// sourceOf returns the schema's name in a generated file. It is "" if there is no such file, or it was not
// generated.
func sourceOf(path string) (string, error) {
	src, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil || !ours(path, src) {
		return "", err
	}
	_, rest, _ := bytes.Cut(src, []byte("\n"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	name, _ := strings.CutPrefix(strings.TrimRight(string(line), "\r"), emit.SourcePrefix)
	return name, nil
}
