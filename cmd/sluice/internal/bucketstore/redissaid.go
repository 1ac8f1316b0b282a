package bucketstore

import (
	"context"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// said is what decides the limits of buckets in a Redis before the schema does.
type said struct {
	spec   *store.Spec
	own    map[string]store.Stored // of a name of a template, by At
	stored map[string]store.Stored // of the resource or the template, by At
	on     map[string]store.OnPlan // by entity that is put on plans
}

// said reads what decides the limits of buckets of spec's resource.
func (s *Redis) said(ctx context.Context, spec *store.Spec, buckets []redisstore.StoredBucket) (said, error) {
	r := said{spec, map[string]store.Stored{}, map[string]store.Stored{}, map[string]store.OnPlan{}}
	var at, entities []string
	for _, b := range buckets {
		kind, _, _ := strings.Cut(b.Entity, "-")
		at, entities = append(at, b.Entity, kind), append(entities, b.Entity)
		of := r.planOf(b)
		if of == "" {
			continue
		}
		on, known := r.on[of]
		if !known {
			m, _, err := s.Members().Get(ctx, of)
			if err != nil {
				return r, err
			}
			on = store.OnPlan{Of: of, Name: m.Plan, Version: m.PlanVersion}
			r.on[of] = on
		}
		at = append(at, store.PlanAt(on.Name, kind))
	}
	get := func(into map[string]store.Stored, spec *store.Spec, at []string) error {
		slices.Sort(at)
		all, err := s.Overrides().Get(ctx, spec, slices.Compact(at)...)
		for _, stored := range all {
			into[stored.At] = stored
		}
		return err
	}
	err := get(r.stored, store.TemplateOf(spec), at)
	if err == nil && spec.Template != "" && under(spec) != spec.Template {
		err = get(r.own, spec, entities)
	}
	return r, err
}

// planOf returns the entity whose plan b has: its own, that of its last call, or its root. It is "" if no
// plan concerns b, or if nothing says whose.
func (r *said) planOf(b redisstore.StoredBucket) string {
	if r.spec.Plans == nil {
		return ""
	}
	of := r.spec.Kinds[r.spec.Plans.Kind].Prefix
	if strings.HasPrefix(b.Entity, of) {
		return b.Entity
	}
	for _, l := range b.Limits {
		if l.Of != "" {
			return l.Of
		}
	}
	kind, err := store.KindOf(r.spec.Kinds, b.Entity)
	if err != nil || !r.spec.OnPlans(kind) || !strings.HasPrefix(b.Root, of) {
		return ""
	}
	return b.Root
}

// of returns what decides the limits of b, of a kind: the first that has a limit. version is the sum of the
// versions.
func (r *said) of(b redisstore.StoredBucket, kind int) (overrides []store.Stored, version int64) {
	name := r.spec.Kinds[kind].Name
	ofKind := r.stored[name]
	overrides = []store.Stored{r.own[b.Entity], r.stored[b.Entity]}
	version = Versions(overrides) + Version(ofKind)
	of := r.planOf(b)
	on := r.on[of]
	at := store.PlanAt(on.Name, name)
	if r.spec.ByName(kind) {
		overrides = append(overrides, r.spec.Entry.Sources(r.spec, on.Name, kind)...)
		version += r.spec.Entry.Version
	}
	if of != "" {
		version += Version(r.stored[at]) + on.Version
	}
	if on.Name != "" {
		numbers, _ := r.spec.Plans.NumbersOf(r.spec, on.Name, kind)
		overrides = append(overrides, r.stored[at], numbers)
	}
	return append(overrides, ofKind), version
}
