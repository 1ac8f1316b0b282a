// Package untyped has the resources of a limits.yaml without generated code: their Specs, and the Definitions
// with which stores make exactly the calls that generated code makes.
package untyped

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// Definition describes a resource to stores as its generated code does, without that code. Package gen gives
// it the same statements and attributes, word for word. It loops over what generated code spells out.
type Definition struct {
	spec       *store.Spec
	statements gen.Statements
}

var (
	_ codec.Resource = (*Definition)(nil)
	_ codec.ByKind   = (*byKind)(nil)
)

// NewDefinition returns the definition of a resource whose kinds all have its limits.
func NewDefinition(spec *store.Spec, statements gen.Statements) *Definition {
	return &Definition{spec: spec, statements: statements}
}

// Define returns the definition of a resource, for either store.
func Define(spec *store.Spec, statements gen.Statements) store.Definition {
	whole := NewDefinition(spec, statements)
	if statements.Variants == nil {
		return whole
	}
	d := &byKind{spec: spec, of: make([]codec.Resource, len(spec.Kinds))}
	for _, v := range statements.Variants {
		own := statements
		own.Texts, own.Variants = v.Texts, nil
		for _, kind := range v.Kinds {
			d.of[kind] = NewDefinition(spec, own)
		}
	}
	return d
}

// byKind is a Definition for each kind of a resource whose kinds differ in their limits.
type byKind struct {
	spec *store.Spec
	of   []codec.Resource
}

// Spec implements store.Definition.
func (d *byKind) Spec() *store.Spec { return d.spec }

// Of implements codec.ByKind.
func (d *byKind) Of(kind int) codec.Resource { return d.of[kind] }

// Script implements redisstore.Scripter: generated code has none either.
func (*byKind) Script(int) string { return "" }

// Spec implements store.Definition.
func (d *Definition) Spec() *store.Spec { return d.spec }

// Script implements redisstore.Scripter.
func (d *Definition) Script(chain int) string {
	if chain < 1 || chain > len(d.statements.Scripts) {
		return ""
	}
	return d.statements.Scripts[chain-1]
}

// Key implements codec.Resource.
func (d *Definition) Key(entity string) codec.Item {
	w := codec.Write{Entity: entity}
	key := codec.Item{}
	for _, a := range d.statements.Attributes[:2] {
		key[a.Name] = value(&w, a)
	}
	return key
}

// Decode implements codec.Resource.
func (d *Definition) Decode(dst *bucket.Image, item codec.Item) error {
	r := codec.Decoder{Item: item}
	r.Image(dst, len(d.spec.Limits))
	if d.spec.Plans != nil {
		r.PlanOf(dst)
	}
	clear(dst.Balances)
	clear(dst.Missing)
	names := make([]string, len(d.statements.Limits))
	for n, a := range d.statements.Limits {
		i := d.statements.At[n]
		names[n] = a.Limit
		balance(&r, &dst.Balances[i], &dst.Missing[i], a)
	}
	dst.Extra = r.Extra(names...)
	return r.Err()
}

// balance reads the attributes of one limit. One that counts holds and has no windows is in flight.
func balance(r *codec.Decoder, b *bucket.Balance, missing *bool, a gen.LimitAttributes) {
	switch {
	case a.Ends == "" && a.Epoch == "":
		r.Balance(b, missing, a.Tokens, a.Capacity, a.Burst, a.Refill, a.Period, a.Consumed)
	case a.Ends == "":
		r.InFlight(b, missing, a.Tokens, a.Capacity, a.Burst, a.Refill, a.Period, a.Consumed, a.Cells[0],
			a.Cells[1], a.Epoch)
	default:
		r.Window(b, missing, a.Tokens, a.Capacity, a.Burst, a.Refill, a.Period, a.Consumed, a.Ends)
		if a.Epoch != "" {
			r.Holds(b, missing, a.Cells[0], a.Cells[1], a.Epoch)
		}
	}
}

// DecodeBalances implements codec.Resource.
func (d *Definition) DecodeBalances(dst *bucket.Image, item codec.Item) error {
	r := codec.Decoder{Item: item}
	dst.Refilled = r.Int(gen.AttributeRefilled)
	for n, a := range d.statements.Limits {
		b := &dst.Balances[d.statements.At[n]]
		if b.Tokens = r.Int(a.Tokens); a.Ends != "" {
			b.Ends = r.Int(a.Ends)
		}
		if a.Epoch != "" {
			b.Cells, b.Epoch = [2]int64{r.Int(a.Cells[0]), r.Int(a.Cells[1])}, r.Int(a.Epoch)
		}
	}
	return r.Err()
}

