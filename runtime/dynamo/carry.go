package dynamo

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/runtime/internal/item"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/perlimit"
	"github.com/sluice-go/sluice/runtime/store"
)

// perLimitItems reads the per-limit items of entity on resource, by limit. It tells each of its queries.
func perLimitItems(
	ctx context.Context, api wire.API, table, entity, resource string, tell func(*dynamodb.QueryOutput, error),
) (items []perlimit.Item, err error) {
	in := perlimit.Query(table, entity, resource)
	for {
		out, err := api.Query(ctx, in, wire.NoRetry)
		tell(out, err)
		if err != nil {
			return nil, err
		}
		for _, raw := range out.Items {
			decoded, err := perlimit.Decode(raw)
			if err != nil {
				return nil, &store.SetupError{
					What: fmt.Sprintf(
						"the per-limit item %s is malformed",
						item.KeyOf(raw).String(),
					), Err: err, Do: "mend or delete it",
				}
			}
			items = append(items, decoded)
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return items, nil
		}
	}
}

// ofSchema returns those of items that count and whose limit spec has or had, and the limits of those that it
// never had.
func ofSchema(spec *store.Spec, items []perlimit.Item) (counting []perlimit.Item, strays []string) {
	for _, item := range items {
		switch {
		case !slices.Contains(spec.Limits, item.Name) && !slices.Contains(spec.Removed, item.Name):
			strays = append(strays, item.Name)
		case item.Counts():
			counting = append(counting, item)
		}
	}
	return counting, strays
}

// made returns the bucket that items make under s. More than one transaction takes are a *store.SetupError.
func made(
	spec *store.Spec,
	s *override.Resolved,
	entity string,
	items []perlimit.Item,
	now int64,
) (*perlimit.Bucket, error) {
	if n := len(items); n > perlimit.MostItems {
		return nil, &store.SetupError{
			What: fmt.Sprintf(
				"%s has %d per-limit items on %s, and one transaction takes %d",
				entity,
				n,
				spec.Resource,
				perlimit.MostItems,
			),
			Do: "delete those of limits that limits.yaml does not have",
		}
	}
	return &perlimit.Bucket{
		Entity: entity, Resource: spec.Resource, Names: spec.Limits, Limits: s.Limits, Version: s.Version, Op: wire.NewOp(), Items: items, Now: now,
	}, nil
}
