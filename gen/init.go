package gen

import (
	"bytes"
	"cmp"
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

	"github.com/sluice-go/sluice/internal/tool/gomod"
)

//go:embed starter.yaml
var starter []byte

// Init writes a starter limits.yaml to dir, and beside it sluice.go. The go:generate line of sluice.go runs a
// command, such as "sluice generate". Init returns the paths of both. If either exists, Init fails and writes
// neither.
func Init(dir, command string) ([]string, error) {
	pkg, _, err := packageIn(dir, func(string) bool { return false })
	if err != nil {
		return nil, err
	}
	if pkg == "" {
		if pkg, err = packageOf(dir); err != nil {
			return nil, err
		}
	}
	owner, err := ownerOf(dir)
	if err != nil {
		return nil, err
	}
	schema := filepath.Join(dir, "limits.yaml")
	const line = "%-32s " // up to the comment
	ours := bytes.Replace(starter, fmt.Appendf(nil, line, "owner: acme"),
		fmt.Appendf(nil, line, fmt.Sprintf("owner: %q", owner)), 1)
	files := []File{
		{Path: schema, Data: ours},
		{Path: filepath.Join(dir, "sluice.go"), Data: fmt.Appendf(nil,
			"package %s\n\n//go:generate %s\n", pkg, command)},
	}
	var missing []File
	var paths []string
	for _, f := range files {
		_, err := os.Lstat(f.Path)
		switch {
		case err == nil && f.Path == schema:
			continue
		case err == nil && len(missing) > 0:
			return nil, fmt.Errorf("%s is there already, without a limits.yaml: init overwrites nothing: rename it, "+
				"or choose another folder", f.Path)
		case err == nil:
			return nil, fmt.Errorf("%s is there already: init overwrites nothing", schema)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		missing = append(missing, f)
		paths = append(paths, f.Path)
	}
	return paths, (&Result{Files: missing}).Write()
}

// packageIn returns the name of dir's package and a file that declares it, or "" and "" if there is none. It
// ignores tests, files that build constraints exclude or that have no package clause, and those to skip.
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
		// a file without a package clause, such as an empty one, is for the compiler to report
		if f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly); err == nil {
			return f.Name.Name, path, nil
		}
	}
	return "", "", nil
}

// ownerOf makes an owner of the names of folders from the root of dir's module to dir, or of dir's alone if
// it has no module. Two schemas of a repository thus have two owners.
func ownerOf(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	root, err := gomod.Root(dir)
	if errors.Is(err, fs.ErrNotExist) {
		root, err = abs, nil
	}
	if err != nil {
		return "", err
	}
	below, err := filepath.Rel(filepath.Dir(root), abs)
	if err != nil {
		return "", err
	}
	owner := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.ContainsRune("._/-", c) {
			return c
		}
		return '-'
	}, strings.ToLower(filepath.ToSlash(below)))
	owner = strings.TrimLeft(owner[max(0, len(owner)-longestOwner):], "._/-")
	return cmp.Or(owner, "limits"), nil
}

// longestOwner is the length of the longest owner.
const longestOwner = 64

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
