package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// The instant of samples, in milliseconds and far from the expiry of their buckets, and what those have as
// cv.
const (
	t0      = 4_000_000_000_000
	version = 100_000_000_000_000
)

// sample is a bucket of a resource and a Normal on it.
type sample struct {
	resource codec.Resource
	entity   string
	hash     string // of its key
	sort     string
	write    *codec.Write // used again and again, as the store's pool does
	item     codec.Item   // as DynamoDB returns it
	names    []limitNames
}

// limitNames are the attributes of a limit that an update names.
type limitNames struct{ tk, tc string }

// newSample returns one for the entity kind that the resource charges.
func newSample(r codec.Resource) *sample {
	spec := r.Spec()
	var kind store.Kind
	for _, k := range spec.Kinds {
		if k.Limits != nil {
			kind = k
		}
	}
	n := len(kind.Limits)
	write := func() *codec.Write {
		return &codec.Write{
			Entity: kind.Prefix + "123", Limits: kind.Limits,
			Cost: make([]int64, n), Fill: make([]int64, n), Lo: make([]int64, n), Hi: make([]int64, n),
			RF: t0, CV: version, TTL: t0/1000 + 3600, Op: "abcdefghijkl",
		}
	}
	put := write() // another one, for the item may live in it
	r.Create(put)
	s := &sample{resource: r, entity: put.Entity, write: write(), item: put.Item}
	s.hash, s.sort = "ENTITY#"+s.entity, "#BUCKET#"+spec.Resource
	for i, l := range kind.Limits {
		s.write.Cost[i], s.write.Fill[i], s.write.Lo[i], s.write.Hi[i] = 1_000, 1_667, 1_000, l.Burst-1_667
		s.names = append(s.names, limitNames{"b_" + spec.Limits[i] + "_tk", "b_" + spec.Limits[i] + "_tc"})
	}
	s.write.Image = &bucket.Image{Refilled: t0, Version: version}
	return s
}

// advance makes the next write another one than the last.
func (s *sample) advance() {
	s.write.RF++
	s.write.Image.Refilled++
}

// generated builds the update as the store does: text and values by the generated builder, and the key, of
// whose parts the store remembers those that are no constants.
func (s *sample) generated() {
	s.advance()
	s.write.SetKey(s.hash, s.sort)
	s.resource.Normal(s.write)
}

// byExpression builds the same update with the SDK's packages.
func (s *sample) byExpression() (*dynamodb.UpdateItemInput, error) {
	s.advance()
	w := s.write
	name, value := expression.Name, expression.Value
	update := expression.Set(name("rf"), value(w.RF)).Set(name("op"), value(w.Op)).Set(name("ttl"), value(w.TTL))
	cond := name("rf").Equal(value(w.Image.Refilled)).
		And(name("cv").Equal(value(w.Image.Version)), name("op").NotEqual(value(w.Op)))
	for i, n := range s.names {
		update = update.Add(name(n.tk), value(w.Fill[i]-w.Cost[i])).Add(name(n.tc), value(w.Cost[i]))
		cond = cond.And(name(n.tk).Between(value(w.Lo[i]), value(w.Hi[i])))
	}
	built, err := expression.NewBuilder().WithUpdate(update).WithCondition(cond).Build()
	if err != nil {
		return nil, err
	}
	key, err := attributevalue.MarshalMap(struct{ PK, SK string }{"ENTITY#" + s.entity,
		"#BUCKET#" + s.resource.Spec().Resource})
	if err != nil {
		return nil, err
	}
	return &dynamodb.UpdateItemInput{
		Key:              key,
		UpdateExpression: built.Update(), ConditionExpression: built.Condition(),
		ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
	}, nil
}

// structure returns a pointer to a new struct with a field for each attribute that a bucket's image has.
// UnmarshalMap learns a type once, so that one made by reflection costs it the same as a written one.
func (s *sample) structure() any {
	var fields []reflect.StructField
	add := func(kind reflect.Type, attrs ...string) {
		for _, attr := range attrs {
			fields = append(fields, reflect.StructField{
				Name: fmt.Sprintf("F%d", len(fields)), Type: kind,
				Tag: reflect.StructTag(fmt.Sprintf("dynamodbav:%q", attr)),
			})
		}
	}
	integer := reflect.TypeFor[int64]()
	add(integer, "rf", "cv", "ttl")
	add(reflect.TypeFor[string](), "op")
	for _, limit := range s.resource.Spec().Limits {
		p := "b_" + limit + "_"
		add(integer, p+"tk", p+"cp", p+"bx", p+"ra", p+"rp", p+"tc")
	}
	return reflect.New(reflect.StructOf(fields)).Interface()
}

// codecExperiments are on what the generated builders and decoders take.
func codecExperiments(resources map[string]codec.Resource, c conditions) (all []experiment) {
	for _, of := range []struct{ resource, limits string }{{"two", "2 limits"}, {"ten", "10 limits"}} {
		s := newSample(resources[of.resource])
		all = append(all, contest(c, "build Normal, "+of.limits+", vs expression.Builder + MarshalMap", atLeast(40),
			atMost(1),
			func() error { s.generated(); return nil },
			func() error { _, err := s.byExpression(); return err }))
	}
	for _, of := range []struct{ resource, limits string }{{"two", "2 limits"}, {"ten", "10 limits"}} {
		s := newSample(resources[of.resource])
		img := bucket.Image{Balances: make([]bucket.Balance, len(s.names)), Missing: make([]bool, len(s.names))}
		whole := s.structure()
		theirs := func() error { return attributevalue.UnmarshalMap(s.item, whole) }
		all = append(all,
			contest(c, "decode ALL_NEW, "+of.limits+", all fields, vs UnmarshalMap", atLeast(3.5), atMost(0),
				func() error { return s.resource.Decode(&img, s.item) }, theirs),
			contest(c, "decode ALL_NEW, "+of.limits+", rf and tk only, vs UnmarshalMap of all", atLeast(15), atMost(0),
				func() error { return s.resource.DecodeBalances(&img, s.item) }, theirs))
	}
	return all
}

// contest is how many times faster ours is than theirs, and what ours allocates.
func contest(c conditions, what string, faster, allocs bound, ours, theirs func() error) experiment {
	return experiment{
		rows: []row{{what, []figure{
			{name: "times faster", format: "%.1fx", want: faster},
			{name: "allocations", format: "%.0f allocs", want: allocs},
			{name: "ns per call", format: "%.0f ns"},
		}}},
		measure: func(context.Context) ([]float64, error) {
			var failed error
			try := func(f func() error) func() {
				return func() {
					if err := f(); err != nil {
						failed = errors.Join(failed, err)
					}
				}
			}
			times, ns := inTurns(c.timing, try(theirs), try(ours))
			return []float64{times, testing.AllocsPerRun(100, try(ours)), ns}, failed
		},
	}
}
