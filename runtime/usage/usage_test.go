package usage

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// everyType is an item with an attribute of each type, as Lambda's event has it.
const everyType = `{"n": {"N": "1.50"}, "s": {"S": "text"}, "empty": {"S": ""}, "b": {"B": "AA=="},
	"bool": {"BOOL": true}, "null": {"NULL": true},
	"l": {"L": [{"N": "1"}]}, "m": {"M": {"N": {"N": "1"}}},
	"ns": {"NS": ["1"]}, "ss": {"SS": ["a"]}, "bs": {"BS": ["AA=="]}}`

// typed is the same as the stream's client has it.
func typed() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"n": &types.AttributeValueMemberN{Value: "1.50"}, "s": &types.AttributeValueMemberS{Value: "text"},
		"empty": &types.AttributeValueMemberS{},
		"b":     &types.AttributeValueMemberB{Value: []byte{0}},
		"bool":  &types.AttributeValueMemberBOOL{Value: true},
		"null":  &types.AttributeValueMemberNULL{Value: true}, "l": &types.AttributeValueMemberL{},
		"m":  &types.AttributeValueMemberM{},
		"ns": &types.AttributeValueMemberNS{}, "ss": &types.AttributeValueMemberSS{},
		"bs": &types.AttributeValueMemberBS{},
	}
}

// lambda returns a record that Lambda would decode from JSON.
func lambda(t *testing.T, event, images string) events.DynamoDBEventRecord {
	t.Helper()
	var r events.DynamoDBEventRecord
	text := fmt.Sprintf(`{"eventName": %q, "dynamodb": {"ApproximateCreationDateTime": 1795000000, `+
		`"SequenceNumber": "4421584500000000017450439091", %s}}`,
		event, images)
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// stream returns a record of the stream's client.
func stream(event string, before, after map[string]types.AttributeValue) types.Record {
	return types.Record{EventName: types.OperationType(event), Dynamodb: &types.StreamRecord{
		ApproximateCreationDateTime: aws.Time(time.Unix(1795000000, 0)),
		SequenceNumber:              aws.String("4421584500000000017450439091"),
		OldImage:                    before, NewImage: after,
	}}
}

// TestImages: both adapters say the same of every type of attribute.
func TestImages(t *testing.T) {
	fromLambda, err := FromLambda(lambda(t, "INSERT", `"NewImage": `+everyType))
	if err != nil {
		t.Fatal(err)
	}
	fromStreams, err := FromStreams(stream("INSERT", nil, typed()))
	if err != nil {
		t.Fatal(err)
	}
	want := "b=B , bool=BOOL , bs=BS , empty=S , l=L , m=M , n=N 1.50, ns=NS , null=NULL , s=S text, ss=SS "
	for adapter, rec := range map[string]codec.Record{"Lambda": fromLambda, "Streams": fromStreams} {
		var got []string
		rec.New.Each(func(name string) bool {
			kind, text := rec.New.Attr(name)
			got = append(got, name+"="+kind+" "+text)
			return true
		})
		if slices.Sort(got); strings.Join(got, ", ") != want {
			t.Errorf("%s: got  %s\nwant %s", adapter, strings.Join(got, ", "), want)
		}
		visited := 0
		rec.New.Each(func(string) bool { visited++; return visited < 2 })
		if kind, text := rec.New.Attr("none"); kind != "" || text != "" || rec.New.Len() != 11 || visited != 2 ||
			rec.Old != nil {
			t.Errorf("%s: none is %q %q, %d attributes, %d visited, old %v", adapter, kind, text, rec.New.Len(),
				visited, rec.Old)
		}
		if rec.Sequence != "4421584500000000017450439091" || !rec.At.Equal(time.Unix(1795000000, 0)) {
			t.Errorf("%s: sequence %s at %v", adapter, rec.Sequence, rec.At)
		}
	}
}

// TestEvents: the write decides which images a record has, and a record without one of them is refused. Taken
// for an insert, a change would count all that was ever consumed.
func TestEvents(t *testing.T) {
	const before, after = `"OldImage": {"n": {"N": "1"}}`, `"NewImage": {"n": {"N": "2"}}`
	one := func(n string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"n": &types.AttributeValueMemberN{Value: n}}
	}
	const missing = "sluice: stream record 4421584500000000017450439091: %s without the %s image: " +
		"give the table's stream NEW_AND_OLD_IMAGES, as `sluice table check` says"
	for _, test := range []struct {
		name, event, images string
		before, after       map[string]types.AttributeValue
		old, new            string
		err                 string
	}{
		{"insert", "INSERT", after, nil, one("2"), "", "2", ""},
		{"modify", "MODIFY", before + ", " + after, one("1"), one("2"), "1", "2", ""},
		{"remove", "REMOVE", before, one("1"), nil, "1", "", ""},
		{"modify without old", "MODIFY", after, nil, one("2"), "", "2", fmt.Sprintf(missing, "MODIFY", "old")},
		{"modify without new", "MODIFY", before, one("1"), nil, "1", "", fmt.Sprintf(missing, "MODIFY", "new")},
		{"insert without new", "INSERT", `"Keys": {}`, nil, nil, "", "", fmt.Sprintf(missing, "INSERT", "new")},
		{"remove without old", "REMOVE", `"Keys": {}`, nil, nil, "", "", fmt.Sprintf(missing, "REMOVE", "old")},
		{"something else", "TOUCH", after, nil, one("2"), "", "2",
			`sluice: stream record 4421584500000000017450439091: event "TOUCH", want INSERT, MODIFY or REMOVE`},
	} {
		t.Run(test.name, func(t *testing.T) {
			fromLambda, errLambda := FromLambda(lambda(t, test.event, test.images))
			fromStreams, errStreams := FromStreams(stream(test.event, test.before, test.after))
			for adapter, got := range map[string]struct {
				rec codec.Record
				err error
			}{"Lambda": {fromLambda, errLambda}, "Streams": {fromStreams, errStreams}} {
				if text := fmt.Sprint(got.err); got.err != nil && text != test.err || got.err == nil && test.err != "" {
					t.Errorf("%s: got %s\nwant %s", adapter, text, test.err)
				}
				for side, img := range map[string]codec.Image{test.old: got.rec.Old, "new " + test.new: got.rec.New} {
					want := strings.TrimPrefix(side, "new ")
					if want == "" && img != nil {
						t.Errorf("%s: an image of %v", adapter, img)
					} else if want != "" {
						if _, n := img.Attr("n"); n != want {
							t.Errorf("%s: n is %s, want %s", adapter, n, want)
						}
					}
				}
			}
		})
	}
	if _, err := FromStreams(types.Record{}); err == nil {
		t.Error("a record without a change passes")
	}
}

