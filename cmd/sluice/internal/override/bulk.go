package override

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/runtime/store"
)

// The formats of export and import.
const (
	formatLines = "jsonl"
	formatCSV   = "csv"
)

type exportCommand struct {
	bucketstore.TableOrRedis
	schemafile.Flag

	Resources []string `arg:"" optional:"" name:"resource" help:"What to export, such as gpt-4 or model/gpt-5."`
	Format    string   `default:"jsonl" enum:"jsonl,csv" help:"Format: jsonl or csv."`
}

// Help describes the formats.
func (exportCommand) Help() string {
	return "Prints all overrides of operators: a JSON object per entity or kind on a line, as get --json " +
		"does, or as CSV a row per limit. Regional quotas are left out. Numbers are in millitokens and " +
		"milliseconds.\n\n" +
		"Example: sluice override export > overrides.jsonl"
}

// Run prints each override as soon as it is read.
func (c exportCommand) Run(ctx context.Context, p program.Env) error {
	s, err := c.Read()
	if err != nil {
		return err
	}
	specs := s.Specs
	if len(c.Resources) > 0 {
		specs = nil
	}
	for _, name := range c.Resources {
		spec, err := s.Overridden(name)
		if err != nil {
			return err
		}
		specs = append(specs, spec)
	}
	at, err := c.Open(ctx, p.Now, c.Flag)
	if err != nil {
		return err
	}
	defer at.Close()
	if specs, err = withNames(ctx, at.Catalog(), specs); err != nil {
		return at.Explain(err)
	}
	progress := newProgress(p)
	if p.Screen() { // the rows are on it
		progress = newProgress(program.Env{Stderr: io.Discard, Now: p.Now})
	}
	written, quotas, err := writeRows(ctx, p.Stdout, progress, c.Format, at.Overrides(), specs)
	progress.end()
	if err != nil {
		return at.Explain(err)
	}
	p.Note("exported %s", format.Quantity(written, "override"))
	if quotas > 0 {
		p.Note("; left out %s", format.Quantity(quotas, "regional quota"))
	}
	p.Note("\n")
	return nil
}

// withNames returns specs, with the names of each template. A name that has the buckets of one of the
// resources has its overrides, too.
func withNames(
	ctx context.Context, catalog store.Catalog, specs []*store.Spec,
) (all []*store.Spec, err error) {
	add := func(spec *store.Spec) {
		if !slices.ContainsFunc(all, func(s *store.Spec) bool { return s.Resource == spec.Resource }) {
			all = append(all, spec)
		}
	}
	for _, spec := range specs {
		if spec, err = bucketstore.Named(ctx, catalog, spec); err != nil {
			return nil, err
		}
		add(spec)
	}
	for _, spec := range specs {
		if !spec.Names || spec.Template != "" {
			continue
		}
		for e, err := range catalog.List(ctx, spec) {
			if err != nil {
				return nil, err
			}
			if e.Alias == "" {
				add(schemafile.Named(spec, &e))
			}
		}
	}
	return all, nil
}

// writeRows writes the operators' overrides of specs in a format. It also returns how many regional quotas it
// left out.
func writeRows(
	ctx context.Context, w io.Writer, progress *progress, as string, from store.OverrideStore,
	specs []*store.Spec,
) (written, quotas int, err error) {
	out := newRowWriter(w, as)
	for _, spec := range specs {
		for stored, err := range from.List(ctx, spec) {
			switch {
			case err != nil:
				return written, quotas, errors.Join(err, out.flush())
			case stored.Epoch > 0:
				quotas++
				continue
			}
			if err := out.write(jsonOf(spec, stored)); err != nil {
				return written, quotas, err
			}
			written++
			progress.show("%d exported", written)
		}
	}
	return written, quotas, out.flush()
}

type importCommand struct {
	bucketstore.TableOrRedis
	schemafile.Flag
	bucketstore.Reason

	From      string `arg:"" name:"path" help:"File that export wrote, or - for the standard input."`
	Format    string `enum:",jsonl,csv" default:"" help:"jsonl or csv. The default is that of the name."`
	DryRun    bool   `help:"Print what would change, and write nothing."`
	Overwrite bool   `help:"Replace overrides that have changed since the export."`
	Rate      int    `placeholder:"N" help:"Most writes a second. The default is as many as the store takes."`
}

