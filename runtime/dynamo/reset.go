package dynamo

import "context"

// Reset fills the bucket of entity, as stored, on resource up to its burst: the named limits, or all. It returns the
// limits that it filled, none where there is no bucket, which is full. It fails with an error that names the bucket's
// limits if it lacks a named one.
func Reset(ctx context.Context, client API, table, entity, resource string, limits ...string) ([]string, error) {
	panic("to come")
}
