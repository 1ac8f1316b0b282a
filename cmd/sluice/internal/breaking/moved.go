package breaking

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/git"

	"github.com/sluice-go/sluice/gen"
)

// movedFrom returns the schema that was moved to file. It is a schema that is in the tree of ref, but no
// longer in the work tree. Without this, a change that also moves the file would break nothing. found is
// false if there is none.
func movedFrom(ctx context.Context, file, ref, tree string) (old gen.OldSchema, found bool, err error) {
	failed := func(err error) (gen.OldSchema, bool, error) {
		return old, false, fmt.Errorf("look for what %s was in git:%s: %w", file, ref, err)
	}
	dir := filepath.Dir(file)
	prefix, err := git.Run(ctx, dir, "rev-parse", "--show-prefix")
	if err != nil {
		return failed(err)
	}
	deleted, err := git.Run(ctx, dir, "diff", "--name-only", "-z", "--no-relative", "--no-renames",
		"--diff-filter=D", tree)
	if err != nil {
		return failed(err)
	}
	var schemas []gen.OldSchema
	var names []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(deleted), "\x00"), "\x00") {
		if ext := path.Ext(name); ext != ".yaml" && ext != ".yml" {
			continue
		}
		text, err := git.Run(ctx, dir, "cat-file", "blob", tree+":"+name)
		if err != nil {
			return failed(err)
		}
		folder, err := filepath.Rel(strings.TrimSuffix(string(prefix), "\n"), path.Dir(name))
		if err != nil {
			return failed(err)
		}
		s := gen.OldSchema{Name: "git:" + ref + ":" + name, Folder: filepath.ToSlash(folder), Text: text}
		if _, err := gen.Breaking(file, s); err == nil || path.Base(name) == filepath.Base(file) {
			schemas, names = append(schemas, s), append(names, name)
		}
	}
	switch len(schemas) {
	case 0:
		return old, false, nil
	case 1:
		return schemas[0], true, nil
	}
	return old, false, fmt.Errorf("%s is not in git:%s, and of what is, %s are gone: write the one that it "+
		"was to a file (git show %s:%s > old.yaml), "+
		"and pass --against old.yaml", file, ref, strings.Join(names, " and "), ref, names[0])
}
