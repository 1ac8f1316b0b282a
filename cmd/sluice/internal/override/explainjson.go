package override

import (
	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/runtime/store"
)

// The parts of an explanation in JSON.
type (
	explainedJSON struct {
		Entity   string               `json:"entity"`
		Resource string               `json:"resource"`
		Shadow   bool                 `json:"shadow"` // the limits are charged and never deny a call
		Limits   []explainedLimitJSON `json:"limits"`
		Buckets  []explainedBucket    `json:"buckets"`
	}
	explainedLimitJSON struct {
		Limit   string       `json:"limit"`
		Origins []originJSON `json:"levels"` // in order of precedence
	}
	// originJSON has no numbers where nothing is overridden.
	originJSON struct {
		At string `json:"at"` // an entity, a kind, schema, a plan and kind, or one of these after catalog. or all.
		*bucketstore.LimitJSON
		InForce bool `json:"in_force"`
	}
	// explainedBucket is in force if it has the limits in force.
	explainedBucket struct {
		bucketstore.BucketJSON
		InForce bool `json:"in_force"`
	}
)

// explained returns what JSON has of the overrides that apply, the limits in force and the buckets.
func (o explanation) explained(all []bucketstore.Bucket, stored []store.Stored) explainedJSON {
	out := explainedJSON{Entity: o.At, Resource: schemafile.Resource(o.Spec), Shadow: o.Spec.Shadow,
		Limits: []explainedLimitJSON{}, Buckets: []explainedBucket{}}
	for i, name := range o.Spec.Limits {
		limit := explainedLimitJSON{Limit: name}
		for _, from := range o.sourcesOf(stored, i) {
			limit.Origins = append(limit.Origins,
				originJSON{from.at, (*bucketstore.LimitJSON)(from.limit), from.inForce})
		}
		if limit.Origins != nil {
			out.Limits = append(out.Limits, limit)
		}
	}
	inForce := store.Resolve(o.Own().Limits, o.deciding(stored)...)
	for _, b := range all {
		out.Buckets = append(out.Buckets, explainedBucket{bucketstore.JSONOf(b),
			!b.Pending && len(differing(o.Scope, b, inForce)) == 0})
	}
	return out
}
