package differential_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
)

// reasonCase is a transaction that is not done: what speaks against each of its actions, or against all.
type reasonCase struct {
	name    string
	actions []types.TransactWriteItem
	// want has a text for each action: code, message, and "with its item" if the reason has that. Instead it may
	// have the exception that refuses the request.
	want []string
}

// Parts of what want has.
const (
	fault   = "ValidationError: "
	bad     = fault + "One or more parameter values were invalid: "
	scalars = fault + "Key attributes must be scalars; list random access '[]' and map lookup '.' are not " +
		"allowed: "
	emptyKey = " The AttributeValue for a key attribute cannot contain an empty string value. "
)

// Reasons as want has them.
const (
	noReason       = "None"
	failedReason   = "ConditionalCheckFailed: The conditional request failed"
	shownReason    = failedReason + " with its item"
	itemKey        = bad + "Type mismatch for key id expected: N actual: S"
	itemMissesKey  = bad + "Missing the key id in the item"
	schemaKey      = fault + "The provided key element does not match the schema"
	keyTooLarge    = bad + "Size of hashkey has exceeded the maximum size limit of2048 bytes"
	indexKey       = bad + "Type mismatch for Index Key g Expected: S Actual: N IndexName: byGN"
	keyUpdated     = bad + "Cannot update attribute id. This attribute is part of the key"
	nestedKey      = scalars + "Key: id"
	nestedIndexKey = scalars + "IndexKey: n"
	itemTooLarge   = fault + "Item size has exceeded the maximum allowed size"
	updateTooLarge = fault + "Item size to update has exceeded the maximum allowed size"
	missingOperand = fault + "The provided expression refers to an attribute that does not exist in the item"
	wrongPath      = fault + "The document path provided in the update expression is invalid for update"
)

// Exceptions as want has them.
const (
	refused         = "ValidationException: "
	refusedTooLarge = refused + "Item size has exceeded the maximum allowed size"
	refusedTwice    = refused + "Transaction request cannot include multiple operations on one item"
	refusedKey      = refused + "One or more parameter values are not valid." + emptyKey + "Key: pk"
	refusedIndexKey = refused + "One or more parameter values are not valid. A value specified for a " +
		"secondary index key is not supported." + emptyKey + "IndexName: byGN, IndexKey: g"
)

// Parts of the transactions. The item whose id is 1 exists, and so does the one whose keys are p and a.
var (
	one, two, three = numberValue("1"), numberValue("2"), numberValue("3")
	wrong           = textValue("1") // as an id
	never           = aws.String("attribute_exists(nowhere)")
	show            = types.ReturnValuesOnConditionCheckFailureAllOld
	huge            = textValue(strings.Repeat("f", 400<<10))
	half            = textValue(strings.Repeat("f", 250<<10))
	value           = item{":v": one}
)

func hashKey(id types.AttributeValue) item { return item{"id": id} }

func sortedKey(pk, sk string) item { return item{"pk": textValue(pk), "sk": textValue(sk)} }

func with(key item, more item) item {
	whole := maps.Clone(key)
	maps.Copy(whole, more)
	return whole
}

// tableWith is the table that has items with such keys.
func tableWith(key item) *string {
	if _, ok := key["sk"]; ok {
		return aws.String(sortedTable)
	}
	return aws.String(hashTable)
}

func putting(whole item, condition *string) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{TableName: tableWith(whole), Item: whole,
		ConditionExpression: condition, ReturnValuesOnConditionCheckFailure: show}}
}

func deleting(key item, condition *string) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{TableName: tableWith(key), Key: key,
		ConditionExpression: condition, ReturnValuesOnConditionCheckFailure: show}}
}

func updating(key item, update string, values item, condition *string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{TableName: tableWith(key), Key: key,
		UpdateExpression: &update, ExpressionAttributeValues: values, ConditionExpression: condition,
		ReturnValuesOnConditionCheckFailure: show}}
}

func checking(key item, condition string, values item) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: tableWith(key), Key: key,
		ConditionExpression: &condition, ExpressionAttributeValues: values}}
}

