package breaking

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/tool/texttable"
)

type Command struct {
	schemafile.Flag

	Against string `placeholder:"OLD.yaml|git:REF" help:"What to compare with: a file, or the schema's own as it was at a commit, branch or tag."`
	Format  string `enum:"text,json,github-actions" default:"text" help:"How to print: text, json or github-actions."`
	Rules   bool   `help:"List the rules instead."`

	Workspace string `hidden:"" env:"GITHUB_WORKSPACE" help:"The folder that github-actions names files from."`
}

// Help says what is printed, and how to live with a change that is meant.
func (Command) Help() string {
	return `Exits 1 if anything breaks, and prints each on a line, sorted by place:
  text            limits.yaml:12:7: LIMIT_REMOVED: what it was, what that does, and the cure
  json            an object per line: file, line, column, rule, category, place, message, ignored
  github-actions  ::error commands, which stand beside the lines of a pull request
A change that is meant is ignored, by rule or at one place, with the reason, in the schema:
  breaking:
    except:
      - {rule: ON_UNAVAILABLE_CHANGED, reason: callers handle both}
    ignore_only:
      - {rule: LIMIT_REMOVED, at: gpt-4/rpm, reason: no bucket had it}
Json alone shows what is ignored. A name that was in removed is refused by sluice generate too, until it is ignored.

Example: sluice breaking --against git:origin/main`
}

// Run compares, prints, and fails if anything breaks that is not ignored.
func (c Command) Run(ctx context.Context, p program.Env) error {
	if c.Rules {
		return c.rules(p)
	}
	if c.Against == "" {
		return program.Usagef("nothing to compare with: pass --against OLD.yaml, or --against git:REF, such as git:origin/main")
	}
	if _, err := c.Read(); err != nil {
		return err
	}
	old, found, err := c.old(ctx)
	if err != nil {
		return err
	}
	if !found {
		p.Note("%s is not in %s: all of it is new, and breaks nothing\n", c.File, c.Against)
		return nil
	}
	changes, err := gen.Breaking(c.File, old)
	if err != nil {
		return err
	}
	ignored := 0
	for _, change := range changes {
		if change.Ignored != "" {
			ignored++
		}
	}
	if err := printChanges(p.Stdout, c.Format, c.Workspace, changes); err != nil {
		return err
	}
	also := ""
	if ignored > 0 {
		also = fmt.Sprintf(", %d ignored", ignored)
	}
	switch n := len(changes) - ignored; n {
	case 0:
		p.Note("%s breaks nothing of %s%s\n", c.File, old.Name, also)
		return nil
	case 1:
		return fmt.Errorf("%s breaks what %s has: 1 finding%s; mend it, or ignore it with a reason, as sluice breaking --help shows", c.File, old.Name, also)
	default:
		return fmt.Errorf("%s breaks what %s has: %d findings%s; mend them, or ignore them with a reason, as sluice breaking --help shows",
			c.File, old.Name, n, also)
	}
}

// old returns what to compare with; not found is a schema that was not there yet.
func (c Command) old(ctx context.Context) (old gen.OldSchema, found bool, err error) {
	if ref, ok := strings.CutPrefix(c.Against, "git:"); ok {
		return atRef(ctx, c.File, ref)
	}
	text, err := os.ReadFile(c.Against)
	if err != nil {
		return old, false, fmt.Errorf("read what to compare with: %w; pass a file, or a commit, branch or tag as git:REF", err)
	}
	return gen.OldSchema{Name: c.Against, Text: text}, true, nil
}

// rules prints the rules.
func (Command) rules(p program.Env) error {
	rows := [][]string{{"RULE", "CATEGORY", "AT", "FINDS"}}
	for _, r := range gen.BreakingRules() {
		forms := make([]string, len(r.At))
		for i, f := range r.At {
			forms[i] = string(f)
		}
		rows = append(rows, []string{r.ID, r.Category, strings.Join(forms, ", "), r.Purpose})
	}
	return texttable.Write(p.Stdout, "", "llll", rows)
}