// Create implements codec.Resource.
func (d *Definition) Create(w *codec.Write) {
	item := codec.Item{}
	for _, a := range d.statements.Attributes {
		if of, ok := strings.CutSuffix(a.Text, d.spec.Resource); ok && w.Resource != "" {
			a.Text = of + w.Resource // a bucket of a name
		}
		item[a.Name] = value(w, a)
	}
	for n, a := range d.statements.Limits {
		full := w.Full(d.statements.At[n])
		codec.PutBalance(item, &full, a.Tokens, a.Capacity, a.Burst, a.Refill, a.Period, a.Consumed)
		if a.Ends != "" {
			item[a.Ends] = codec.N(full.Ends)
		}
		if a.Epoch != "" && full.Holds() {
			item[a.Cells[0]], item[a.Cells[1]] = codec.N(full.Cells[0]), codec.N(full.Cells[1])
			item[a.Epoch] = codec.N(full.Epoch)
		}
	}
	w.Put(item, d.statements.Create.Condition)
}

// value returns the value of an attribute in the bucket that w creates. Field.Write names the field of w.
func value(w *codec.Write, a gen.Attribute) types.AttributeValue {
	if a.Field == nil {
		if a.Entity {
			return codec.S(a.Text + w.Entity)
		}
		return codec.S(a.Text)
	}
	switch a.Field.Write {
	case "RF":
		return codec.N(w.RF)
	case "CV":
		return codec.N(w.CV)
	case "Op":
		return codec.S(w.Op)
	case "PlanOf":
		return codec.S(w.PlanOf)
	default:
		return codec.N(w.TTL)
	}
}

// Normal implements codec.Resource.
func (d *Definition) Normal(w *codec.Write) { fill(w, d.statements.Normal) }

// Retry implements codec.Resource.
func (d *Definition) Retry(w *codec.Write) { fill(w, d.statements.Retry) }

// Adjust implements codec.Resource.
func (d *Definition) Adjust(w *codec.Write) { fill(w, d.statements.Adjust) }

// Reshape implements codec.Resource.
func (d *Definition) Reshape(w *codec.Write) { fill(w, d.statements.Reshape) }

// fill gives w a statement with its operands.
func fill(w *codec.Write, s gen.Statement) {
	w.Begin(s.Update, s.Condition)
	for _, o := range s.Operands {
		switch o.Value {
		case gen.OperandOp:
			w.S(o.Placeholder, w.Op)
		case gen.OperandPlanOf:
			w.S(o.Placeholder, w.PlanOf)
		case gen.OperandLo:
			w.Bound(o.Placeholder, w.Lo[o.Limit])
		case gen.OperandHi:
			w.Bound(o.Placeholder, w.Hi[o.Limit])
		case gen.OperandCell0Lo, gen.OperandCell0Hi, gen.OperandCell1Lo, gen.OperandCell1Hi, gen.OperandEpochLo,
			gen.OperandEpochHi:
			w.Bound(o.Placeholder, boundOf(&w.Holds[o.Limit], o.Value))
		default:
			w.N(o.Placeholder, number(w, o))
		}
	}
	w.End()
}

// boundOf returns a bound of the cells or of the lowest epoch of a limit.
func boundOf(h *bucket.Hold, v gen.OperandValue) int64 {
	switch v {
	case gen.OperandCell0Lo:
		return h.Lo[0]
	case gen.OperandCell0Hi:
		return h.Hi[0]
	case gen.OperandCell1Lo:
		return h.Lo[1]
	case gen.OperandCell1Hi:
		return h.Hi[1]
	case gen.OperandEpochLo:
		return h.First
	default:
		return h.Last
	}
}

// number returns the value of an operand that is a number and no bound.
func number(w *codec.Write, o gen.Operand) int64 {
	switch o.Value {
	case gen.OperandRefilled:
		return w.RF
	case gen.OperandRefilledSeen:
		return w.Image.Refilled
	case gen.OperandVersion:
		return w.CV
	case gen.OperandVersionSeen:
		return w.Image.Version
	case gen.OperandTTL:
		return w.TTL
	case gen.OperandNet:
		return bucket.Sub(w.Fill[o.Limit], w.Cost[o.Limit])
	case gen.OperandGiven:
		return -w.Cost[o.Limit]
	case gen.OperandUsed:
		return w.Cost[o.Limit]
	case gen.OperandCapacity:
		return w.Limits[o.Limit].Capacity
	case gen.OperandBurst:
		return w.Limits[o.Limit].Burst
	case gen.OperandRefill:
		return w.Limits[o.Limit].Refill
	case gen.OperandEnds:
		return w.Ends[o.Limit]
	case gen.OperandEndsSeen:
		return w.Image.Balances[o.Limit].Ends
	case gen.OperandCell0:
		return w.Holds[o.Limit].Change[0]
	case gen.OperandCell1:
		return w.Holds[o.Limit].Change[1]
	case gen.OperandEpoch:
		return w.Holds[o.Limit].Epoch
	case gen.OperandEpochSeen:
		return w.Image.Balances[o.Limit].Epoch
	default:
		return w.Limits[o.Limit].Period
	}
}
