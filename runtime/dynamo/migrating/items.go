package migrating

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// readItems reads the per-limit items of entity on resource, sorted by limit. It calls report after each
// query. The error is DynamoDB's, or a *store.SetupError for a malformed item.
func readItems(
	ctx context.Context, api wire.API, table, entity, resource string, report func(*dynamodb.QueryOutput, error),
) (items []perlimit.Item, err error) {
	in := perlimit.Query(table, entity, resource)
	for {
		out, err := api.Query(ctx, in, wire.NoRetry)
		report(out, err)
		if err != nil {
			return nil, err
		}
		for _, raw := range out.Items {
			decoded, err := perlimit.Decode(raw)
			if err != nil {
				return nil, &store.SetupError{
					What: fmt.Sprintf(
						"the per-limit item %s is malformed",
						item.KeyOf(raw),
					), Err: err, Do: "fix or delete it",
				}
			}
			items = append(items, decoded)
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return items, nil
		}
	}
}

// ofSchema returns the items that count and whose limit spec has or had. unknown are the limits of items that
// spec never had.
func ofSchema(spec *store.Spec, items []perlimit.Item) (unmarked []perlimit.Item, unknown []string) {
	for _, item := range items {
		switch {
		case !slices.Contains(spec.Limits, item.Name) && !slices.Contains(spec.Removed, item.Name):
			unknown = append(unknown, item.Name)
		case item.Counts():
			unmarked = append(unmarked, item)
		}
	}
	return unmarked, unknown
}

// newBucket returns the bucket that items make under shape at now, in ms. It fails with a *store.SetupError
// if one transaction does not take so many items.
func newBucket(
	spec *store.Spec, shape *override.Resolved, entity string, items []perlimit.Item, now int64,
) (*perlimit.Bucket, error) {
	if n := len(items); n > perlimit.MostItems {
		return nil, &store.SetupError{
			What: fmt.Sprintf("%s has %d per-limit items on %s, and one transaction takes %d",
				entity, n, spec.Resource, perlimit.MostItems),
			Do: "delete those of limits that limits.yaml does not have",
		}
	}
	return &perlimit.Bucket{
		Entity: entity, Resource: spec.Resource, Names: spec.Limits, Limits: shape.Limits, Version: shape.Version,
		Op: wire.NewOp(), Items: items, Now: now,
	}, nil
}

// readShape returns the shape that the overrides of an entity and its kind give a bucket at now, in ms. get
// reads their items and the heartbeat in one consistent call.
func readShape(
	spec *store.Spec, kind int, entity string, now int64, get func([]item.Item) (wire.Batch, error),
) (*override.Resolved, error) {
	targets := [...]string{entity, spec.Kinds[kind].Name}
	keys := []item.Item{item.OverrideKey(spec.Resource, targets[0]), item.OverrideKey(spec.Resource, targets[1])}
	if spec.Regions != nil {
		keys = append(keys, item.HeartbeatKey())
	}
	read, err := get(keys)
	if err != nil {
		return nil, err
	}
	heartbeat, err := override.DecodeHeartbeat(read.Items[item.Heartbeat], now)
	if err != nil {
		return nil, err
	}
	var both [2]*override.Override
	for i := range both {
		stored, version, err := override.Decode(spec, targets[i], read.Items[item.KeyOf(keys[i])])
		if err != nil {
			return nil, err
		}
		both[i] = &override.Override{Stored: stored, Version: version, ReadAt: now}
	}
	return override.Resolve(spec, kind, both[0], both[1], heartbeat, now), nil
}
