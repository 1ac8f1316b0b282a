package lean

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// outputs are replies that this package decodes itself, by the number of the call in inputs.
var outputs = []struct {
	call int
	text string
}{
	{0, `{}`},
	{0, `{"Attributes":{"PK":{"S":"a"},"n":{"N":"-1.5e3"},"":{"S":""}},"ConsumedCapacity":{"TableName":"t",` +
		`"CapacityUnits":1.0}}`},
	{0, `{"Attributes":{"b":{"B":"AAE="},"y":{"BOOL":true},"z":{"NULL":true},"l":{"L":[{"N":"1"},{"L":[]},` +
		`{"M":{"x":{"S":"é"}}}]},"ss":{"SS":["a","b"]},"ns":{"NS":["1"]},"bs":{"BS":["AA==",""]},"m":{"M":{}}}}`},
	{1, "{ \"ConsumedCapacity\" :\t{\"CapacityUnits\":0.5,\"WriteCapacityUnits\":2," +
		"\"ReadCapacityUnits\":10}\n}"},
	{1, `{"Attributes":{"PK":{"S":"a"}}}`},
	{2, `{"Item":{"PK":{"S":"a"},"rf":{"N":"1800000000000"}},"ConsumedCapacity":{"CapacityUnits":1}}`},
	{2, `{"Item":{}}`},
	{3, `{"Responses":{"t":[{"PK":{"S":"a"}},{"PK":{"N":"1"}}],"u":[]},"UnprocessedKeys":{},` +
		`"ConsumedCapacity":[{"TableName":"t","CapacityUnits":2},{"TableName":"u","CapacityUnits":0}]}`},
	{3, `{"Responses":{}}`},
	{4, `{}`},
	{4, `{"ConsumedCapacity":[{"TableName":"t","CapacityUnits":4.0,"WriteCapacityUnits":4.0}]}`},
}

// unusual are replies that the SDK has to decode, or fails to.
var unusual = []string{
	``, ` `, `null`, `[]`, `"`, `{`, `{"Attributes"`, `{"Attributes":`, `{}}`, `{} `, `{"Attributes":null}`,
	`{"Attributes":{"a":null}}`, `{"Attributes":{"a":{"N":null}}}`, `{"Attributes":{"a":{"N":1}}}`,
	`{"Attributes":{"a":{}}}`, `{"Attributes":{"a":{"S":"1"},"b":{}}}`, `{"Attributes":{"a":{"X":"1"}}}`,
	`{"Attributes":{"a":{"X":"1","S":"2"}}}`, `{"Attributes":{"a":{"S":"1","N":"2"}}}`,
	`{"Attributes":{"a":{"S":"1"},"a":{"S":"2"}}}`, `{"Attributes":{"a":{"S":"1"}},"Attributes":{}}`,
	`{"Attributes":{"a":{"S":"\n\u00e9\ud83d\ude00\""}}}`, "{\"Attributes\":{\"a\":{\"S\":\"\x01\"}}}",
	"{\"Attributes\":{\"a\":{\"S\":\"\xff\"}}}", `{"\u0041ttributes":{"a":{"S":"1"}}}`,
	`{"Attributes":{"a":{"S":"1"},}}`, `{"Attributes":{,}}`, `{"Attributes":[]}`,
	`{"Attributes":{"a":{"BOOL":tru}}}`, `{"Attributes":{"a":{"BOOL":1}}}`,
	`{"Attributes":{"a":{"BOOL":truefalse}}}`, `{"Attributes":{"a":{"B":"A"}}}`,
	`{"Attributes":{"a":{"B":"A A="}}}`,
	`{"Attributes":{"a":{"SS":"x"}}}`, `{"Attributes":{"a":{"SS":[null]}}}`, `{"Attributes":{"a":{"L":[{}]}}}`,
	`{"Attributes":{"a":{"L":[1]}}}`, `{"Unknown":1}`, `{"ConsumedCapacity":{"CapacityUnits":1e0}}`,
	`{"ConsumedCapacity":{"CapacityUnits":-1}}`, `{"ConsumedCapacity":{"CapacityUnits":01}}`,
	`{"ConsumedCapacity":{"CapacityUnits":.5}}`, `{"ConsumedCapacity":{"CapacityUnits":1.}}`,
	`{"ConsumedCapacity":{"CapacityUnits":1.2.3}}`, `{"ConsumedCapacity":{"CapacityUnits":"NaN"}}`,
	`{"ConsumedCapacity":{"CapacityUnits":1,"CapacityUnits":2}}`, `{"ConsumedCapacity":{"TableName":1}}`,
	`{"ConsumedCapacity":{"Table":{"CapacityUnits":1},"GlobalSecondaryIndexes":{"i":{"CapacityUnits":1}}}}`,
	`{"ItemCollectionMetrics":{"ItemCollectionKey":{"a":{"S":"1"}},"SizeEstimateRangeGB":[0,1]}}`,
	`{"Responses":{"":[,0A`, // the SDK panics
	`{"Responses":{"t":null}}`, `{"Responses":{"t":[null]}}`,
	`{"UnprocessedKeys":{"t":{"Keys":[{"a":{"S":"1"}}]}}}`,
	`{"Attributes":{"a":` + strings.Repeat(`{"L":[`, 50) + strings.Repeat(`]}`, 50) + `}}`,
	`{"Item":{"a":{"S":"1"}},"Item":{"b":{"S":"1"}}}`, `{"ConsumedCapacity":[{}],"ConsumedCapacity":[]}`,
	`{"ConsumedCapacity":[]}`, `{"ConsumedCapacity":{}}`,
	`{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"no",` +
		`"Item":{"a":{"N":"1"}}}`,
	`{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"}`,
	`{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","Message":"a","message":"b"}`,
	`{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","Item":null,"Code":"x"}`,
	`{"__type":"ConditionalCheckFailedException","message":"no"}`, `{"message":"no type"}`,
	`{"__type":"com.amazon.coral.validate#ValidationException","message":"no"}`,
	`{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"no",` +
		`"CancellationReasons":[{"Code":"None"},{"Code":"ConditionalCheckFailed",` +
		`"Message":"no","Item":{"a":{"N":"1"}}}]}`,
	`{"__type":"x#InternalServerError"`, `<html>`, `{"__type":1}`,
}

