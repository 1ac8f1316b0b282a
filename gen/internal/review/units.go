package review

import (
	"slices"
	"strconv"

	"github.com/sluice-go/sluice/gen/internal/model"
)

// outcome is a way in which a call ends, or an addition to its cost.
type outcome int

// The outcomes, in the order in which they are shown.
const (
	admit outcome = iota
	denySeen
	deny
	reverse
	settle
	release
	reshape
	contended
	cold
	fresh
	expired
	overrides
	parents
	outcomeCount
)

// outcomes returns all, in order.
func outcomes() []outcome {
	all := make([]outcome, outcomeCount)
	for i := range all {
		all[i] = outcome(i)
	}
	return all
}

// happens reports whether calls on r can have outcome o.
func (o outcome) happens(r *model.Resource) bool {
	switch o {
	case reverse:
		return cascades(r) && r.Cascade != cascadeAtomic
	case parents:
		return slices.ContainsFunc(r.Charged, func(c *model.Charged) bool { return links(c) > 0 })
	}
	return true
}

// String is the outcome's name in tables.
func (o outcome) String() string {
	switch o {
	case admit:
		return "admit"
	case denySeen:
		return "deny, by what was just seen"
	case deny:
		return "deny"
	case reverse:
		return "deny, by the last of a chain"
	case settle:
		return "settle"
	case release:
		return "release"
	case reshape:
		return "reshape and admit"
	case contended:
		return "besides: a race lost"
	case cold:
		return "besides: cold"
	case fresh:
		return "besides: new buckets"
	case expired:
		return "besides: expired buckets"
	case overrides:
		return "besides: overrides due"
	}
	return "besides: parents looked up"
}

// units are capacity units. A call takes at most these: a process that knows a kind's overrides reads fewer.
// HalfReads are halves of read units: an eventually consistent read of an item takes one.
type units struct{ HalfReads, Write int }

// String returns u as tables have it: 4 WCU.
func (u units) String() string {
	switch {
	case u.Write > 0:
		return strconv.Itoa(u.Write) + " WCU"
	case u.HalfReads%2 == 1:
		return strconv.Itoa(u.HalfReads/2) + ".5 RCU"
	case u.HalfReads > 0:
		return strconv.Itoa(u.HalfReads/2) + " RCU"
	}
	return "nothing"
}

// cost returns the units of an outcome for a call of an entity of kind c, with typical ids. A read takes one
// unit for each item: expressions limit an item to far less than the 4 KB of a unit.
func cost(o outcome, r *model.Resource, c *model.Charged) units {
	chain := chainOf(r, c)
	together, largest, last := 0, 0, 0 // write units of the buckets on their own
	for _, bucket := range chain {
		last = (sizeOf(r, bucket, typicalID).Most + unitBytes - 1) / unitBytes
		together, largest = together+last, max(largest, last)
	}
	twice := 1
	if transacts(r, chain) {
		twice = 2
	}
	switch o {
	case admit, reshape:
		return units{Write: twice * together}
	case denySeen:
		return units{}
	case deny:
		return units{HalfReads: 2 * len(chain)}
	case overrides:
		return units{HalfReads: 2*(len(chain)+besides(r, len(chain))) + ofPlans(chain, 1) + byName(r, chain)}
	case reverse:
		if len(chain) == 1 || twice == 2 {
			return units{}
		}
		return units{Write: 2*together - last}
	case settle, release:
		return units{Write: together}
	case contended:
		if twice == 1 { // one bucket at a time
			return units{Write: largest}
		}
		return units{Write: twice * together}
	case cold:
		return units{HalfReads: 2*(3*len(chain)+besides(r, 0)) + ofPlans(chain, 2) + 2*byName(r, chain)}
	case parents:
		return units{HalfReads: 2 * links(c)}
	case expired: // a write that finds no item takes a unit, whatever its size
		return units{Write: 2 * twice * len(chain)}
	}
	return units{Write: twice * len(chain)}
}

// Price is the write units of an admitted call on DynamoDB.
type Price struct {
	Acquire int
	Settle  int // 0 if the next acquire carries it
}

// PriceOf returns the price of calls on r for an entity of kind c, whose id is a UUID.
func PriceOf(r *model.Resource, c *model.Charged) Price {
	p := Price{Acquire: cost(admit, r, c).Write}
	if !r.LazySettle {
		p.Settle = cost(settle, r, c).Write
	}
	return p
}

// besides returns the extra cost of reading overrides if regions have r's limits in common: the heartbeat,
// and that many half units, as these reads are consistent.
func besides(r *model.Resource, halves int) int {
	if r.Regions == nil {
		return 0
	}
	return 1 + halves
}

// ofPlans returns the extra half units of reading overrides if a plan changes the numbers of a bucket of
// chain. Read are the numbers of the resource's plans, which take numbers, and the plan that the entity of
// the plans' kind is on. All buckets of the chain go by these.
func ofPlans(chain []*model.Charged, numbers int) int {
	if !slices.ContainsFunc(chain, (*model.Charged).OnPlans) {
		return 0
	}
	return 2 + numbers
}

// byName returns how many buckets of chain are of one name: each has an override of all names, too, which is
// read with its own.
func byName(r *model.Resource, chain []*model.Charged) (n int) {
	for _, c := range chain {
		if r.Template != nil && !c.AllNames {
			n++
		}
	}
	return n
}

// named reports whether r has buckets of one name.
func named(r *model.Resource) bool {
	return slices.ContainsFunc(r.Charged, func(c *model.Charged) bool { return byName(r, c.Buckets) > 0 })
}

// cascadeAtomic is runtime's name of the cascade that needs a transaction.
const cascadeAtomic = "CascadeAtomic"

// chainOf returns the buckets of r that a call for an entity of kind c charges: its own, then those of its
// ancestors.
func chainOf(r *model.Resource, c *model.Charged) []*model.Charged {
	chain := slices.Clone(c.Buckets)
	for _, k := range c.Along {
		for _, above := range r.Charged {
			if above.Kind == k {
				chain = append(chain, above.Buckets...)
			}
		}
	}
	return chain
}

// links returns the number of parents from an entity of kind c to the last entity that a call for it charges,
// or whose plan it goes by.
func links(c *model.Charged) int {
	n := max(0, c.ToPlan)
	if last := len(c.Along) - 1; last >= 0 {
		charged := 0
		for k := c.Kind; k != c.Along[last]; k = k.Parent {
			charged++
		}
		n = max(n, charged)
	}
	return n
}

// cascades reports whether some call on r charges several buckets.
func cascades(r *model.Resource) bool {
	return slices.ContainsFunc(r.Charged, func(c *model.Charged) bool { return len(chainOf(r, c)) > 1 })
}

// transacts reports whether one transaction charges all of chain, for which DynamoDB bills twice.
func transacts(r *model.Resource, chain []*model.Charged) bool {
	return len(chain) > 1 && r.Cascade == cascadeAtomic
}
