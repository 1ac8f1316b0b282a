package lean

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// draw makes the choices of a random input.
type draw struct{ *rapid.T }

func (d draw) oneIn(n int) bool { return rapid.IntRange(1, n).Draw(d.T, "choice") == n }

// text has all that strings are escaped for, and bytes that are no UTF-8.
func (d draw) text() string {
	if d.oneIn(3) {
		return string(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(d.T, "bytes"))
	}
	return rapid.StringN(0, 12, -1).Draw(d.T, "text")
}

// name is a text as a name in a map: two that are no UTF-8 could be the same in JSON.
func (d draw) name() string { return strings.ToValidUTF8(d.text(), "\ufffd") }

func (d draw) maybe() *string {
	if d.oneIn(3) {
		return nil
	}
	return aws.String(d.text())
}

func (d draw) flag() *bool {
	return rapid.SampledFrom([]*bool{nil, aws.Bool(true), aws.Bool(false)}).Draw(d.T, "flag")
}

func (d draw) names() map[string]string {
	if d.oneIn(3) {
		return nil
	}
	names := map[string]string{}
	for range rapid.IntRange(0, 2).Draw(d.T, "names") {
		names[d.name()] = d.text()
	}
	return names
}

func (d draw) item(depth int) map[string]types.AttributeValue {
	item := map[string]types.AttributeValue{}
	for range rapid.IntRange(0, 3).Draw(d.T, "attributes") {
		item[d.name()] = d.value(depth)
	}
	return item
}

func (d draw) values() map[string]types.AttributeValue {
	if d.oneIn(3) {
		return nil
	}
	return d.item(2)
}

func some[T any](d draw, one func() T) []T {
	var list []T // may stay nil
	for range rapid.IntRange(0, 2).Draw(d.T, "elements") {
		list = append(list, one())
	}
	return list
}

func (d draw) blob() []byte {
	if d.oneIn(5) {
		return nil
	}
	return rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(d.T, "blob")
}

func (d draw) value(depth int) types.AttributeValue {
	kinds := 8
	if depth > 0 {
		kinds = 10
	}
	switch rapid.IntRange(1, kinds).Draw(d.T, "kind") {
	case 1:
		return &types.AttributeValueMemberS{Value: d.text()}
	case 2:
		return &types.AttributeValueMemberN{Value: d.text()}
	case 3:
		return &types.AttributeValueMemberB{Value: d.blob()}
	case 4:
		return &types.AttributeValueMemberBOOL{Value: d.oneIn(2)}
	case 5:
		return &types.AttributeValueMemberNULL{Value: d.oneIn(2)}
	case 6:
		return &types.AttributeValueMemberSS{Value: some(d, d.text)}
	case 7:
		return &types.AttributeValueMemberNS{Value: some(d, d.text)}
	case 8:
		return &types.AttributeValueMemberBS{Value: some(d, d.blob)}
	case 9:
		below := func() types.AttributeValue { return d.value(depth - 1) }
		return &types.AttributeValueMemberL{Value: some(d, below)}
	default:
		m := &types.AttributeValueMemberM{}
		if !d.oneIn(4) {
			m.Value = d.item(depth - 1)
		}
		return m
	}
}

func enumOf[T ~string](d draw) T {
	return T(rapid.SampledFrom([]string{"", "NONE", "ALL_OLD", "a\"b"}).Draw(d.T, "enum"))
}

