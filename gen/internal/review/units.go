package review

import (
	"slices"
	"strconv"

	"github.com/sluice-go/sluice/gen/internal/model"
)

// Outcome is how a call ends, or what may come on top.
type Outcome int

// The outcomes, in the order in which they are shown.
const (
	Admit Outcome = iota
	DenySeen
	Deny
	Undo
	Settle
	Release
	Reshape
	Contended
	Cold
	Fresh
	Overrides
	outcomes
)

// Outcomes returns all, in order.
func Outcomes() []Outcome {
	all := make([]Outcome, outcomes)
	for i := range all {
		all[i] = Outcome(i)
	}
	return all
}

// happens reports that calls on r can end so.
func (o Outcome) happens(r *model.Resource) bool {
	return o != Undo || cascades(r) && r.Cascade != cascadeAtomic
}

// String is the outcome's name in tables.
func (o Outcome) String() string {
	switch o {
	case Admit:
		return "admit"
	case DenySeen:
		return "deny, by what was just seen"
	case Deny:
		return "deny"
	case Undo:
		return "deny, by the last of a chain"
	case Settle:
		return "settle"
	case Release:
		return "release"
	case Reshape:
		return "reshape and admit"
	case Contended:
		return "besides: a race lost"
	case Cold:
		return "besides: cold"
	case Fresh:
		return "besides: new buckets"
	}
	return "besides: overrides due"
}

// meaning says in the document what is behind the name.
func (o Outcome) meaning() string {
	switch o {
	case Admit:
		return "the steady state: buckets are remembered, nothing is read; who comes while a write is under way shares the next"
	case DenySeen:
		return "within a second of a read, a refusal or a write of its own that showed the balances; a transaction shows none"
	case Deny:
		return "otherwise: balances are read before a caller is turned away"
	case Undo:
		return "with `cascade: compensated`: what the others were charged is given back"
	case Settle:
		return "more or less was used than was taken; nothing if it was just that"
	case Release:
		return "all is given back"
	case Reshape:
		return "the first after `revision` was raised or an override changed; one write more tells the table of a revision, once a process"
	case Contended:
		return "another process was faster: DynamoDB bills a refused write as an applied one"
	case Cold:
		return "the first call of a process on these buckets reads each, and two levels of overrides"
	case Fresh:
		return "GSI2 gets the keys of a bucket, this once; no update touches an index"
	}
	return "once a minute the two levels of each bucket are read again, at half a unit"
}

// Units are capacity units, at most: a process that knows a kind's overrides already reads fewer.
type Units struct{ Read, Write int }

// String is what tables say: 4 WCU.
func (u Units) String() string {
	switch {
	case u.Write > 0:
		return strconv.Itoa(u.Write) + " WCU"
	case u.Read > 0:
		return strconv.Itoa(u.Read) + " RCU"
	}
	return "nothing"
}

// Cost returns what an outcome costs a call for an entity of kind c, whose ids, and those of its ancestors, have so many bytes.
// Reads take a unit for each item: none comes near the 4 KB that one pays for, as long as expressions fit theirs.
func Cost(o Outcome, r *model.Resource, c *model.Charged, id int) Units {
	chain := chainOf(r, c)
	together, largest, last := 0, 0, 0 // write units of the buckets on their own
	for _, bucket := range chain {
		last = (sizeOf(r, bucket, id).Most + unitBytes - 1) / unitBytes
		together, largest = together+last, max(largest, last)
	}
	twice := 1
	if transacts(r, chain) {
		twice = 2
	}
	switch o {
	case Admit, Reshape:
		return Units{Write: twice * together}
	case DenySeen:
		return Units{}
	case Deny, Overrides:
		return Units{Read: len(chain)}
	case Undo:
		if len(chain) == 1 || twice == 2 {
			return Units{}
		}
		return Units{Write: 2*together - last}
	case Settle, Release:
		return Units{Write: together}
	case Contended:
		if twice == 1 { // one bucket at a time
			return Units{Write: largest}
		}
		return Units{Write: twice * together}
	case Cold:
		return Units{Read: 3 * len(chain)}
	}
	return Units{Write: twice * len(chain)}
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

// cascades reports that some call on r charges several buckets.
func cascades(r *model.Resource) bool {
	return slices.ContainsFunc(r.Charged, func(c *model.Charged) bool { return len(c.Along) > 0 })
}

// transacts reports that all of chain is charged in one transaction, for which DynamoDB bills twice.
func transacts(r *model.Resource, chain []*model.Charged) bool {
	return len(chain) > 1 && r.Cascade == cascadeAtomic
}
