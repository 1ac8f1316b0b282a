package gen

import (
	"path/filepath"

	"github.com/sluice-go/sluice/gen/internal/expr"
	"github.com/sluice-go/sluice/gen/internal/lua"
	"github.com/sluice-go/sluice/gen/internal/model"
)

// Statements are the texts that stores run for calls on a resource, word for word as in generated code, and
// the attributes that they name. They are for a tool that makes such calls without generated code.
type Statements struct {
	Texts // for buckets of each kind; empty if kinds differ in their limits

	Variants   []Variant   // for buckets of some kinds each, if kinds differ in their limits
	Attributes []Attribute // of a bucket in DynamoDB, without those of its limits; the key comes first

	Scripts []string // on Redis, for chains of one bucket, of two, ...; "" for those that the store loops over
}

// Texts are the statements on DynamoDB for buckets that have the same limits.
type Texts struct {
	Create, Normal, Retry, Adjust, Reshape Statement // by write path

	Limits []LimitAttributes // of a bucket
	At     []int             // of each of Limits, its index in the resource's
}

// Variant is the Texts for buckets of some kinds.
type Variant struct {
	Texts

	Kinds []int // indexes into Schema.Kinds, and behind these, of buckets of all names together
}

// Statement is the text of one write path. Create puts an item, and so has a condition alone.
type Statement struct {
	Update, Condition string
	Operands          []Operand // in the order in which the text first names them
}

// Attribute is an attribute of a bucket that belongs to no limit.
type Attribute = model.Attribute

// AttributeRefilled is the name of the Attribute up to whose value the refill is claimed.
const AttributeRefilled = model.Refilled

// LimitAttributes are the names of one limit's attributes in a bucket.
type LimitAttributes = model.Attrs

// Operand is a value of a Statement, with the index of the limit that it belongs to, if any.
type Operand = expr.Operand

// OperandValue is which value an Operand has.
type OperandValue = expr.Value

// The values of operands.
const (
	OperandRefilled     = expr.Refilled     // rf to store
	OperandRefilledSeen = expr.RefilledSeen // rf of the image
	OperandVersion      = expr.Version      // cv to store
	OperandVersionSeen  = expr.VersionSeen  // cv of the image
	OperandOp           = expr.Op           // id of the write
	OperandTTL          = expr.TTL          // ttl to store
	OperandPlanOf       = expr.PlanOf       // po to store
	OperandNet          = expr.Net          // refill less cost
	OperandGiven        = expr.Given        // cost, negated
	OperandUsed         = expr.Used         // cost
	OperandLo           = expr.Lo           // bounds of the balance
	OperandHi           = expr.Hi
	OperandCapacity     = expr.Capacity // parameters to store
	OperandBurst        = expr.Burst
	OperandRefill       = expr.Refill
	OperandPeriod       = expr.Period
	OperandEnds         = expr.Ends     // end of the window to store
	OperandEndsSeen     = expr.EndsSeen // end of the window in the image
	OperandCell0        = expr.Cell0    // added to the cells of holds, by the parity of the epoch
	OperandCell1        = expr.Cell1
	OperandCell0Lo      = expr.Cell0Lo // bounds of the cells
	OperandCell0Hi      = expr.Cell0Hi
	OperandCell1Lo      = expr.Cell1Lo
	OperandCell1Hi      = expr.Cell1Hi
	OperandEpoch        = expr.Epoch     // lowest epoch that is counted, to store
	OperandEpochSeen    = expr.EpochSeen // lowest epoch in the image
	OperandEpochLo      = expr.EpochLo   // bounds of the lowest epoch
	OperandEpochHi      = expr.EpochHi
)

// LoadStatements returns the Statements of each resource of the limits.yaml at path, in the order of
// Schema.Resources. Its errors are those of Load.
func LoadStatements(path string) ([]Statements, error) {
	from, err := sound(path)
	if err != nil {
		return nil, err
	}
	var all []Statements
	for _, r := range model.Of(from, filepath.Base(path)).Resources {
		s := Statements{Attributes: r.Attributes()}
		if r.Variants == nil {
			s.Texts = textsOf(r)
		}
		for _, v := range r.Variants {
			of := Variant{Texts: textsOf(&v.Resource)}
			for _, c := range v.Buckets {
				of.Kinds = append(of.Kinds, c.Index)
			}
			s.Variants = append(s.Variants, of)
		}
		for _, script := range lua.Scripts(r) {
			text := script.Text
			if text != "" {
				text += "\n" // as it ends in generated code
			}
			s.Scripts = append(s.Scripts, text)
		}
		all = append(all, s)
	}
	return all, nil
}

// textsOf returns the statements of r.
func textsOf(r *model.Resource) (t Texts) {
	for _, l := range r.Limits {
		t.Limits, t.At = append(t.Limits, l.Attrs), append(t.At, l.Index)
	}
	into := []*Statement{&t.Create, &t.Normal, &t.Retry, &t.Adjust, &t.Reshape} // in the order of expr.Paths
	for i, p := range expr.Paths(r) {
		*into[i] = Statement{Update: p.Update, Condition: p.Condition, Operands: p.Operands}
	}
	return t
}