// input draws an input that this package writes itself.
func (d draw) input() any {
	table := aws.String(d.text())
	switch rapid.IntRange(0, 4).Draw(d.T, "operation") {
	case 0:
		return &dynamodb.UpdateItemInput{
			TableName: table, Key: d.item(1), UpdateExpression: d.maybe(), ConditionExpression: d.maybe(),
			ExpressionAttributeNames: d.names(), ExpressionAttributeValues: d.values(),
			ReturnConsumedCapacity:              enumOf[types.ReturnConsumedCapacity](d),
			ReturnItemCollectionMetrics:         enumOf[types.ReturnItemCollectionMetrics](d),
			ReturnValues:                        enumOf[types.ReturnValue](d),
			ReturnValuesOnConditionCheckFailure: enumOf[types.ReturnValuesOnConditionCheckFailure](d),
		}
	case 1:
		return &dynamodb.PutItemInput{
			TableName: table, Item: d.item(2), ConditionExpression: d.maybe(),
			ExpressionAttributeNames: d.names(), ExpressionAttributeValues: d.values(),
			ReturnConsumedCapacity:              enumOf[types.ReturnConsumedCapacity](d),
			ReturnItemCollectionMetrics:         enumOf[types.ReturnItemCollectionMetrics](d),
			ReturnValues:                        enumOf[types.ReturnValue](d),
			ReturnValuesOnConditionCheckFailure: enumOf[types.ReturnValuesOnConditionCheckFailure](d),
		}
	case 2:
		return &dynamodb.GetItemInput{
			TableName: table, Key: d.item(1), ConsistentRead: d.flag(), ProjectionExpression: d.maybe(),
			ExpressionAttributeNames: d.names(),
			ReturnConsumedCapacity:   enumOf[types.ReturnConsumedCapacity](d),
		}
	case 3:
		in := &dynamodb.BatchGetItemInput{
			RequestItems:           map[string]types.KeysAndAttributes{},
			ReturnConsumedCapacity: enumOf[types.ReturnConsumedCapacity](d),
		}
		for range rapid.IntRange(0, 2).Draw(d.T, "tables") {
			keys := []map[string]types.AttributeValue{}
			for range rapid.IntRange(0, 2).Draw(d.T, "keys") {
				keys = append(keys, d.item(1))
			}
			in.RequestItems[d.name()] = types.KeysAndAttributes{
				Keys: keys, ConsistentRead: d.flag(), ProjectionExpression: d.maybe(),
				ExpressionAttributeNames: d.names(),
			}
		}
		return in
	default:
		return &dynamodb.TransactWriteItemsInput{
			ClientRequestToken:          aws.String(d.text()),
			TransactItems:               append([]types.TransactWriteItem{}, some(d, d.part)...),
			ReturnConsumedCapacity:      enumOf[types.ReturnConsumedCapacity](d),
			ReturnItemCollectionMetrics: enumOf[types.ReturnItemCollectionMetrics](d),
		}
	}
}

// part is a part of a transaction, which may do several things, or none.
func (d draw) part() (part types.TransactWriteItem) {
	table := aws.String(d.text())
	if d.oneIn(3) {
		part.Put = &types.Put{
			TableName: table, Item: d.item(2), ConditionExpression: d.maybe(),
			ExpressionAttributeNames: d.names(), ExpressionAttributeValues: d.values(),
			ReturnValuesOnConditionCheckFailure: enumOf[types.ReturnValuesOnConditionCheckFailure](d),
		}
	}
	if d.oneIn(3) {
		part.Update = &types.Update{
			TableName: table, Key: d.item(1), UpdateExpression: table, ConditionExpression: d.maybe(),
			ExpressionAttributeNames: d.names(), ExpressionAttributeValues: d.values(),
			ReturnValuesOnConditionCheckFailure: enumOf[types.ReturnValuesOnConditionCheckFailure](d),
		}
	}
	if d.oneIn(3) {
		part.Delete = &types.Delete{
			TableName: table, Key: d.item(1), ConditionExpression: d.maybe(),
			ExpressionAttributeNames: d.names(), ExpressionAttributeValues: d.values(),
			ReturnValuesOnConditionCheckFailure: enumOf[types.ReturnValuesOnConditionCheckFailure](d),
		}
	}
	if d.oneIn(3) {
		part.ConditionCheck = &types.ConditionCheck{
			TableName: table, Key: d.item(1), ConditionExpression: table,
			ExpressionAttributeNames: d.names(), ExpressionAttributeValues: d.values(),
			ReturnValuesOnConditionCheckFailure: enumOf[types.ReturnValuesOnConditionCheckFailure](d),
		}
	}
	return part
}