func actions(list ...types.TransactWriteItem) []types.TransactWriteItem { return list }

var reasonCases = []reasonCase{
	{"failed conditions of every kind", actions(
		putting(with(hashKey(one), item{"c": two}), never), updating(hashKey(two), "SET c = :v", value, never),
		putting(hashKey(three), nil), deleting(sortedKey("p", "a"), never),
		checking(sortedKey("p", "b"), *never, nil)),
		[]string{shownReason, failedReason, noReason, shownReason, failedReason}},
	{"a failed check without ALL_OLD", actions(checking(hashKey(one), *never, nil)), []string{failedReason}},

	{"a wrong key in a Put, and failed conditions", actions(
		deleting(hashKey(one), never), putting(hashKey(wrong), nil), deleting(sortedKey("p", "a"), never)),
		[]string{noReason, itemKey, noReason}},
	{"a wrong key in an Update, and failed conditions", actions(
		deleting(hashKey(one), never), updating(hashKey(wrong), "SET c = :v", value, nil),
		deleting(sortedKey("p", "a"), never)),
		[]string{noReason, schemaKey, noReason}},
	{"a wrong key in a Delete, and failed conditions", actions(
		deleting(hashKey(wrong), never), deleting(hashKey(one), never), putting(hashKey(two), nil)),
		[]string{schemaKey, noReason, noReason}},
	{"a wrong key in a ConditionCheck, and failed conditions", actions(
		putting(hashKey(two), nil), deleting(hashKey(one), never), checking(hashKey(wrong), *never, nil)),
		[]string{noReason, noReason, schemaKey}},
	{"an empty key of another type", actions(
		deleting(hashKey(one), never), deleting(hashKey(textValue("")), nil)), []string{noReason, schemaKey}},
	{"several wrong keys", actions(
		putting(hashKey(two), nil), deleting(hashKey(wrong), nil), putting(hashKey(wrong), nil),
		deleting(hashKey(one), never)),
		[]string{noReason, schemaKey, noReason, noReason}},
	{"a wrong key and one item twice", actions(
		putting(hashKey(two), nil), putting(hashKey(two), nil), deleting(hashKey(wrong), nil)),
		[]string{noReason, noReason, schemaKey}},
	{"a wrong key and an update that cannot be done", actions(
		updating(hashKey(one), "SET c = nowhere", nil, nil), deleting(hashKey(wrong), nil)),
		[]string{noReason, schemaKey}},
	{"an item without its key, and a failed condition", actions(
		deleting(hashKey(one), never), putting(item{"c": one}, nil)), []string{noReason, itemMissesKey}},
	{"a key with an attribute more, and a failed condition", actions(
		deleting(with(hashKey(two), item{"c": one}), nil), deleting(hashKey(one), never)),
		[]string{schemaKey, noReason}},
	{"a key that is too large, and a failed condition", actions(deleting(hashKey(one), never),
		deleting(sortedKey(strings.Repeat("k", 2049), "a"), nil)), []string{noReason, keyTooLarge}},
	{"an index key of another type, and a failed condition", actions(
		deleting(hashKey(one), never), putting(with(sortedKey("q", "a"), item{"g": one}), nil)),
		[]string{noReason, indexKey}},
	{"an update of the key, and a failed condition", actions(
		deleting(sortedKey("p", "a"), never), updating(hashKey(one), "SET id = :v", value, nil)),
		[]string{noReason, keyUpdated}},
	{"an update of the key, whose condition fails", actions(
		deleting(sortedKey("p", "a"), never), updating(hashKey(one), "SET id = :v", value, never)),
		[]string{noReason, keyUpdated}},
	{"a path into the key, and a failed condition", actions(
		deleting(sortedKey("p", "a"), never), checking(hashKey(two), "id.x = :v", value)),
		[]string{noReason, nestedKey}},
	{"a path into an index key, and an update that cannot be done", actions(
		updating(hashKey(one), "SET c = nowhere", nil, nil), checking(sortedKey("p", "b"), "n[0] = :v", value)),
		[]string{noReason, nestedIndexKey}},
	{"an item too large with its index entries, and a failed condition", actions(
		deleting(hashKey(one), never),
		putting(with(sortedKey("q", "a"), item{"s": textValue("a"), "fill": half}), nil)),
		[]string{noReason, itemTooLarge}},

	{"updates that cannot be done, and failed conditions", actions(
		updating(hashKey(one), "SET c = nowhere", nil, nil), deleting(sortedKey("p", "a"), never),
		putting(hashKey(three), nil), updating(hashKey(two), "SET m.x = :v", value, nil)),
		[]string{missingOperand, shownReason, noReason, wrongPath}},
	{"an update that makes its item too large, and a failed condition", actions(
		deleting(sortedKey("p", "a"), never), updating(hashKey(one), "SET c = :v", item{":v": huge}, nil)),
		[]string{shownReason, updateTooLarge}},
	{"an update that cannot be done and whose condition fails", actions(
		updating(hashKey(one), "SET c = nowhere", nil, never)), []string{shownReason}},

	{"an empty key, and a failed condition", actions(
		deleting(hashKey(one), never), deleting(sortedKey("", "a"), nil)), []string{refusedKey}},
	{"an empty key and a wrong one", actions(
		deleting(hashKey(wrong), nil), putting(sortedKey("", "a"), nil)), []string{refusedKey}},
	{"an empty index key, and a failed condition", actions(
		deleting(hashKey(one), never), putting(with(sortedKey("q", "a"), item{"g": textValue("")}), nil)),
		[]string{refusedIndexKey}},
	{"an item that is too large, and a failed condition", actions(
		deleting(hashKey(one), never), putting(with(hashKey(two), item{"fill": huge}), nil)),
		[]string{refusedTooLarge}},
	{"an item twice, and a failed condition", actions(
		deleting(hashKey(one), never), putting(hashKey(two), nil), putting(hashKey(two), nil)),
		[]string{refusedTwice}},
}

