package chains

import (
	"cmp"

	"github.com/sluice-go/sluice/runtime/store"
)

// CheckShared returns an *store.InvalidError if two of parts charge one bucket as different resources. One is
// of limits.yaml, and the other a name of a template that goes on with its buckets. Their limits may differ,
// so the costs cannot be added up, and no transaction has two writes of one bucket.
func CheckShared(parts []store.Part) error {
	for i := range parts {
		for j := range i {
			if entity := shared(&parts[i], &parts[j]); entity != "" {
				one, other := parts[j].Def.Spec(), parts[i].Def.Spec()
				return &store.InvalidError{
					Resource: other.Resource, Field: "claims", Value: entity, Reason: "have one bucket twice, of the " +
						"resources " + opened(one) + " and " + opened(other) + ": acquire them one after the other",
				}
			}
		}
	}
	return nil
}

// shared returns the entity of a bucket that both parts charge, as different resources; "" for none.
func shared(p, q *store.Part) (entity string) {
	a, b := p.Def.Spec(), q.Def.Spec()
	if opened(a) == opened(b) {
		return ""
	}
	for i := range p.Buckets {
		for j := range q.Buckets {
			x, y := &p.Buckets[i], &q.Buckets[j]
			if x.Entity == y.Entity && a.ResourceOf(x.Kind) == b.ResourceOf(y.Kind) {
				return x.Entity
			}
		}
	}
	return ""
}

// opened returns the resource of limits.yaml that spec is, or is a name of.
func opened(spec *store.Spec) string { return cmp.Or(spec.Template, spec.Resource) }
