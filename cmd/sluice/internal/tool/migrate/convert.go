package migrate

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime/dynamo/migrating"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
	"github.com/sluice-go/sluice/runtime/store"
)

// work is what a job does to each bucket.
type work struct {
	begin func(context.Context) error // before the first one
	each  func(context.Context, *store.Spec, string) (migrating.Carry, error)
}

// convert converts unmarked items, or reports what that would do.
func (r *run) convert(ctx context.Context) error {
	carrier := migrating.NewCarrier(r.Client, r.Table, r.Now)
	s := scan{only: "attribute_not_exists(" + perlimit.Migrated + ")", keys: true}
	w := work{begin: func(context.Context) error { return nil }, each: carrier.Look}
	if r.Job == Convert {
		// Begin marks the table as being migrated. A table without items to convert is not marked, since Check
		// would then fail in all programs that use it.
		w.begin = first(carrier.Begin)
		w.each = carrier.Carry
		s.checkpoint = "migrate"
	}
	s.page = func(ctx context.Context, groups []*group) (came tally, err error) {
		for _, g := range groups {
			if err := r.bucket(ctx, g, &w, &came); err != nil {
				return came, err
			}
		}
		return came, nil
	}
	return r.scan(ctx, s)
}

// first returns a function that calls f until f has succeeded once. Concurrent callers wait for that call.
func first(f func(context.Context) error) func(context.Context) error {
	done := make(chan bool, 1)
	done <- false
	return func(ctx context.Context) (err error) {
		was := <-done
		if !was {
			err = f(ctx)
		}
		done <- err == nil
		return err
	}
}

// bucket does w on the bucket of g. An error about this bucket alone is reported and does not stop the run.
func (r *run) bucket(ctx context.Context, g *group, w *work, came *tally) error {
	spec := r.spec(g.resource)
	n := 0
	for _, name := range g.names {
		if left, stays := leftOf(spec, g, name); stays {
			r.report.left(left)
		} else {
			n++
		}
	}
	if n == 0 || g.done {
		return nil
	}
	g.done = true
	if err := w.begin(ctx); err != nil {
		return err
	}
	if r.Job == Convert {
		if err := r.pace.pay(ctx, convertUnits(n)); err != nil {
			return err
		}
	}
	found, err := w.each(ctx, spec, g.entity)
	switch {
	case err != nil && stops(err):
		return err
	case err != nil:
		r.report.wrong(g, err.Error())
		came.missed++
		return nil
	case found.State == migrating.CarryBeside:
		came.missed++
	}
	r.report.converted(spec, g, &found)
	if r.Job == DryRun {
		r.report.ahead(spec, g, &found, r.Now())
	}
	r.progress.add(n, found.State == migrating.Carried || found.State == migrating.Carryable)
	came.shown += int64(n)
	// the next page has items of it too
	if more := int(found.Write) - convertUnits(n); r.Job == Convert && more > 0 {
		return r.pace.pay(ctx, more)
	}
	return nil
}

// convertUnits returns the write units of a transaction that puts a bucket, which an index lists, and marks n
// items, each below 1 KB.
func convertUnits(n int) int { return 2 * (2 + n) }

// stops reports that err is not about a single bucket.
func stops(err error) bool {
	if _, contended := errors.AsType[*store.ContendedError](err); contended {
		return false
	}
	_, setup := errors.AsType[*store.SetupError](err)
	_, asked := errors.AsType[*smithy.OperationError](err) // DynamoDB itself refused
	return !setup || asked
}

// kindOf returns the index of the kind of entity that has a bucket of spec, -1 for none.
func kindOf(spec *store.Spec, entity string) int {
	return slices.IndexFunc(spec.Kinds, func(k store.Kind) bool {
		return k.Limits != nil &&
			strings.HasPrefix(entity, k.Prefix)
	})
}

// counting returns those of found's items that are converted with it.
func counting(found *migrating.Carry) []perlimit.Item {
	return slices.DeleteFunc(slices.Clone(found.Items), func(i perlimit.Item) bool {
		return !i.Counts() || slices.Contains(found.UnknownLimits, i.Name)
	})
}
