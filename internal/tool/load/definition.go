package load

import (
	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// Definition describes a resource to stores as its generated code does, without that code. The statements are
// the same, word for word; generated code spells out what Definition does in loops.
type Definition struct {
	spec       *store.Spec
	statements gen.Statements
	attributes []attributes // by limit
}

var _ codec.Resource = (*Definition)(nil)

// attributes are those of one limit.
type attributes struct{ tk, cp, bx, ra, rp, tc string }

// NewDefinition returns the definition of a resource.
func NewDefinition(spec *store.Spec, statements gen.Statements) *Definition {
	d := &Definition{spec: spec, statements: statements}
	for _, limit := range spec.Limits {
		of := func(field string) string { return "b_" + limit + "_" + field }
		d.attributes = append(d.attributes, attributes{of("tk"), of("cp"), of("bx"), of("ra"), of("rp"), of("tc")})
	}
	return d
}

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
	return codec.Item{"PK": codec.S("ENTITY#" + entity), "SK": codec.S("#BUCKET#" + d.spec.Resource)}
}

// Decode implements codec.Resource.
func (d *Definition) Decode(dst *bucket.Image, item codec.Item) error {
	r := codec.Decoder{Item: item}
	*dst = bucket.Image{
		Refilled: r.Int("rf"), Version: r.Int("cv"), TTL: r.Int("ttl"), Op: r.Text("op"),
		Balances: codec.Sized(dst.Balances, len(d.attributes)), Missing: codec.Sized(dst.Missing,
			len(d.attributes)),
	}
	for i, a := range d.attributes {
		r.Balance(&dst.Balances[i], &dst.Missing[i], a.tk, a.cp, a.bx, a.ra, a.rp, a.tc)
	}
	dst.Extra = r.Extra(d.spec.Limits...)
	return r.Err()
}

// DecodeBalances implements codec.Resource.
func (d *Definition) DecodeBalances(dst *bucket.Image, item codec.Item) error {
	r := codec.Decoder{Item: item}
	dst.Refilled = r.Int("rf")
	for i, a := range d.attributes {
		dst.Balances[i].Tokens = r.Int(a.tk)
	}
	return r.Err()
}

// Create implements codec.Resource.
func (d *Definition) Create(w *codec.Write) {
	item := d.Key(w.Entity)
	item["GSI2PK"], item["GSI2SK"] = codec.S("RESOURCE#"+d.spec.Resource), codec.S("BUCKET#"+w.Entity)
	item["entity_id"], item["resource"] = codec.S(w.Entity), codec.S(d.spec.Resource)
	item["rf"], item["cv"], item["op"], item["ttl"] = codec.N(w.RF), codec.N(w.CV), codec.S(w.Op), codec.N(w.TTL)
	for i, a := range d.attributes {
		codec.PutBalance(item, &bucket.Balance{
			Limit: w.Limits[i], Tokens: bucket.Sub(w.Limits[i].Burst, w.Cost[i]), Consumed: w.Cost[i],
		}, a.tk, a.cp, a.bx, a.ra, a.rp, a.tc)
	}
	w.Item, w.Update, w.Cond = item, "", d.statements.Create.Condition
	w.Names, w.Values = nil, nil
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
		case gen.OperandLo:
			w.Bound(o.Placeholder, w.Lo[o.Limit])
		case gen.OperandHi:
			w.Bound(o.Placeholder, w.Hi[o.Limit])
		default:
			w.N(o.Placeholder, number(w, o))
		}
	}
	w.End()
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
	default:
		return w.Limits[o.Limit].Period
	}
}
