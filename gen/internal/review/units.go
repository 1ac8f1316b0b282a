package review

import (
	"slices"
	"strconv"

	"github.com/sluice-go/sluice/gen/internal/model"
)

// outcome is how a call ends, or what may come on top.
type outcome int

// The outcomes, in the order in which they are shown.
const (
	admit outcome = iota
	denySeen
	deny
	undo
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

// happens reports that calls on r can end so.
func (o outcome) happens(r *model.Resource) bool {
	switch o {
	case undo:
		return cascades(r) && r.Cascade != cascadeAtomic
	case parents:
		return cascades(r)
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
	case undo:
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

// units are capacity units, at most: a process that knows a kind's overrides already reads fewer.
type units struct{ Read, Write int }

// String is what tables say: 4 WCU.
func (u units) String() string {
	switch {
	case u.Write > 0:
		return strconv.Itoa(u.Write) + " WCU"
	case u.Read > 0:
		return strconv.Itoa(u.Read) + " RCU"
	}
	return "nothing"
}

// cost returns what an outcome costs a call for an entity of kind c, with typical ids. Reads take a unit for each item: none
// comes near the 4 KB that one pays for, as long as expressions fit theirs.
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
		return units{Read: len(chain)}
	case overrides:
		return units{Read: len(chain) + besides(r, len(chain))}
	case undo:
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
		return units{Read: 3*len(chain) + besides(r, 0)}
	case parents:
		return units{Read: links(c)}
	case expired: // a write that finds no item takes a unit, whatever it was to write
		return units{Write: 2 * twice * len(chain)}
	}
	return units{Write: twice * len(chain)}
}

// besides is what reading overrides costs more where regions share r's limits out: the heartbeat, and so many half units, since what is
// read must not be older than a window.
func besides(r *model.Resource, halves int) int {
	if r.Regions == nil {
		return 0
	}
	return 1 + halves
}

// cascadeAtomic is runtime's name of the cascade that needs a transaction.
const cascadeAtomic = "CascadeAtomic"

// chainOf returns whose buckets of r a call for an entity of kind c charges: its own, then those of its ancestors.
func chainOf(r *model.Resource, c *model.Charged) []*model.Charged {
	chain := []*model.Charged{c}
	for _, k := range c.Along {
		for _, above := range r.Charged {
			if above.Kind == k {
				chain = append(chain, above)
			}
		}
	}
	return chain
}

// links is how many parents lead from an entity of kind c to the last whose bucket a call for it charges.
func links(c *model.Charged) int {
	n := 0
	if last := len(c.Along) - 1; last >= 0 {
		for k := c.Kind; k != c.Along[last]; k = k.Parent {
			n++
		}
	}
	return n
}

// cascades reports that some call on r charges several buckets.
func cascades(r *model.Resource) bool {
	return slices.ContainsFunc(r.Charged, func(c *model.Charged) bool { return len(c.Along) > 0 })
}

// transacts reports that all of chain is charged in one transaction, for which DynamoDB bills twice.
func transacts(r *model.Resource, chain []*model.Charged) bool {
	return len(chain) > 1 && r.Cascade == cascadeAtomic
}
