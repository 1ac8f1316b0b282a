package override

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// imported is a row that fits the schema.
type imported struct {
	schemafile.Scope

	line   int
	row    store.Stored // its revision is that of the row
	stored store.Stored // what compare read; a regional quota has no limits
}

// check returns the rows that fit the schema, and what is wrong with the others.
func check(s *schemafile.Schema, rows []row) (fit []imported, wrong problems) {
	first := map[[2]string]int{}
	for _, r := range rows {
		key := [2]string{r.At, r.Resource}
		if line, twice := first[key]; twice {
			wrong.add(r.line, "%s on %s is in line %d already: leave one out", term.Quote(r.At),
				term.Quote(r.Resource), line)
			continue
		}
		first[key] = r.line
		l, err := s.Override(r.At, r.Resource)
		if err != nil {
			wrong.add(r.line, "%s", term.Escape(err.Error()))
			continue
		}
		next := imported{l, r.line, store.Stored{At: r.At, Limits: make([]*bucket.Limit, len(l.Spec.Limits))},
			store.Stored{}}
		if r.Revision != "none" {
			next.row.Revision = store.Revision(r.Revision)
		}
		switch {
		case r.Epoch != 0:
			wrong.add(r.line, "is a regional quota of %s, which regional sync stores: leave it out", term.Quote(r.At))
		case len(r.Limits) == 0:
			wrong.add(r.line, "overrides no limit: leave it out, and run `sluice override delete %s %s` to end one",
				term.Argument(r.At), r.Resource)
		}
		for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
			i, err := l.Limit(name)
			if err == nil {
				err = l.Has(i)
			}
			if err != nil {
				wrong.add(r.line, "%s", term.Escape(err.Error()))
				continue
			}
			limit := bucket.Limit(r.Limits[name])
			if reason := l.Fits(i, limit); reason != "" {
				wrong.add(r.line, "limit %s of %s: %s", name, term.Quote(r.At), reason)
			}
			next.row.Limits[i] = &limit
		}
		fit = append(fit, next)
	}
	return fit, wrong
}

// compare reads what is stored and returns the rows that change it, in the order of the file, and how many do
// not. A row that would replace a revision which it does not have is a problem, unless overwrite is set.
func compare(
	ctx context.Context, p program.Env, from store.OverrideStore, rows []imported, overwrite bool,
) (changes []imported, unchanged int, wrong problems, err error) {
	if err := readStored(ctx, p, from, rows); err != nil {
		return nil, 0, nil, err
	}
	for _, r := range rows {
		changed := r.stored.Revision != r.row.Revision && r.stored.Revision != "" &&
			(r.row.Revision != "" || r.stored.Overrides())
		switch err := r.Writable(); {
		case slices.EqualFunc(r.stored.Limits, r.row.Limits, sameLimit):
			unchanged++
		case err != nil:
			wrong.add(r.line, "%s", term.Escape(err.Error()))
		case changed && !overwrite:
			wrong.add(r.line, "%s on %s is at revision %s, not %s: export it again, or pass --overwrite",
				term.Quote(r.At), schemafile.Resource(r.Spec), shown(r.stored.Revision), shown(r.row.Revision))
		default:
			changes = append(changes, r)
		}
	}
	return changes, unchanged, wrong, nil
}

// readAtOnce is the number of overrides that an import reads before it shows its progress.
const readAtOnce = 1_000

// readStored sets what is stored of each row.
func readStored(ctx context.Context, p program.Env, from store.OverrideStore, rows []imported) error {
	progress, done := newProgress(p), 0
	defer progress.end()
	ofSpec := map[*store.Spec][]int{}
	for i := range rows {
		ofSpec[rows[i].Spec] = append(ofSpec[rows[i].Spec], i)
	}
	for spec, all := range ofSpec {
		for indexes := range slices.Chunk(all, readAtOnce) {
			at := make([]string, len(indexes))
			for i, index := range indexes {
				at[i] = rows[index].At
			}
			stored, err := from.Get(ctx, spec, at...)
			if err != nil {
				return err
			}
			for i, index := range indexes {
				rows[index].stored = stored[i]
				if stored[i].Epoch > 0 {
					rows[index].stored.Limits = make([]*bucket.Limit, len(spec.Limits))
				}
			}
			if err := context.Cause(ctx); err != nil {
				return err
			}
			done += len(indexes)
			progress.show("%d of %d compared", done, len(rows))
		}
	}
	return nil
}