// history is the items that the case needs, and its transaction.
func (c reasonCase) history() history {
	puts := history{}
	for _, whole := range []item{with(hashKey(one), item{"c": one}), with(sortedKey("p", "a"), item{"c": one})} {
		puts = append(puts, operation{input: &dynamodb.PutItemInput{TableName: tableWith(whole), Item: whole}})
	}
	return append(puts, operation{input: &dynamodb.TransactWriteItemsInput{TransactItems: c.actions}})
}

// TestReasons holds memdynamo to the reasons of every case.
func TestReasons(t *testing.T) {
	for _, c := range reasonCases {
		t.Run(c.name, func(t *testing.T) {
			engine := memorySide()
			if err := engine.reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			var last []reply
			for _, o := range c.history() {
				var err error
				if last, err = engine.run(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			if got := reasonTexts(last[0]); !slices.Equal(got, c.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}

// TestReasonsOnLocal runs the cases on DynamoDB Local too: every difference there is a known one.
func TestReasonsOnLocal(t *testing.T) {
	local := dynamotest.Local(t)
	engines := &pair{localSide(t, local), memorySide(), newReport()}
	for _, c := range reasonCases {
		t.Run(c.name, func(t *testing.T) {
			diff, err := engines.run(t.Context(), c.history())
			if err != nil || diff.text != "" {
				t.Errorf("%v\n%s", err, diff.text)
			}
		})
	}
}

// reasonTexts is a reply as a case wants it.
func reasonTexts(r reply) []string {
	list, _ := r.Body["CancellationReasons"].([]any)
	if len(list) == 0 {
		return []string{r.Code + ": " + r.Message}
	}
	var texts []string
	for i, each := range reasonsOf(r) {
		text := each.Code
		if each.Message != "" {
			text += ": " + each.Message
		}
		if fields, _ := list[i].(map[string]any); fields["Item"] != nil {
			text += " with its item"
		}
		texts = append(texts, text)
	}
	return texts
}
