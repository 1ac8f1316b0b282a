package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"

	"github.com/sluice-go/sluice/internal/test/bench/generated"
	"github.com/sluice-go/sluice/internal/test/definitions"
)

// unexported says nothing of what the SDK keeps in its values.
var unexported = cmpopts.IgnoreUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{})

func sampleOf(t *testing.T, resource string) *sample {
	t.Helper()
	resources, err := definitions.ForDynamo(generated.New)
	if err != nil {
		t.Fatal(err)
	}
	return newSample(resources[resource])
}

// TestSameUpdate: both contestants' updates are taken, and leave the same bucket.
func TestSameUpdate(t *testing.T) {
	for _, resource := range []string{generated.Two, generated.Ten} {
		t.Run(resource, func(t *testing.T) {
			theirs, err := sampleOf(t, resource).byExpression()
			if err != nil {
				t.Fatal(err)
			}
			ours := sampleOf(t, resource)
			byOurs, byTheirs := apply(t, ours, bareUpdate(ours)), apply(t, ours, theirs)
			if diff := cmp.Diff(byOurs, byTheirs, unexported); diff != "" {
				t.Errorf("the bucket, - by generated code, + by expression.Builder:\n%s", diff)
			}
			if cmp.Equal(byOurs, ours.item, unexported) {
				t.Error("neither changes the bucket")
			}
		})
	}
}

// apply returns what update makes of a bucket: one that is what update's condition asks for.
func apply(t *testing.T, s *sample, update *dynamodb.UpdateItemInput) codec.Item {
	t.Helper()
	w, err := newWorld(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	s.item["rf"], s.item["op"] = codec.N(t0+1), codec.S("of another")
	for _, n := range s.names {
		s.item[n.tk] = codec.N(500_000)
	}
	client := w.engine.Client()
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table),
		Item: s.item}); err != nil {
		t.Fatal(err)
	}
	update.TableName, update.ReturnValues = aws.String(table), types.ReturnValueAllNew
	out, err := client.UpdateItem(t.Context(), update)
	if err != nil {
		t.Fatal(err)
	}
	return out.Attributes
}

// TestSameFields: UnmarshalMap is asked for what the generated decoder reads.
func TestSameFields(t *testing.T) {
	s := sampleOf(t, generated.Ten)
	var img bucket.Image
	if err := s.resource.Decode(&img, s.item); err != nil {
		t.Fatal(err)
	}
	read := s.structure()
	if err := attributevalue.UnmarshalMap(s.item, read); err != nil {
		t.Fatal(err)
	}
	again, err := attributevalue.MarshalMap(read)
	if err != nil {
		t.Fatal(err)
	}
	if want := 4 + 6*len(img.Balances); len(again) != want {
		t.Errorf("%d attributes were read, want %d", len(again), want)
	}
	for attr, v := range again {
		if diff := cmp.Diff(s.item[attr], v, unexported); diff != "" {
			t.Errorf("%s, - stored, + read:\n%s", attr, diff)
		}
	}
}
