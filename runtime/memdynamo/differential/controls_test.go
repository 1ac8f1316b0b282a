package differential_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/longform"
)

// control is an engine with one thing wrong.
type control struct {
	name   string
	found  string          // a regular expression of a place, as places returns them, that must differ
	before func(*exchange) // spoils the request
	after  func(*exchange) // spoils the reply
}

var controls = []control{
	{name: "sums are differences", found: `\.N: "-?[0-9.]+" \| "-?[0-9.]+"$`,
		before: replace("UpdateItem", `( ?)\+( ?)`, "$1-$2")},
	{name: "REMOVE does nothing", found: `\.(c|v|l|str): null \| `,
		before: replace("UpdateItem", `(?i)(remove )(c|v|l|str)\b`, "${1}nowhere")},
	{name: "ADD does nothing", found: `\.(c|n|l|ss|ns): \{.* \| null$`,
		before: replace("UpdateItem", `(?i)(add )(c|n|l|ss|ns)\b`, "${1}nowhere")},
	{name: "conditions are ignored",
		found:  `^\w+ 0\.Code: "(ConditionalCheckFailed|TransactionCanceled)Exception" \| ""`,
		before: replace("", `("ConditionExpression":")([^"]+)"`, `$1$2 OR NOT ($2)"`)},
	{name: "filters are ignored", found: `^(Query|Scan) (0\.Body\.)?Count: 0 \| [1-9]`,
		before: replace("", `("FilterExpression":")([^"]+)"`, `$1$2 OR NOT ($2)"`)},
	{name: "request tokens are ignored",
		found: `^TransactWriteItems 0\.Code: "IdempotentParameterMismatchException" \| `,
		before: edit("TransactWriteItems", func(m map[string]any) bool {
			delete(m, "ClientRequestToken")
			return true
		}, request)},
	{name: "a transaction loses its last action",
		found: `^TransactWriteItems 0\.Body\.CancellationReasons\.\d+: \{"Code":"None"\} \| null$`,
		before: edit("TransactWriteItems", func(m map[string]any) bool {
			list, _ := m["TransactItems"].([]any)
			if len(list) < 2 {
				return false
			}
			m["TransactItems"] = list[:len(list)-1]
			return true
		}, request)},
	{name: "a batch loses a delete", found: `^(GetItem|BatchGetItem|Query|Scan) \S+\.\d+: null \| \{`,
		before: edit("BatchWriteItem", func(m map[string]any) bool {
			tables, _ := m["RequestItems"].(map[string]any)
			for name, requests := range tables {
				list, _ := requests.([]any)
				i := slices.IndexFunc(list, isDelete)
				if i >= 0 && len(list) > 1 {
					tables[name] = slices.Delete(list, i, i+1)
					return true
				}
			}
			return false
		}, request)},
	{name: "the old image is the new one", found: `^UpdateItem 0\.Body\.Attributes\b`,
		before: replace("UpdateItem", `"(ALL|UPDATED)_OLD"`, `"${1}_NEW"`)},
	{name: "attributes of an image are lost", found: `^\w+ 0\.Body\.Attributes\.c: \{.* \| null$`,
		after: edit("", func(m map[string]any) bool {
			image, _ := m["Attributes"].(map[string]any)
			delete(image, "c")
			return true
		}, answer)},
	{name: "a failed condition has no image", found: `^PutItem 0\.Body\.Item: \{.* \| null$`,
		after: edit("PutItem", func(m map[string]any) bool {
			delete(m, "Item")
			return true
		}, answer)},
	{name: "an index has lost an item", found: `^(Query|Scan) Scanned: \d+ \| \d+$`, after: func(x *exchange) {
		if strings.Contains(string(x.request), "IndexName") {
			edit("", loseItem, answer)(x)
		}
	}},
	{name: "items are in the opposite order", found: `^Query (\d+\.Body\.Items|Partitions\.\d+)\.0\.`,
		after: edit("Query", func(m map[string]any) bool {
			items, _ := m["Items"].([]any)
			slices.Reverse(items)
			return true
		}, answer)},
	{name: "the last page comes too early", found: `^Query (\d: \{.* \| null|Pages: \d+ \| 1)$`,
		after: edit("Query", func(m map[string]any) bool {
			delete(m, "LastEvaluatedKey")
			return true
		}, answer)},
	{name: "a write costs a unit more", found: `^PutItem 0\.Body\.ConsumedCapacity\.CapacityUnits: \d+ \| 7$`,
		after: edit("PutItem", func(m map[string]any) bool {
			consumed, _ := m["ConsumedCapacity"].(map[string]any)
			if consumed != nil {
				consumed["CapacityUnits"] = 7
			}
			return true
		}, answer)},
	{name: "an index bills nothing", found: `ConsumedCapacity\.GlobalSecondaryIndexes: \{.* \| null$`,
		after: edit("", func(m map[string]any) bool {
			consumed, _ := m["ConsumedCapacity"].(map[string]any)
			delete(consumed, "GlobalSecondaryIndexes")
			return true
		}, answer)},
	{name: "another exception",
		found: `^\w+ 0\.Code: "ConditionalCheckFailedException" \| "TransactionConflictException"$`,
		after: replaceReply(`ConditionalCheckFailedException`, "TransactionConflictException")},
	{name: "another message", found: `^\w+ 0\.Message: ".*used in expression is not defined.* \| `,
		after: replaceReply(`used in expression is not defined`, "is not defined")},
	{name: "reasons in another order", found: `^TransactWriteItems 0\.Body\.CancellationReasons\.\d+\.Code: `,
		after: edit("TransactWriteItems", func(m map[string]any) bool {
			reasons, _ := m["CancellationReasons"].([]any)
			slices.Reverse(reasons)
			return true
		}, answer)},
	{name: "numbers are as they were written", found: `\.N: "100" \| "1e2"$`,
		after: replaceReply(`\{"N":"100"\}`, `{"N":"1e2"}`)},
	{name: "numbers are rounded", found: `: "-?9{38}.*" \| "-?10`,
		after: replaceReply(`9{38}`, "1"+strings.Repeat("0", 38))},
	{name: "a set loses a member", found: `\.SS\.\d+: ".*" \| null$`,
		after: replaceReply(`\{"SS":\["a",`, `{"SS":[`)},
}

