package expr

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// MaxBytes is the longest expression that DynamoDB takes. Its other limit, 300 operators and functions,
// cannot be reached within these bytes: no clause has more than five of them, and the shortest such clause
// takes 100 bytes.
const MaxBytes = 4096

// RuleSize is the rule that Check holds resources against.
const RuleSize = "EXPRESSION_SIZE"

// Rules returns the rules of Check.
func Rules() []schema.Rule {
	purpose := fmt.Sprintf("The expressions of a resource fit into the %d bytes that DynamoDB takes.", MaxBytes)
	return []schema.Rule{{ID: RuleSize, Purpose: purpose, At: "resources.<resource>"}}
}

// Check reports each resource of s that has too many limits for DynamoDB's expressions. It reads only the
// limits' names, so it can run on a schema with other problems.
func Check(s *schema.Schema) schema.Problems {
	var problems schema.Problems
	for _, r := range s.Resources {
		texts := model.ResourceOf(r).Texts()
		m := slices.MaxFunc(texts, func(a, b *model.Resource) int {
			return cmp.Compare(longest(a).bytes, longest(b).bytes)
		})
		most := longest(m)
		if most.bytes <= MaxBytes {
			continue
		}
		problems.Add(r.Pos, RuleSize, "resource %q does not fit DynamoDB's expressions of %d bytes: the %s of "+
			"path %s takes %d, %d over; %s",
			r.Name, MaxBytes, most.what, most.path, most.bytes, most.bytes-MaxBytes, cure(m))
	}
	return problems
}

// cure returns the advice about a resource whose expressions are too long.
func cure(r *model.Resource) string {
	fits := sort.Search(len(r.Limits), func(n int) bool { // the most limits that fit
		fewer := *r
		fewer.Limits = r.Limits[:n+1]
		return longest(&fewer).bytes > MaxBytes
	})
	if fits == 0 {
		return "take out of removed what no bucket holds any more"
	}
	what := "limits"
	if len(r.Limits)-fits == 1 {
		what = "limit"
	}
	s := fmt.Sprintf("it has %d %s too many: split the resource, or shorten the names of its limits",
		len(r.Limits)-fits, what)
	if len(r.Removed) > 0 {
		s += ", or take out of removed what no bucket holds any more"
	}
	return s
}

// size is how long one expression is.
type size struct {
	path, what string
	bytes      int
}

// longest returns the longest expression of r.
func longest(r *model.Resource) size {
	var most size
	for _, p := range Paths(r) {
		for _, s := range []size{{p.Method, "update", len(p.Update)}, {p.Method, "condition", len(p.Condition)}} {
			if s.bytes > most.bytes {
				most = s
			}
		}
	}
	return most
}
