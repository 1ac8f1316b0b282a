// Package breaking is `sluice breaking`: it lists what a change of limits.yaml breaks.
package breaking

import (
	"context"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/tool/textfile"
	"github.com/sluice-go/sluice/internal/tool/texttable"
)

// Command is `sluice breaking`.
type Command struct {
	schemafile.Flag

	Against string `placeholder:"OLD.yaml|git:REF" help:"${against}"`
	Format  string `enum:"text,json,github-actions" default:"text" help:"Form: text, json or github-actions."`
	Rules   bool   `help:"List the rules instead."`

	Workspace string `hidden:"" env:"GITHUB_WORKSPACE" help:"Folder that files in annotations are relative to."`
}

// Help describes the output and how to ignore a finding.
func (Command) Help() string {
	return `Prints each breaking change on a line, sorted by place, and exits with 1 if there is any:
  text            limits.yaml:12:7: LIMIT_REMOVED (data): the old value, the effect, and what to do
  json            an object per line: file, line, column, rule, severity, place, message, ignored
  github-actions  ::error commands, which GitHub shows beside the lines of a pull request
The severity says what breaks: data (what the table holds), api (callers of the generated package),
behaviour (the effect of calls) or price (the units that calls take).
The schema can ignore an intended change, by rule or at one place, with a reason:
  breaking:
    except:
      - {rule: ON_UNAVAILABLE_CHANGED, reason: callers handle both}
    ignore_only:
      - {rule: LIMIT_REMOVED, at: gpt-4/rpm, reason: no bucket had it}
Only json contains ignored changes. sluice generate also refuses a name from removed until it is ignored.

Example: sluice breaking --against git:origin/main`
}

// Run compares the schemas and prints the findings. It fails if there is one that is not ignored.
func (c Command) Run(ctx context.Context, p program.Env) error {
	if c.Rules {
		return c.rules(p)
	}
	if c.Against == "" {
		return program.Usagef("--against is missing: pass OLD.yaml, or git:REF, such as git:origin/main")
	}
	if _, err := c.Read(); err != nil {
		return err
	}
	old, found, err := c.old(ctx)
	if err != nil {
		return err
	}
	if !found {
		p.Note("%s is not in %s: it is new and breaks nothing\n", c.File, c.Against)
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
		p.Note("%s has no breaking change since %s%s\n", c.File, old.Name, also)
		return nil
	case 1:
		return fmt.Errorf("1 breaking change of %s since %s%s: undo it, or ignore it with a reason, "+
			"as sluice breaking --help shows", c.File, old.Name, also)
	default:
		return fmt.Errorf("%[3]d breaking changes of %[1]s since %[2]s%[4]s: undo them, or ignore them with a "+
			"reason, "+
			"as sluice breaking --help shows",
			c.File, old.Name, n, also)
	}
}

// old returns the schema to compare with. found is false if there was no schema then.
func (c Command) old(ctx context.Context) (old gen.OldSchema, found bool, err error) {
	if ref, ok := strings.CutPrefix(c.Against, "git:"); ok {
		return atRef(ctx, c.File, ref)
	}
	text, err := textfile.Read(c.Against)
	if err != nil {
		return old, false, fmt.Errorf("read the schema to compare with: %w; pass a file, or a commit, branch or "+
			"tag "+
			"as git:REF", err)
	}
	return gen.OldSchema{Name: c.Against, Text: text}, true, nil
}

// rules prints the rules.
func (Command) rules(p program.Env) error {
	rows := [][]string{{"RULE", "SEVERITY", "AT", "FINDS"}}
	for _, r := range gen.BreakingRules() {
		rows = append(rows, []string{r.ID, r.Severity, string(r.At), r.Purpose})
	}
	return texttable.Write(p.Stdout, "", "llll", rows)
}

// FlagHelp returns the help texts that are too long for a tag.
func (Command) FlagHelp() kong.Vars {
	return kong.Vars{
		"against": "The old schema: a file, or the schema itself at a commit, branch or tag.",
	}
}
