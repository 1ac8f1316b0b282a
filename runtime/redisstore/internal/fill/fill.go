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

	// Overrides reads what is stored at each of these, Member what is stored of an entity, and Entry what is
	// stored of a name. They fail with the error for the caller.
	Overrides func(ctx context.Context, spec *store.Spec, at ...string) ([]store.Stored, error)
	Member    func(ctx context.Context, entity string) (m store.Member, found bool, err error)
	Entry     func(ctx context.Context, spec *store.Spec, name string) (e store.Entry, found bool, err error)
}

// Limits fills the named limits of b, but for prepaid ones. It fails as redisstore.Overrides.Fill does. After
// an error some of them may be filled.
func (b Bucket) Limits(ctx context.Context, names ...string) error {
	for i, limit := range b.Spec.Limits {
		kind := &b.Spec.Kinds[b.Kind]
		if !kind.Has(i) || kind.Limits[i].Prepaid() || !slices.Contains(names, limit) {
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
	key, filledBy := b.DB.Keys.Bucket(b.Spec.ResourceOf(b.Kind), b.Spec.Limits[i], b.Root, b.Entity), ""
	kind, reset, held := &b.Spec.Kinds[b.Kind], resetScript, window.Held(b.Spec.Held, i)
	if held {
		reset = ResetHoldsScript
	}
	if held || kind.Limits[i].Windowed() { // nothing depends on the overrides
		err := redis.NewScript(reset).Run(ctx, b.DB.Client, []string{key}).Err()
		return b.DB.OperationError(ctx, database.OnKey(key, err))
	}
	for range Attempts {
		n, found, err := b.inForce(ctx)
		if err != nil {
			return err
		}
		if !found { // the next call knows its plan, and takes what is missing for full
			return b.DB.OperationError(ctx, database.OnKey(key, b.DB.Client.Del(ctx, key).Err()))
		}
		args := append(text.Params(n.Limits[i], n.Version), filledBy)
		if n.Of != "" {
			args = append(args, n.Of)
		}
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

// inForce returns the limits in force for b. found is false if they depend on a plan, and nothing says whose.
func (b Bucket) inForce(ctx context.Context) (n inforce.Numbers, found bool, err error) {
	var from inforce.Sources
	kind := b.Spec.Kinds[b.Kind].Name
	at := []string{b.Entity, kind}
	if b.Spec.OnPlans(b.Kind) {
		if from.OnPlan.Of, err = b.planOf(ctx); err != nil || from.OnPlan.Of == "" {
			return n, false, err
		}
		m, _, err := b.Member(ctx, from.OnPlan.Of)
		if err != nil {
			return n, false, err
		}
		from.OnPlan.Name, from.OnPlan.Version = m.Plan, m.PlanVersion
		at = append(at, store.PlanAt(m.Plan, kind))
		if m.Plan != "" && !slices.Contains(b.Spec.Plans.Names, m.Plan) { // the most of all plans
			for _, plan := range b.Spec.Plans.Names {
				at = append(at, store.PlanAt(plan, kind))
			}
		}
	}
	stored, err := b.Overrides(ctx, store.TemplateOf(b.Spec), at...)
	if err != nil {
		return n, false, err
	}
	from.Own, from.OfKind = stored[0], stored[1]
	if from.Changed = stored[2:]; len(from.Changed) > 0 {
		from.Plans = from.Changed[0].Revision
	}
	if err := b.name(ctx, &from); err != nil {
		return n, false, err
	}
	return from.Resolve(b.Spec, b.Kind), true, nil
}

// name adds what is stored of the name that b is of. An entry that is no longer there leaves the one of the
// Spec.
func (b Bucket) name(ctx context.Context, from *inforce.Sources) error {
	if !b.Spec.ByName(b.Kind) {
		return nil
	}
	own, err := b.Overrides(ctx, b.Spec, b.Entity)
	if err != nil {
		return err
	}
	from.OfAll, from.Own, from.Entry = from.Own, own[0], b.Spec.Entry
	e, found, err := b.Entry(ctx, store.TemplateOf(b.Spec), b.Spec.Entry.Name)
	if err == nil && found && e.Alias == "" && e.Version > from.Entry.Version {
		from.Entry = &e
	}
	return err
}

// planOf returns the entity whose plan b has: b's own, its root, that of its last call, or the one to which
// stored parents lead. It is "" if none of these tells.
func (b Bucket) planOf(ctx context.Context) (string, error) {
	of := b.Spec.Plans.Kind
	if b.Spec.EntityKind(b.Kind) == of {
		return b.Entity, nil
	}
	if kind, err := store.KindOf(b.Spec.Kinds, b.Root); err == nil && kind == of {
		return b.Root, nil
	}
	pipe := b.DB.Client.Pipeline()
	var last []*redis.SliceCmd
	for _, key := range b.DB.Keys.BucketKeys(b.Spec.ResourceOf(b.Kind), b.Root, b.Entity, b.Spec.Limits) {
		last = append(last, pipe.HMGet(ctx, key, text.OfField))
	}
	if err := database.Exec(ctx, pipe); err != nil {
		return "", b.DB.OperationError(ctx, err)
	}
	for _, reply := range last {
		if entity, ok := reply.Val()[0].(string); ok {
			return entity, nil
		}
	}
	entity := b.Entity
	for kind := b.Spec.EntityKind(b.Kind); kind != of; kind = b.Spec.Kinds[kind].Parent {
		m, found, err := b.Member(ctx, entity)
		if err != nil {
			return "", err
		}
		if _, err := b.Spec.ParentOf(kind, entity, m, found); err != nil {
			return "", nil //nolint:nilerr // nobody has stored it
		}
		entity = m.Parent
	}
	return entity, nil
}