// bucketItem is a bucket of the demo's limits as the stream's client has it.
func bucketItem(rpm, tpm string) map[string]types.AttributeValue {
	item := map[string]types.AttributeValue{}
	for name, text := range map[string]string{
		"PK": "ENTITY#user-1", "SK": "#BUCKET#gpt-4", "GSI2PK": "RESOURCE#gpt-4", "GSI2SK": "BUCKET#user-1",
		"entity_id": "user-1",
		"resource":  "gpt-4", "op": "AAAAAAAAAAAA",
	} {
		item[name] = &types.AttributeValueMemberS{Value: text}
	}
	for name, n := range map[string]string{"rf": "1", "cv": "1", "ttl": "1", "b_rpm_tc": rpm, "b_tpm_tc": tpm} {
		item[name] = &types.AttributeValueMemberN{Value: n}
	}
	for _, limit := range []string{"rpm", "tpm"} {
		for _, field := range []string{"tk", "cp", "bx", "ra", "rp"} {
			item["b_"+limit+"_"+field] = &types.AttributeValueMemberN{Value: "1000"}
		}
	}
	return item
}

// TestExtractDeltas: what a schema does not know is counted under its own names, be it a limit or a whole
// resource; what is no bucket counts nothing.
func TestExtractDeltas(t *testing.T) {
	image := func(sort string) map[string]types.AttributeValue {
		item := map[string]types.AttributeValue{
			"SK":        &types.AttributeValueMemberS{Value: sort},
			"entity_id": &types.AttributeValueMemberS{Value: "user-1"},
		}
		for attr, n := range map[string]string{"b_tpm_tc": "5", "b_rpm_tc": "7", "b_later_tc": "9"} {
			item[attr] = &types.AttributeValueMemberN{Value: n}
		}
		for n := range 20 { // as many as a bucket has: one that has no more than it should is not searched
			item[fmt.Sprint("other", n)] = &types.AttributeValueMemberN{Value: "1"}
		}
		return item
	}
	for sort, want := range map[string]string{
		"#BUCKET#gpt-4":               "gpt-4: rpm=7 tpm=5 later=9",
		"#BUCKET#gpt-9":               "gpt-9: later=9 rpm=7 tpm=5",
		"#USAGE#gpt-4#day#2026-11-21": "",
	} {
		rec, err := FromStreams(stream("INSERT", nil, image(sort)))
		if err != nil {
			t.Fatal(err)
		}
		deltas, err := limits.ExtractDeltas(rec)
		got := ""
		for i, d := range deltas {
			if i == 0 {
				got = d.Resource + ":"
			}
			got += fmt.Sprintf(" %s=%d", d.Limit, d.Millitokens)
		}
		if got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", sort, got, err, want)
		}
	}
}

// BenchmarkExtractDeltas takes a record of the stream's client apart, adapter included: the images and the
// result are all that is allocated.
func BenchmarkExtractDeltas(b *testing.B) {
	r := stream("MODIFY", bucketItem("1000", "1000"), bucketItem("2000", "151000"))
	b.ReportAllocs()
	for b.Loop() {
		rec, err := FromStreams(r)
		if err != nil {
			b.Fatal(err)
		}
		if deltas, err := limits.ExtractDeltas(rec); err != nil || len(deltas) != 2 {
			b.Fatal(deltas, err)
		}
	}
}
