package gen

import (
	"errors"
	"fmt"
	"go/build"
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

// Init writes a starter limits.yaml to dir, and beside it sluice.go with the go:generate line. It returns
// their paths. If either exists, Init fails and writes neither.
func Init(dir string) ([]string, error) {
	pkg, _, err := packageIn(dir, func(string) bool { return false })
	if err != nil {
		return nil, err
	}
	if pkg == "" {
		if pkg, err = packageOf(dir); err != nil {
			return nil, err
		}
	}
	files := []File{
		{Path: filepath.Join(dir, "limits.yaml"), Data: starter},
		{Path: filepath.Join(dir, "sluice.go"), Data: fmt.Appendf(nil,
			"package %s\n\n//go:generate go tool sluice generate\n", pkg)},
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

// packageIn returns the name of dir's package and a file that declares it, or "" and "" if there is none. It
// ignores tests, files that build constraints exclude, and those to skip.
func packageIn(dir string, skip func(path string) bool) (name, file string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", "", fmt.Errorf("find the package's name: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || e.IsDir() || skip(path) {
			continue
		}
		built, err := build.Default.MatchFile(dir, e.Name())
		if err != nil {
			return "", "", fmt.Errorf("find the package's name: %w", err)
		}
		if !built {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly)
		if err != nil {
			return "", "", fmt.Errorf("find the package's name: %w", err)
		}
		return f.Name.Name, path, nil
	}
	return "", "", nil
}

// packageOf makes a package's name of that of its folder. It is limits if that name could not be imported.
func packageOf(dir string) (string, error) {
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
	switch {
	case name == "", token.IsKeyword(name):
	case name == "main", name == "init": // not to be imported
	case name == "documentation": // ignored by the go command
	default:
		return name, nil
	}
	return "limits", nil
}