// harmless are differences that DynamoDB leaves open: no history may tell.
var harmless = []control{
	{name: "nothing"},
	{name: "sets are in another order", after: edit("", func(m map[string]any) bool {
		reverseSets(m)
		return true
	}, answer)},
	{name: "batches are in another order", after: edit("BatchGetItem", func(m map[string]any) bool {
		tables, _ := m["Responses"].(map[string]any)
		for _, items := range tables {
			list, _ := items.([]any)
			slices.Reverse(list)
		}
		return true
	}, answer)},
}

// TestComparisonCatches is the negative control of the comparison: memdynamo against itself with one thing
// wrong. The first history that differs does so at the place that is spoilt.
func TestComparisonCatches(t *testing.T) {
	t.Parallel()
	oneAtATime(t)
	for _, c := range controls {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			diff, histories := c.run(t, 60)
			if found := regexp.MustCompile(c.found); !slices.ContainsFunc(diff.places, found.MatchString) {
				t.Errorf("want a difference at %s, got them at\n%s", found, strings.Join(diff.places, "\n"))
			}
			t.Logf("after %d histories: %s", histories, diff.text)
		})
	}
}

// oneAtATime skips a test in the short form, which is that of the race detector: here it finds nothing.
func oneAtATime(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a comparison sends one request at a time: not with -short")
	}
}

// TestComparisonAllows holds the comparison to what it may not see.
func TestComparisonAllows(t *testing.T) {
	t.Parallel()
	oneAtATime(t)
	for _, c := range harmless {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff, _ := c.run(t, longform.Count(t, "histories of each mix", 10, 2)); diff.text != "" {
				t.Error(diff.text)
			}
		})
	}
}

// run puts memdynamo and the broken one through as many histories of each mix, until one tells.
func (c control) run(t *testing.T, most int) (diff parting, histories int) {
	t.Helper()
	p := &pair{memorySide(), memorySide(), newReport()}
	p.ours.wire.before, p.ours.wire.after = c.before, c.after
	for seed := range most {
		for _, m := range mixes {
			histories++
			diff, err := p.run(t.Context(), m.histories().Example(seed))
			if err != nil {
				t.Fatal(err)
			}
			if diff.text != "" {
				return diff, histories
			}
		}
	}
	return parting{}, histories
}

// replace spoils the text of requests of that operation, or of all if it is empty.
func replace(operation, pattern, by string) func(*exchange) {
	wanted := regexp.MustCompile(pattern)
	return func(x *exchange) {
		if operation == "" || x.operation == operation {
			x.request = wanted.ReplaceAll(x.request, []byte(by))
		}
	}
}

// replaceReply spoils the text of replies.
func replaceReply(pattern, by string) func(*exchange) {
	wanted := regexp.MustCompile(pattern)
	return func(x *exchange) { x.reply = wanted.ReplaceAll(x.reply, []byte(by)) }
}

func request(x *exchange) *[]byte { return &x.request }

func answer(x *exchange) *[]byte { return &x.reply }

// edit spoils the JSON of requests or replies of that operation, or of all if it is empty.
func edit(operation string, spoil func(map[string]any) bool, part func(*exchange) *[]byte) func(*exchange) {
	return func(x *exchange) {
		var members map[string]any
		body := part(x)
		if operation != "" && x.operation != operation || json.Unmarshal(*body, &members) != nil {
			return
		}
		if spoil(members) {
			*body = []byte(textOf(members))
		}
	}
}

// isDelete reports whether a request of a batch deletes.
func isDelete(v any) bool {
	of, _ := v.(map[string]any)
	return of["DeleteRequest"] != nil
}

// loseItem takes an item out of a reply that has any.
func loseItem(m map[string]any) bool {
	items, _ := m["Items"].([]any)
	if len(items) == 0 {
		return false
	}
	m["Items"], m["Count"], m["ScannedCount"] = items[1:], len(items)-1, len(items)-1
	return true
}

func reverseSets(v any) {
	switch v := v.(type) {
	case []any:
		for _, part := range v {
			reverseSets(part)
		}
	case map[string]any:
		for name, part := range v {
			if members, ok := part.([]any); ok && len(v) == 1 && strings.HasSuffix(name, "S") {
				slices.Reverse(members)
				continue
			}
			reverseSets(part)
		}
	}
}
