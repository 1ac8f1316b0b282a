package migrate

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/perlimit"
)

// carry carries over what is not marked, or says what that would be.
func (r *run) carry(ctx context.Context) error {
	carrier := dynamo.NewCarrier(r.Client, r.Table, r.Now)
	s := scan{only: "attribute_not_exists(" + perlimit.Migrated + ")", keys: true}
	each := carrier.Look
	if r.Job == Carry {
		if err := carrier.Begin(ctx); err != nil {
			return err
		}
		s.checkpoint = "migrate"
		each = carrier.Carry
	}
	s.page = func(ctx context.Context, groups []*group) (came tally, err error) {
		for _, g := range groups {
			if err := r.bucket(ctx, g, each, &came); err != nil {
				return came, err
			}
		}
		return came, nil
	}
	return r.scan(ctx, s)
}

// bucket has each do its work on the bucket of g. What is wrong with a single bucket does not stop the run.
func (r *run) bucket(
	ctx context.Context, g *group, each func(context.Context, *runtime.Spec, string) (dynamo.Carry, error), came *tally,
) error {
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
	if r.Job == Carry {
		if err := r.pace.pay(ctx, carryUnits(n)); err != nil {
			return err
		}
	}
	found, err := each(ctx, spec, g.entity)
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
	r.progress.add(n, found.State == dynamo.Carried || found.State == dynamo.Carryable)
	came.told += int64(n)
	if more := int(found.Write) - carryUnits(n); r.Job == Carry && more > 0 { // the next page has items of it too
		return r.pace.pay(ctx, more)
	}
	return nil
}

// carryUnits is what a transaction costs that puts a bucket, which is listed in an index, and marks n items, each below 1 KB.
func carryUnits(n int) int { return 2 * (2 + n) }

// stops reports that err is not about a single bucket.
func stops(err error) bool {
	if _, contended := errors.AsType[*runtime.ContendedError](err); contended {
		return false
	}
	_, setup := errors.AsType[*runtime.SetupError](err)
	_, asked := errors.AsType[*smithy.OperationError](err) // DynamoDB itself refused
	return !setup || asked
}

// kindOf returns the index of the kind of entity that has a bucket of spec, -1 for none.
func kindOf(spec *runtime.Spec, entity string) int {
	return slices.IndexFunc(spec.Kinds, func(k runtime.Kind) bool { return k.Limits != nil && strings.HasPrefix(entity, k.Prefix) })
}

// counting returns those of found's items that are carried over with it.
func counting(found *dynamo.Carry) []perlimit.Item {
	return slices.DeleteFunc(slices.Clone(found.Items), func(i perlimit.Item) bool {
		return !i.Counts() || slices.Contains(found.Strays, i.Name)
	})
}

// Difference is a bucket whose items had other numbers than it has: a customer with a raised limit, whose limit nobody has
// told to sluice.
type Difference struct {
	Entity   string    `json:"entity"`
	Resource string    `json:"resource"`
	Limits   []Numbers `json:"limits"`
	Override string    `json:"override,omitempty"` // the command that has it keep the items' numbers, which the command line knows
}

// Numbers is a limit as an item has it, and as its bucket has it.
type Numbers struct {
	Limit  string `json:"limit"`
	Item   Limit  `json:"item"`
	Bucket Limit  `json:"bucket"`
}

// Limit is a bucket.Limit as reports have it.
type Limit struct {
	Capacity int64 `json:"capacity_milli"`
	Burst    int64 `json:"burst_milli"`
	Refill   int64 `json:"refill_amount_milli"`
	Period   int64 `json:"refill_period_ms"`
}

// differing returns what found's items and image do not have alike, nil for nothing.
func differing(spec *runtime.Spec, g *group, found *dynamo.Carry) *Difference {
	d := Difference{Entity: g.entity, Resource: g.resource}
	for _, item := range counting(found) {
		if i := slices.Index(spec.Limits, item.Name); i >= 0 && found.Image.Balances[i].Limit != item.Limit {
			d.Limits = append(d.Limits, Numbers{item.Name, Limit(item.Limit), Limit(found.Image.Balances[i].Limit)})
		}
	}
	if len(d.Limits) == 0 {
		return nil
	}
	return &d
}
