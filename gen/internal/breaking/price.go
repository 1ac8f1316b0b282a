package breaking

import (
	"slices"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/review"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

func priceRaised(c *comparison) {
	if !slices.Contains(c.old.Stores, schema.StoreDynamoDB) ||
		!slices.Contains(c.new.Stores, schema.StoreDynamoDB) {
		return
	}
	before, after := prices(c.old), prices(c.new)
	for o, n := range c.resources() {
		for _, is := range n.Charged {
			k := c.new.Kinds[is.Kind]
			if charged(c.old, o, k.Name) == nil {
				continue
			}
			place := schema.Place(n.Name, k.Name)
			was, now := before[place], after[place]
			if now.Acquire > was.Acquire || now.Settle > was.Settle {
				c.report(is.Pos, place, "write units of a call on %s for %s: %d instead of %d to be admitted, %d "+
					"instead of %d to settle, and the bill rises with them; EXPRESSIONS.md lists the costs of all calls",
					n.Name, k.Name, now.Acquire, was.Acquire, now.Settle, was.Settle)
			}
		}
	}
}

// prices returns the price of calls for each place of form AtCharged.
func prices(s *schema.Schema) map[string]review.Price {
	all := make(map[string]review.Price)
	for _, r := range model.Of(s, "").Resources {
		for _, k := range r.Charged {
			all[schema.Place(r.Name, k.Kind.Name)] = review.PriceOf(r, k)
		}
	}
	return all
}
