package bucketstore

import "github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"

// ofItems returns the state in per-limit items at now, in ms. It returns nil if a bucket has replaced all
// of them, or there are none.
func ofItems(entity, resource string, items []perlimit.Item, now int64) *Bucket {
	b := &Bucket{Entity: entity, Resource: resource, Pending: true}
	for _, i := range items {
		if i.Counts() {
			i.Tokens = i.At(now)
			b.Limits = append(b.Limits, nowOf(i.Name, i.Balance, now, now))
		}
	}
	if len(b.Limits) == 0 {
		return nil
	}
	return b
}