// decoded compares how both clients decode a reply to a call.
func decoded(t testing.TB, service *replay, client *Client, in any) (sdk, lean outcome) {
	t.Helper()
	sdk, lean = see(t.Context(), client.Client, in), see(t.Context(), client, in)
	if !service.byLean() {
		t.Fatal("the SDK's client made the call")
	}
	return sdk, lean
}

// FuzzDecode holds the decoder to the SDK's: the same output, or the same error, for any reply to any call. A
// reply that should be an output and is no JSON is garbled, whatever the SDK makes of it.
func FuzzDecode(f *testing.F) {
	for i := range inputs() {
		for _, out := range outputs {
			f.Add(byte(i), http.StatusOK, []byte(out.text))
		}
		for _, text := range unusual {
			f.Add(byte(i), http.StatusOK, []byte(text))
			f.Add(byte(i), http.StatusBadRequest, []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, call byte, status int, text []byte) {
		if status < 100 || status > 999 {
			return
		}
		service := &replay{status: status, text: string(text)}
		client, in := New(config(service)), inputs()[int(call)%len(inputs())]
		if status/100 == 2 && len(text) > 0 && !wellFormed(text) {
			_, err := send(t.Context(), client, in)
			if _, garbled := errors.AsType[*smithy.DeserializationError](err); !garbled {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		sdk, lean := decoded(t, service, client, in)
		if diff := differ(sdk, lean); diff != "" {
			t.Errorf("status %d, %q: SDK, lean:\n%s", status, text, diff)
		}
	})
}

// TestDecoder: this package decodes what is usual itself, and leaves the rest to the SDK.
func TestDecoder(t *testing.T) {
	fresh := func(call int) reply {
		return []reply{
			&updateItemReply{}, &putItemReply{}, &getItemReply{}, &batchGetItemReply{}, &transactWriteItemsReply{},
		}[call]
	}
	for _, out := range outputs {
		if !fresh(out.call).decode(&decoder{text: []byte(out.text)}) {
			t.Errorf("the SDK would decode %s", out.text)
		}
	}
	for _, text := range unusual {
		if text == `{"ConsumedCapacity":[]}` || text == `{"ConsumedCapacity":{}}` {
			continue // usual for some of the calls
		}
		for call := range inputs() {
			if strings.Contains(text, `"a":{"S":"1"},"a"`) || strings.Contains(text, "\xff") {
				continue // a name twice, and bytes that are no UTF-8, are read as the SDK reads them
			}
			if fresh(call).decode(&decoder{text: []byte(text)}) {
				t.Errorf("call %d: this package would decode %s", call, text)
			}
		}
	}
}

// TestDifferControl: the comparison finds an item that is not there, another number, and another kind of
// error.
func TestDifferControl(t *testing.T) {
	in := &dynamodb.UpdateItemInput{
		TableName: aws.String("t"), Key: map[string]types.AttributeValue{"a": &types.AttributeValueMemberS{}},
	}
	for name, texts := range map[string][2]string{
		"an attribute": {`{"Attributes":{"a":{"S":"1"},"b":{"S":"1"}}}`, `{"Attributes":{"a":{"S":"1"}}}`},
		"a number":     {`{"Attributes":{"a":{"N":"1"}}}`, `{"Attributes":{"a":{"N":"2"}}}`},
		"a kind":       {`{"Attributes":{"a":{"N":"1"}}}`, `{"Attributes":{"a":{"S":"1"}}}`},
		"a unit":       {`{"ConsumedCapacity":{"CapacityUnits":1}}`, `{"ConsumedCapacity":{"CapacityUnits":2}}`},
		"an error":     {`{}`, `{`},
	} {
		t.Run(name, func(t *testing.T) {
			whole, part := &replay{status: 200, text: texts[0]}, &replay{status: 200, text: texts[1]}
			sdk := see(t.Context(), New(config(whole)).Client, in)
			if diff := differ(sdk, see(t.Context(), New(config(whole)), in)); diff != "" {
				t.Errorf("the same reply differs:\n%s", diff)
			}
			if differ(sdk, see(t.Context(), New(config(part)), in)) == "" {
				t.Error("another reply does not differ")
			}
		})
	}
}
