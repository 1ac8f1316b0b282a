package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
)

// cleanup deletes converted items. It then notes in the table that no item is left, so that programs stop
// reading them.
func (r *run) cleanup(ctx context.Context) error {
	err := r.scan(ctx, scan{keys: true, consistent: true, checkpoint: "migrate-cleanup", page: r.cleanPage})
	if err != nil {
		return err
	}
	none, err := r.none(ctx)
	if err != nil || !none {
		return err
	}
	if err := migrating.NewCarrier(r.Client, r.Table, r.Now).End(ctx); err != nil {
		return err
	}
	r.report.note(func(rep *Report) { rep.Cleaned.Done = true })
	return nil
}

// cleanPage deletes the converted items of a page.
func (r *run) cleanPage(ctx context.Context, groups []*group) (came tally, err error) {
	buckets, err := r.buckets(ctx, groups, "PK, SK")
	if err != nil {
		return came, err
	}
	for _, g := range groups {
		there := buckets[g.key()] != nil
		for i, item := range g.items {
			deleted, err := r.clean(ctx, g, g.names[i], item, there)
			if err != nil {
				return came, err
			}
			r.progress.add(1, deleted)
			came.shown++
		}
	}
	return came, nil
}

// clean deletes item if it is converted and its bucket, found by the caller, is there.
func (r *run) clean(
	ctx context.Context, g *group, limit string, item codec.Item, there bool,
) (deleted bool, err error) {
	switch {
	case item[perlimit.Migrated] == nil:
		left, stays := leftOf(r.spec(g.resource), g, limit)
		if !stays {
			left.Why, left.Limit = NotYet, limit
		}
		r.report.left(left)
		return false, nil
	case !there && !r.Expired:
		r.report.note(func(rep *Report) { rep.Cleaned.Expired++ })
		return false, nil
	}
	if err := r.pace.pay(ctx, 1); err != nil {
		return false, err
	}
	return r.delete(ctx, g, limit, item)
}

// delete deletes item, unless somebody has put another in its place since it was read.
func (r *run) delete(ctx context.Context, g *group, limit string, item codec.Item) (deleted bool, err error) {
	out, err := r.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &r.Table, Key: codec.Item{"PK": item["PK"], "SK": item["SK"]},
		ConditionExpression:                 aws.String("attribute_exists(" + perlimit.Migrated + ")"),
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}, patiently)
	if refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		if len(refused.Item) > 0 { // else an attempt whose reply was lost has deleted it
			r.report.left(Left{Resource: g.resource, Limit: limit, Why: NotYet})
			return false, nil
		}
	} else if err != nil {
		return false, fmt.Errorf("delete %s / %s of table %s: %w", text(item["PK"]), text(item["SK"]), r.Table, err)
	} else {
		r.report.wrote(out.ConsumedCapacity)
	}
	r.report.note(func(rep *Report) { rep.Cleaned.Deleted++ })
	return true, nil
}

var errFound = errors.New("there is one")

// none reports that no per-limit item is left, of any resource. It also reads the segments that an earlier
// run has completed.
func (r *run) none(ctx context.Context) (bool, error) {
	all := *r
	all.Resource = ""
	all.progress = &progress{w: io.Discard, now: r.Now, began: r.began, job: r.Job}
	all.report = newCollector(r.Config) // the report does not count this last scan
	err := all.scan(ctx, scan{keys: true, consistent: true,
		page: func(_ context.Context, groups []*group) (tally, error) {
			if len(groups) > 0 {
				return tally{}, errFound
			}
			return tally{}, nil
		}})
	if errors.Is(err, errFound) {
		return false, ctx.Err() // another segment may have been cancelled first
	}
	return err == nil, err
}
