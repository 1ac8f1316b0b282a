// Package members reads the items of entities, with their parents, calendars and plans, and has the updates
// that change calendars and plans.
package members

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Get reads an entity's item once, consistently. With an error it is an empty output.
func Get(ctx context.Context, api wire.API, table, entity string) (*dynamodb.GetItemOutput, error) {
	out, err := api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &table, Key: item.EntityKey(entity), ConsistentRead: aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}, wire.NoRetry)
	if err != nil {
		return &dynamodb.GetItemOutput{}, err
	}
	return out, nil
}

// lookupAttempts is how often a look-up is tried, since an acquire waits for it.
const lookupAttempts = 3

// Lookup is Get and Decode of a session. Its retries come from the session's budget, so that an outage meets
// no more reads than were asked for. Beside Decode's error it fails as wire.Retrier does.
func Lookup(
	ctx context.Context, conn *wire.Conn, jitter func() float64, entity string,
) (m store.Member, found bool, err error) {
	retrier := conn.Retrier(lookupAttempts, jitter)
	retrier.Budget = conn.Budget
	var out *dynamodb.GetItemOutput
	if err = retrier.Do(ctx, func() (err error) {
		out, err = once(ctx, conn, entity)
		return err
	}); err != nil {
		return store.Member{}, false, err
	}
	return Decode(entity, out.Item)
}

// once is Get of a session.
func once(ctx context.Context, conn *wire.Conn, entity string) (*dynamodb.GetItemOutput, error) {
	began := conn.Env.Clock.Now()
	out, err := Get(ctx, conn.API, conn.Table, entity)
	conn.Report(ctx, wire.ReadEvent("GetItem", "member", began, linked(out.Item), out.ConsumedCapacity, err))
	return out, err
}

// Once is Lookup in one attempt. Its error is DynamoDB's, or Decode's.
func Once(ctx context.Context, conn *wire.Conn, entity string) (store.Member, error) {
	out, err := once(ctx, conn, entity)
	if err != nil {
		return store.Member{}, err
	}
	m, _, err := Decode(entity, out.Item)
	return m, err
}

// linked reports whether an entity item has any of the attributes of a link.
func linked(raw codec.Item) bool {
	return raw["entity_id"] != nil || raw["parent_id"] != nil || raw["cascade"] != nil
}

// Attributes of an entity's calendar: the start of its billing, in ms, and the zone of its windows.
const (
	anchorAttribute = "anchor"
	zoneAttribute   = "zone"
)

// Attributes of an entity's plan: its name, "" for none, and the version of its last change.
const (
	PlanAttribute        = "plan"
	planVersionAttribute = "pv"
)

// Decode reads an entity item, which may be empty. found is false if it has none of the attributes of a link:
// a deletion leaves such an item. m has the entity's calendar and plan all the same. Decode fails with a
// *store.SetupError.
func Decode(entity string, raw codec.Item) (m store.Member, found bool, err error) {
	d := codec.Decoder{Item: raw}
	if _, ok := raw[anchorAttribute]; ok {
		anchor, zone := d.Int(anchorAttribute), d.Text(zoneAttribute)
		if err = d.Err(); err == nil {
			m.Since, err = store.Since(anchor, zone)
		}
	}
	if _, ok := raw[planVersionAttribute]; ok {
		m.Plan, m.PlanVersion = d.Text(PlanAttribute), d.Int(planVersionAttribute)
	}
	if linked(raw) {
		m.Entity, m.Cascade, found = entity, true, true
	}
	if _, ok := raw["parent_id"]; ok {
		m.Parent = d.Text("parent_id")
	}
	if _, ok := raw["cascade"]; ok {
		m.Cascade = d.Bool("cascade")
	}
	if err = cmp.Or(d.Err(), err); err != nil {
		return store.Member{}, false, &store.SetupError{
			What: fmt.Sprintf("what is stored of %s is malformed", store.Quote(entity)),
			Do:   "fix or delete the item " + item.NameOf(raw),
			Err:  err,
		}
	}
	return m, found, nil
}

// SetCalendar returns the update, without its key, that stores since and leaves other attributes as they are.
func SetCalendar(since time.Time) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		UpdateExpression:         aws.String("SET anchor = :anchor, #zone = :zone"),
		ExpressionAttributeNames: map[string]string{"#zone": zoneAttribute}, // a reserved word
		ExpressionAttributeValues: codec.Item{
			":anchor": codec.N(since.UnixMilli()), ":zone": codec.S(since.Location().String()),
		},
	}
}

// SetPlan returns the update, without its key, that puts an entity on plan at now, if its plan is still that
// of old. version is that of the plan after it, in ms.
func SetPlan(plan string, old store.Member, now time.Time) (in *dynamodb.UpdateItemInput, version int64) {
	version = max(now.UnixMilli(), old.PlanVersion+1)
	in = &dynamodb.UpdateItemInput{
		UpdateExpression:         aws.String("SET #plan = :plan, pv = :pv"),
		ConditionExpression:      aws.String("attribute_not_exists(pv)"),
		ExpressionAttributeNames: map[string]string{"#plan": PlanAttribute}, // a reserved word
		ExpressionAttributeValues: codec.Item{
			":plan": codec.S(plan), ":pv": codec.N(version),
		},
	}
	if old.PlanVersion != 0 {
		in.ConditionExpression = aws.String("pv = :old")
		in.ExpressionAttributeValues[":old"] = codec.N(old.PlanVersion)
	}
	return in, version
}
