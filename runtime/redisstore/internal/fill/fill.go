// Package fill fills buckets by the limits in force for them.
package fill

import (
	"context"
	_ "embed"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/inforce"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/window"
	"github.com/sluice-go/sluice/runtime/store"
)

// Script fills one limit of a bucket.
//
//go:embed fill.lua
var Script string

// resetScript resets one windowed limit of a bucket.
//
//go:embed reset.lua
var resetScript string

// ResetHoldsScript resets one limit of a bucket that counts holds.
//
//go:embed resetholds.lua
var ResetHoldsScript string

// Attempts is how often a fill reads the overrides.
const Attempts = 5

// Bucket is a bucket to fill.
type Bucket struct {
	DB           *database.DB
	Spec         *store.Spec
	Kind         int
	Entity, Root string // as stored; Root is the last one of its chain

	// Overrides reads what is stored at each of these. It fails with the error for the caller.
	Overrides func(ctx context.Context, spec *store.Spec, at ...string) ([]store.Stored, error)
}

// Limits fills the named limits of b. It fails as redisstore.Overrides.Fill does. After an error some of them
// may be filled.
func (b Bucket) Limits(ctx context.Context, names ...string) error {
	for i, limit := range b.Spec.Limits {
		if !b.Spec.Kinds[b.Kind].Has(i) || !slices.Contains(names, limit) {
			continue
		}
		if err := b.limit(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// limit fills the i-th limit of b. If a higher version of the overrides has filled it, limit reads them anew.
// These overrides are newer than that fill, even if an eviction has lowered the version.
func (b Bucket) limit(ctx context.Context, i int) error {
	key, filledBy := b.DB.Keys.Bucket(b.Spec.Resource, b.Spec.Limits[i], b.Root, b.Entity), ""
	kind, reset, held := &b.Spec.Kinds[b.Kind], resetScript, window.Held(b.Spec.Held, i)
	if held {
		reset = ResetHoldsScript
	}
	if held || kind.Limits[i].Windowed() { // nothing depends on the overrides
		err := redis.NewScript(reset).Run(ctx, b.DB.Client, []string{key}).Err()
		return b.DB.OperationError(ctx, database.OnKey(key, err))
	}
	for range Attempts {
		overrides, err := b.Overrides(ctx, b.Spec, b.Entity, kind.Name)
		if err != nil {
			return err
		}
		n := inforce.Sources{Own: overrides[0], OfKind: overrides[1]}.Resolve(b.Spec, b.Kind)
		args := append(text.Params(n.Limits[i], n.Version), filledBy)
		filledBy, err = redis.NewScript(Script).Run(ctx, b.DB.Client, []string{key}, args...).Text()
		if err != nil {
			return b.DB.OperationError(ctx, database.OnKey(key, err))
		}
		if filledBy == "" {
			return nil
		}
	}
	return &store.ContendedError{Resource: b.Spec.Resource, Entity: b.Entity, Attempts: Attempts}
}
