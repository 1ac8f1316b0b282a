package schema

import (
	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

// maxChain is the most buckets that a call charges: as many items as a transaction of DynamoDB takes.
const maxChain = 100

// checkChains reports each resource of which a call would charge too many buckets, at its longest chain.
func (r schemaReader) checkChains(s *Schema) {
	for _, res := range s.Resources {
		if res.Cascade == CascadeNone {
			continue
		}
		has := make([]int, len(s.Kinds))
		for _, c := range res.Charged {
			if c.Kind >= 0 { // an unknown kind has been reported
				has[c.Kind] = len(res.Buckets(c))
			}
		}
		longest, at := 0, Charged{}
		for _, c := range res.Charged {
			if n := chainLength(s.Kinds, has, c.Kind); n > longest {
				longest, at = n, c
			}
		}
		if longest > maxChain {
			r.add(at.Pos, rules.ChainLength, "a call on resource %s for kind %s would charge %d buckets, with those "+
				"of its ancestors: it can be at most %d, as one transaction has no more; take kinds out of its "+
				"entities, or write cascade: none", hint.Quote(res.Name), hint.Quote(s.Kinds[at.Kind].Name), longest,
				maxChain)
		}
	}
}

// chainLength returns the number of buckets that a call for a kind charges; has is how many each kind has. A
// circle of parents, which is another mistake, ends it.
func chainLength(kinds []*Kind, has []int, kind int) int {
	n := 0
	for steps := 0; kind >= 0 && steps < len(kinds); steps++ {
		n += has[kind]
		kind = kinds[kind].Parent
	}
	return n
}
