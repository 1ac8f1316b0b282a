package gen

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	_ "embed" // for the starter
)

//go:embed starter.yaml
var starter []byte

// Init writes a starter limits.yaml to dir, and beside it sluice.go with the go:generate line, and returns their paths.
// It overwrites nothing: if either is there, it fails and writes neither.
func Init(dir string) ([]string, error) {
	pkg, err := packageIn(dir)
	if err != nil {
		return nil, err
	}
	files := []File{
		{Path: filepath.Join(dir, "limits.yaml"), Data: starter},
		{Path: filepath.Join(dir, "sluice.go"), Data: fmt.Appendf(nil, "package %s\n\n//go:generate go tool sluice generate\n", pkg)},
	}
	var paths []string
	for _, f := range files {
		if _, err := os.Lstat(f.Path); err == nil {
			return nil, fmt.Errorf("%s is there already: init overwrites nothing", f.Path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		paths = append(paths, f.Path)
	}
	return paths, (&Result{Files: files}).Write()
}

// packageIn returns the name of dir's package: the one that its files have, or else one made from its own name.
func packageIn(dir string) (string, error) {
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly)
		if err != nil {
			return "", fmt.Errorf("find the package's name: %w", err)
		}
		return f.Name.Name, nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	name := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return -1
	}, strings.ToLower(filepath.Base(abs)))
	name = strings.TrimLeft(name, "0123456789")
	if name == "" || token.IsKeyword(name) {
		name = "main"
	}
	return name, nil
}