// Help describes what import does.
func (importCommand) Help() string {
	return "Checks all rows before it writes the first one. A row states all overridden limits of an entity " +
		"or a kind: others end. Overrides without a row stay. A row that says what is stored is skipped, so a " +
		"run that was interrupted goes on when it is repeated. A row is refused if the store has another " +
		"revision than the row, unless nothing was ever stored, or --overwrite is given. An empty revision, or " +
		"none, expects that nothing is overridden.\n\n" +
		"Example: sluice override import overrides.jsonl --dry-run"
}

// Run reads, checks and compares all rows, and then writes those that change something.
func (c importCommand) Run(ctx context.Context, p program.Env) error {
	if c.Rate < 0 {
		return program.Usagef("--rate %d is below 0: pass the most writes a second, or leave the flag out", c.Rate)
	}
	s, err := c.Read()
	if err != nil {
		return err
	}
	rows, err := c.rows()
	if err != nil {
		return err
	}
	changes, problems := check(s, rows)
	if err := problems.err(c.From); err != nil {
		return err
	}
	open, end := program.Finishing(ctx, !c.DryRun)
	defer end()
	at, err := c.OpenToWrite(open, p.Now, c.Flag, "")
	if err != nil {
		return err
	}
	defer at.Close()
	if ctx, err = c.Recorded(ctx, at); err != nil {
		return err
	}
	changes, problems, err = resolve(ctx, at, changes)
	if err == nil {
		err = problems.err(c.From)
	}
	if err != nil {
		return at.Explain(err)
	}
	changes, unchanged, problems, err := compare(ctx, p, at.Overrides(), changes, c.Overwrite)
	if err == nil {
		err = problems.err(c.From)
	}
	if err != nil {
		return at.Explain(err)
	}
	if c.DryRun {
		if err := printDiff(p, changes); err != nil {
			return err
		}
		p.Say("would write %s; %d unchanged\n", format.Quantity(len(changes), "override"), unchanged)
		return nil
	}
	written, err := apply(ctx, p, at.Overrides(), changes, c.Rate)
	p.Say("wrote %s; %d unchanged\n", format.Quantity(written, "override"), unchanged)
	if err != nil {
		return fmt.Errorf("%w; %d of %d are written: run the command again, and it goes on", at.Explain(err),
			written, len(changes))
	}
	if written > 0 {
		p.Note("%s\n", bucketstore.TakenUp())
	}
	return nil
}

// rows reads the file.
func (c importCommand) rows() ([]row, error) {
	as := c.Format
	if as == "" {
		as = formatLines
		if strings.HasSuffix(strings.ToLower(c.From), ".csv") {
			as = formatCSV
		}
	}
	var in io.Reader = os.Stdin
	if c.From != "-" {
		file, err := os.Open(c.From)
		if err != nil {
			return nil, fmt.Errorf("%w; pass a file that `sluice override export` wrote, or - for the standard "+
				"input", err)
		}
		defer file.Close() //nolint:errcheck // it was only read
		in = file
	}
	rows, problems := readRows(in, as)
	return rows, problems.err(c.From)
}

// problem is what is wrong with a line, and what to do.
type problem struct {
	line int
	text string
}

// problems are the problems of all lines.
type problems []problem

// mostProblems is the number of problems that an error shows.
const mostProblems = 20

// add adds a problem.
func (ps *problems) add(line int, format string, args ...any) {
	*ps = append(*ps, problem{line, fmt.Sprintf(format, args...)})
}

// err returns the problems as an error, in the order of lines, or nil if there are none.
func (ps problems) err(file string) error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b problem) int { return a.line - b.line })
	var text strings.Builder
	for i, one := range ps {
		if i == mostProblems {
			fmt.Fprintf(&text, "and %d more\n", len(ps)-i)
			break
		}
		fmt.Fprintf(&text, "%s:%d: %s\n", term.Escape(file), one.line, one.text)
	}
	text.WriteString("sluice: nothing was written")
	return program.AsIs(errors.New(text.String()))
}
