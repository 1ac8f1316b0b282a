package migrate

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/perlimit"
	"github.com/sluice-go/sluice/runtime/store"
)

// work is what is done to each bucket.
type work struct {
	begin func(context.Context) error // before the first one
	each  func(context.Context, *store.Spec, string) (dynamo.Carry, error)
}

// carry carries over what is not marked, or says what that would be.
func (r *run) carry(ctx context.Context) error {
	carrier := dynamo.NewCarrier(r.Client, r.Table, r.Now)
	s := scan{only: "attribute_not_exists(" + perlimit.Migrated + ")", keys: true}
	w := work{begin: func(context.Context) error { return nil }, each: carrier.Look}
	if r.Job == Carry {
		// A table that never had an item to carry over has to stay as it is, or Check would fail in all its
		// programs for nothing.
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

// first returns a function that calls f until it has succeeded once, and has others wait for that.
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

// bucket does w on the bucket of g. What is wrong with a single bucket does not stop the run.
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
	if r.Job == Carry {
		if err := r.pace.pay(ctx, carryUnits(n)); err != nil {
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
	case found.State == dynamo.CarryBeside:
		came.missed++
	}
	r.report.carried(spec, g, &found)
	if r.Job == DryRun {
		r.report.ahead(spec, g, &found, r.Now())
	}
	r.progress.add(n, found.State == dynamo.Carried || found.State == dynamo.Carryable)
	came.told += int64(n)
	// the next page has items of it too
	if more := int(found.Write) - carryUnits(n); r.Job == Carry && more > 0 {
		return r.pace.pay(ctx, more)
	}
	return nil
}

// carryUnits is what a transaction costs that puts a bucket, which is listed in an index, and marks n items,
// each below 1 KB.
func carryUnits(n int) int { return 2 * (2 + n) }

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

// counting returns those of found's items that are carried over with it.
func counting(found *dynamo.Carry) []perlimit.Item {
	return slices.DeleteFunc(slices.Clone(found.Items), func(i perlimit.Item) bool {
		return !i.Counts() || slices.Contains(found.Strays, i.Name)
	})
}