// parsed is a request's body as JSON means it.
func parsed(t rapid.TB, text []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	return value
}

// TestEncode holds requests to the SDK's: they mean the same, and have the same header but for the signature
// and what tells calls of the SDK's client apart.
func TestEncode(t *testing.T) {
	service := &replay{status: 200, text: "{}"}
	client := New(config(service))
	rapid.Check(t, func(t *rapid.T) {
		in := draw{t}.input()
		if _, err := send(t.Context(), client.Client, in); err != nil {
			t.Fatal(err)
		}
		want, header := parsed(t, service.sent), service.request.Header
		if _, err := send(t.Context(), client, in); err != nil {
			t.Fatal(err)
		}
		if !service.byLean() {
			t.Fatal("the SDK's client made the call")
		}
		if diff := cmp.Diff(want, parsed(t, service.sent)); diff != "" {
			t.Fatalf("SDK, lean:\n%s", diff)
		}
		own := service.request.Header
		for _, name := range []string{
			"Amz-Sdk-Invocation-Id", "Amz-Sdk-Request", "User-Agent", "X-Amz-Date", "Authorization",
		} {
			header.Del(name)
			own.Del(name)
		}
		if diff := cmp.Diff(header, own); diff != "" {
			t.Fatalf("headers of SDK, lean:\n%s", diff)
		}
		if service.request.ContentLength != int64(len(service.sent)) {
			t.Fatalf("%d bytes, and %d are announced", len(service.sent), service.request.ContentLength)
		}
	})
}

// complete returns a value of a type in which nothing is empty.
func complete(typ reflect.Type) reflect.Value {
	v := reflect.New(typ).Elem()
	switch typ.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(typ.Elem()))
		v.Elem().Set(complete(typ.Elem()))
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.Append(v, complete(typ.Elem())))
	case reflect.Map:
		v.Set(reflect.MakeMap(typ))
		v.SetMapIndex(complete(typ.Key()), complete(typ.Elem()))
	case reflect.Interface:
		v.Set(reflect.ValueOf(&types.AttributeValueMemberS{Value: "text"}))
	case reflect.Struct:
		for i := range typ.NumField() {
			if typ.Field(i).IsExported() {
				v.Field(i).Set(complete(typ.Field(i).Type))
			}
		}
	}
	return v
}

// TestEveryMember: this package writes each member that the SDK's inputs have, or leaves the call to the
// SDK's client. A member that a later SDK adds fails here.
func TestEveryMember(t *testing.T) {
	service := &replay{status: 200, text: "{}"}
	client := New(config(service))
	table, key := aws.String("table"), key("a")
	transaction := func(part types.TransactWriteItem) any {
		return &dynamodb.TransactWriteItemsInput{
			ClientRequestToken: table, TransactItems: []types.TransactWriteItem{part},
		}
	}
	for _, in := range inputs() {
		check(t, service, client, in, func(v any) any { return v })
	}
	keys := []map[string]types.AttributeValue{key}
	check(t, service, client, &types.KeysAndAttributes{Keys: keys}, func(v any) any {
		return &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{"table": *v.(*types.KeysAndAttributes)},
		}
	})
	check(t, service, client, &types.TransactWriteItem{}, func(v any) any {
		return transaction(*v.(*types.TransactWriteItem))
	})
	check(t, service, client, &types.Put{TableName: table, Item: key}, func(v any) any {
		return transaction(types.TransactWriteItem{Put: v.(*types.Put)})
	})
	check(t, service, client, &types.Update{TableName: table, Key: key, UpdateExpression: table},
		func(v any) any { return transaction(types.TransactWriteItem{Update: v.(*types.Update)}) })
	check(t, service, client, &types.Delete{TableName: table, Key: key}, func(v any) any {
		return transaction(types.TransactWriteItem{Delete: v.(*types.Delete)})
	})
	check(t, service, client, &types.ConditionCheck{TableName: table, Key: key, ConditionExpression: table},
		func(v any) any {
			return transaction(types.TransactWriteItem{ConditionCheck: v.(*types.ConditionCheck)})
		})
}