// printDiff prints what changes, limit by limit.
func printDiff(p program.Env, changes []imported) error {
	rows := [][]string{{"AT", "RESOURCE", "LIMIT", "", "CAPACITY", "BURST", "REFILL"}}
	columns := func(l *bucket.Limit, unit string) []string {
		if l == nil {
			return []string{"-", "-", "-"}
		}
		return format.Limit(*l, unit)
	}
	for _, r := range changes {
		for i, name := range r.Spec.Limits {
			was, now := r.stored.Limits[i], r.row.Limits[i]
			if !sameLimit(was, now) {
				unit := r.Spec.Unit(i)
				at := []string{r.At, schemafile.Resource(r.Spec)}
				rows = append(rows, append(at, append([]string{name, "was"}, columns(was, unit)...)...),
					append([]string{"", "", "", "now"}, columns(now, unit)...))
			}
		}
	}
	if len(rows) == 1 {
		return nil
	}
	return texttable.Write(p.Stdout, "", "llllrrl", rows)
}

// writesAtOnce bounds the writes of an import that are under way.
const writesAtOnce = 8

// apply writes changes, at most perSecond a second unless that is 0. It returns how many it wrote, and ends
// with the first error. A write fails if what compare read has changed since.
func apply(
	ctx context.Context, p program.Env, to store.OverrideStore, changes []imported, perSecond int,
) (written int, err error) {
	limiter := rate.NewLimiter(rate.Inf, 1)
	if perSecond > 0 {
		limiter.SetLimit(rate.Limit(perSecond))
	}
	progress := newProgress(p)
	defer progress.end()
	var mu sync.Mutex
	group, together := errgroup.WithContext(ctx) // those under way end, whatever becomes of others
	group.SetLimit(writesAtOnce)
	for _, chunk := range inOrder(changes) {
		if limiter.Wait(together) != nil {
			break
		}
		group.Go(func() error {
			for i, r := range chunk {
				if i > 0 && limiter.Wait(together) != nil {
					return context.Cause(together)
				}
				revision, err := write(ctx, to, r)
				if err != nil {
					return err
				}
				if i+1 < len(chunk) {
					chunk[i+1].stored.Revision = revision
				}
				mu.Lock()
				written++
				progress.show("%d of %d written", written, len(changes))
				mu.Unlock()
			}
			return nil
		})
	}
	if err = group.Wait(); err == nil && written < len(changes) {
		err = context.Cause(ctx)
	}
	return written, err
}

// inOrder returns the rows that are written one after the other: those of the plans of a resource, which have
// one revision. Each other row is for itself.
func inOrder(changes []imported) (chunks [][]imported) {
	plans := map[*store.Spec]int{}
	for _, r := range changes {
		at, more := plans[r.Spec]
		switch _, _, ofPlan := store.SplitPlanAt(r.At); {
		case ofPlan && more:
			chunks[at] = append(chunks[at], r)
			continue
		case ofPlan:
			plans[r.Spec] = len(chunks)
		}
		chunks = append(chunks, []imported{r})
	}
	return chunks
}

// write writes one row, and returns its new revision.
func write(ctx context.Context, to store.OverrideStore, r imported) (store.Revision, error) {
	ctx, done := program.Finish(ctx)
	defer done()
	r.row.Revision = r.stored.Revision
	revision, err := to.Set(ctx, r.Spec, r.row)
	if _, conflict := errors.AsType[*store.ConflictError](err); conflict {
		err = fmt.Errorf("line %d: %s on %s has been changed by another write", r.line, term.Quote(r.At),
			schemafile.Resource(r.Spec))
	}
	return revision, err
}

// resolve goes by the catalog for names of templates: a name may have the buckets of another resource. Rows
// that the store cannot have are problems, too.
func resolve(
	ctx context.Context, at bucketstore.Store, rows []imported,
) (known []imported, wrong problems, err error) {
	specs := map[string]*store.Spec{}
	for _, r := range rows {
		if r.Spec.Template != "" {
			name := schemafile.Resource(r.Spec)
			if specs[name] == nil {
				if specs[name], err = bucketstore.Named(ctx, at.Catalog(), r.Spec); err != nil {
					return nil, nil, err
				}
			}
			if r.Spec = specs[name]; r.Spec.Entry.Revision == "" {
				wrong.add(r.line, "%s", program.Text(&store.UnknownNameError{Resource: r.Spec.Template,
					Name: r.Spec.Entry.Name}))
				continue
			}
		}
		if err := bucketstore.Check(at, r.Spec, r.row); err != nil {
			wrong.add(r.line, "%s", program.Text(err))
		}
		known = append(known, r)
	}
	return known, wrong, nil
}
