package bucketstore

import "github.com/sluice-go/sluice/runtime/dynamo/perlimit"

// ofItems returns what those per-limit items hold at now (ms) that no bucket has taken over, nil where there are none.
func ofItems(entity, resource string, items []perlimit.Item, now int64) *Bucket {
	b := &Bucket{Entity: entity, resource: resource, Pending: true}
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
