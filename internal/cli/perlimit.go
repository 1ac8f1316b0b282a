package cli

import "github.com/sluice-go/sluice/runtime/dynamo/perlimit"

// becomesBucket says what makes a bucket of per-limit items.
const becomesBucket = "in per-limit items, which become a bucket by its next acquire or by `sluice migrate`"

// ofItems returns what those per-limit items hold at now (ms) that no bucket has taken over, nil where there are none.
func ofItems(entity, resource string, items []perlimit.Item, now int64) *found {
	b := &found{entity: entity, resource: resource, pending: true}
	for _, i := range items {
		if i.Counts() {
			i.Tokens = i.At(now)
			b.limits = append(b.limits, nowOf(i.Name, i.Balance, now, now))
		}
	}
	if len(b.limits) == 0 {
		return nil
	}
	return b
}