// check sets one member of a struct after the other, and sends it in the input that it is part of.
func check(t *testing.T, service *replay, client *Client, plain any, input func(any) any) {
	t.Helper()
	typ := reflect.TypeOf(plain).Elem()
	for i := range typ.NumField() {
		if !typ.Field(i).IsExported() {
			continue
		}
		name := typ.Field(i).Name
		v := reflect.New(typ)
		v.Elem().Set(reflect.ValueOf(plain).Elem())
		v.Elem().Field(i).Set(complete(typ.Field(i).Type))
		if _, err := send(t.Context(), client, input(v.Interface())); err != nil {
			t.Errorf("%v.%s: %v", typ, name, err)
		} else if service.byLean() && !strings.Contains(string(service.sent), `"`+name+`"`) {
			t.Errorf("%v.%s is not in %s", typ, name, service.sent)
		}
	}
}

// TestNewMember: the lists of members are the SDK's. One that is not in them has the SDK's client make all
// calls.
func TestNewMember(t *testing.T) {
	if got := newMember(known); got != "" {
		t.Errorf("%s is not in the list", got)
	}
	for input, names := range known {
		for name := range strings.FieldsSeq(names) {
			if _, ok := input.FieldByName(name); !ok {
				t.Errorf("%v has no %s", input, name)
			}
			without := map[reflect.Type]string{input: strings.ReplaceAll(" "+names+" ", " "+name+" ", " ")}
			if got, want := newMember(without), "the new "+input.Name()+"."+name; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}

// TestIncomplete: an input without what the SDK wants has the SDK's error. One that only the SDK can write is
// written by it.
func TestIncomplete(t *testing.T) {
	service := &replay{status: 200, text: "{}"}
	client := New(config(service))
	table, key := aws.String("table"), map[string]types.AttributeValue{}
	part := func(part types.TransactWriteItem) any {
		return &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{part}, ClientRequestToken: table,
		}
	}
	for _, in := range []any{
		(*dynamodb.UpdateItemInput)(nil), &dynamodb.UpdateItemInput{TableName: table},
		&dynamodb.UpdateItemInput{Key: key},
		(*dynamodb.PutItemInput)(nil), &dynamodb.PutItemInput{TableName: table}, &dynamodb.PutItemInput{Item: key},
		(*dynamodb.GetItemInput)(nil), &dynamodb.GetItemInput{TableName: table}, &dynamodb.GetItemInput{Key: key},
		(*dynamodb.BatchGetItemInput)(nil), &dynamodb.BatchGetItemInput{},
		&dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"table": {}}},
		(*dynamodb.TransactWriteItemsInput)(nil), &dynamodb.TransactWriteItemsInput{ClientRequestToken: table},
		part(types.TransactWriteItem{Put: &types.Put{TableName: table}}),
		part(types.TransactWriteItem{Put: &types.Put{Item: key}}),
		part(types.TransactWriteItem{Update: &types.Update{TableName: table, Key: key}}),
		part(types.TransactWriteItem{Update: &types.Update{TableName: table, UpdateExpression: table}}),
		part(types.TransactWriteItem{Delete: &types.Delete{TableName: table}}),
		part(types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: table, Key: key}}),
		part(types.TransactWriteItem{
			ConditionCheck: &types.ConditionCheck{TableName: table, ConditionExpression: table},
		}),
	} {
		service.request = nil
		sdk, lean := see(t.Context(), client.Client, in), see(t.Context(), client, in)
		if diff := differ(sdk, lean); diff != "" || sdk.Text == "" || service.request != nil {
			t.Errorf("%#v: sent %v, SDK, lean:\n%s", in, service.request != nil, diff)
		}
	}
	for _, in := range []any{
		&dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{}}, // the SDK makes a token
		&dynamodb.PutItemInput{TableName: table, Item: key, ConditionalOperator: types.ConditionalOperatorOr},
	} {
		if out, err := send(t.Context(), client, in); err != nil || out == nil || service.byLean() {
			t.Errorf("%#v: %v, by this package %v", in, err, service.byLean())
		}
	}
}
