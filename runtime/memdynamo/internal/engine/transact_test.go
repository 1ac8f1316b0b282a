package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/engine"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// transaction is the input of TransactWriteItems with those actions.
func transaction(actions ...string) string {
	return `{"TransactItems":[` + strings.Join(actions, ",") + `]}`
}

// withToken gives a transaction a token.
func withToken(token, transaction string) string {
	return `{"ClientRequestToken":"` + token + `",` + transaction[1:]
}

// putOf is a Put of an item of the table plain.
func putOf(pk string, more ...string) string {
	return `{"Put":{"TableName":"plain","Item":{"pk":{"S":"` + pk + `"}` + strings.Join(more, "") + `}}}`
}

// deleteIf is a Delete of an item of the table plain.
func deleteIf(pk, condition string, more ...string) string {
	return `{"Delete":{"TableName":"plain","Key":{"pk":{"S":"` + pk + `"}},"ConditionExpression":"` + condition +
		`"` + strings.Join(more, "") + `}}`
}

// add is an Update that adds 1 to n of an item of the table plain.
func add(pk string) string {
	return `{"Update":{"TableName":"plain","Key":{"pk":{"S":"` + pk +
		`"}},"UpdateExpression":"ADD n :n","ExpressionAttributeValues":{":n":{"N":"1"}}}}`
}

// cancelled holds that a TransactWriteItems is cancelled for those reasons, as codes and as JSON.
func (r *rig) cancelled(input, codes, reasons string) {
	r.t.Helper()
	got := r.fails("TransactWriteItems", input, exception.TransactionCanceled,
		"Transaction cancelled, please refer cancellation reasons for specific reasons ["+codes+"]")
	if diff := jsonDiff(`{"CancellationReasons":`+reasons+`}`, got); diff != "" {
		r.t.Errorf("%s: fields (-want +got):\n%s", input, diff)
	}
}

func TestTransactWriteParameters(t *testing.T) {
	r := newTables(t)
	const one = "1 validation error detected: "
	const null = "failed to satisfy constraint: Member must not be null"
	for _, test := range []struct{ input, message string }{
		{transaction(list(101, putOf("%d"))),
			one + "Value '[101 actions]' at 'transactItems' failed to satisfy constraint: Member must have length " +
				"less than or equal to 100"},
		{transaction(`null`), one + "Value null at 'transactItems.1.member' " + null},
		{transaction(putOf("a"), `{"Put":{}}`),
			"2 validation errors detected: Value null at 'transactItems.2.member.put.tableName' " + null +
				"; Value null at 'transactItems.2.member.put.item' " + null},
		{withToken("", transaction(putOf("a"))),
			one + "Value '' at 'clientRequestToken' failed to satisfy constraint: Member must have length greater " +
				"than or equal to 1"},
	} {
		r.invalid("TransactWriteItems", test.input, test.message)
	}
	r.fails("TransactWriteItems", transaction(putOf("a"), strings.Replace(putOf("b"), "plain", "nope", 1)),
		exception.ResourceNotFound, "Requested resource not found")
	r.gives("Scan", `{"TableName":"plain"}`, `{"Items":[],"Count":0,"ScannedCount":0}`)
}

func TestTransactWrite(t *testing.T) {
	r := newTables(t)
	r.gives("TransactWriteItems", transaction(putOf("a", `,"n":{"N":"1"}`), add("b"),
		deleteIf("c", "attribute_not_exists(pk)"),
		`{"ConditionCheck":{"TableName":"indexed","Key":{"pk":{"S":"a"},"sk":{"N":"1"}},
			"ConditionExpression":"attribute_not_exists(pk)"}}`), `{}`)
	const all = `{"Items":[{"pk":{"S":"a"},"n":{"N":"1"}},{"pk":{"S":"b"},"n":{"N":"1"}}]}`
	items := func() {
		t.Helper()
		r.gives("BatchGetItem",
			`{"RequestItems":{"plain":{"Keys":[{"pk":{"S":"a"}},{"pk":{"S":"b"}},{"pk":{"S":"c"}}]}}}`,
			`{"Responses":{"plain":`+all[len(`{"Items":`):len(all)-1]+`},"UnprocessedKeys":{}}`)
	}
	items()
	const failed = `{"Code":"ConditionalCheckFailed","Message":"The conditional request failed"`
	show := `,"ReturnValuesOnConditionCheckFailure":"ALL_OLD"`
	const wrongKey = `{"Delete":{"TableName":"plain","Key":{"pk":{"N":"1"}}}}`
	const noSource = `{"Code":"ValidationError","Message":"The provided expression refers to an attribute ` +
		`that does not exist in the item"}`
	setSum := func(pk string) string { return strings.Replace(add(pk), "ADD n :n", "SET n = zz + :n", 1) }
	for _, test := range []struct{ actions, codes, reasons string }{
		{add("c") + "," + deleteIf("a", "attribute_exists(nope)"), "None, ConditionalCheckFailed",
			`[{"Code":"None"},` + failed + `}]`},
		{deleteIf("a", "attribute_exists(nope)", show) + "," + add("b") + "," + deleteIf("c",
			"attribute_exists(nope)", show),
			"ConditionalCheckFailed, None, ConditionalCheckFailed",
			`[` + failed + `,"Item":{"pk":{"S":"a"},"n":{"N":"1"}}},{"Code":"None"},` + failed + `}]`},
		{setSum("a") + "," + deleteIf("b", "attribute_exists(nope)"), "ValidationError, ConditionalCheckFailed",
			`[` + noSource + `,` + failed + `}]`},
		{putOf("c") + `,{"Put":{"TableName":"plain","Item":{"pk":{"N":"1"}}}}`, "None, ValidationError",
			`[{"Code":"None"},{"Code":"ValidationError","Message":"One or more parameter values were invalid: ` +
				`Type mismatch for key pk expected: S actual: N"}]`},
		// A key that does not fit its table is found before conditions and duplicates, and the first one counts.
		{strings.Join([]string{deleteIf("a", "attribute_exists(nope)"), wrongKey, putOf("b"), putOf("b"), wrongKey},
			","), "None, ValidationError, None, None, None",
			`[{"Code":"None"},{"Code":"ValidationError","Message":"The provided key element does not match the ` +
				`schema"},{"Code":"None"},{"Code":"None"},{"Code":"None"}]`},
		{strings.Join([]string{deleteIf("a", "attribute_exists(nope)", show), setSum("b"), add("c"), setSum("d"),
			deleteIf("e", "attribute_exists(nope)", show)}, ","),
			"ConditionalCheckFailed, ValidationError, None, ValidationError, ConditionalCheckFailed",
			`[` + failed + `,"Item":{"pk":{"S":"a"},"n":{"N":"1"}}},` + noSource + `,{"Code":"None"},` + noSource +
				`,` + failed + `}]`},
		{`{"Delete":{"TableName":"plain","Key":{"x":{"S":"1"}}}}`, "ValidationError",
			`[{"Code":"ValidationError","Message":"The provided key element does not match the schema"}]`},
		{strings.Replace(add("a"), "ADD n", "ADD pk", 1), "ValidationError",
			`[{"Code":"ValidationError","Message":"One or more parameter values were invalid: Cannot update ` +
				`attribute pk. This attribute is part of the key"}]`},
	} {
		r.cancelled(transaction(test.actions), test.codes, test.reasons)
		items()
	}
}

// TestTransactWriteRefusals: an empty key refuses the request, whatever is wrong with other actions.
func TestTransactWriteRefusals(t *testing.T) {
	r := newTables(t)
	const wrongKey = `{"Delete":{"TableName":"plain","Key":{"pk":{"N":"1"}}}}`
	const emptyKey = `{"Delete":{"TableName":"plain","Key":{"pk":{"S":""}}}}`
	for _, actions := range []string{
		wrongKey + "," + emptyKey,
		putOf("a") + "," + putOf("a") + "," + emptyKey,
		deleteIf("a", "attribute_exists(pk)") + "," + emptyKey,
	} {
		r.invalid("TransactWriteItems", transaction(actions),
			"One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an "+
				"empty string value. Key: pk")
	}
	r.invalid("TransactWriteItems", transaction(putOf("a"), putOf("a"), deleteIf("b", "attribute_exists(pk)")),
		"Transaction request cannot include multiple operations on one item")
}

func TestIdempotency(t *testing.T) {
	r := newTables(t)
	n := func(want string) {
		t.Helper()
		r.gives("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"a"}},"ProjectionExpression":"n"}`,
			`{"Item":{"n":{"N":"`+want+`"}}}`)
	}
	once := withToken("t", transaction(add("a")))
	r.do("TransactWriteItems", once)
	n("1")
	r.do("TransactWriteItems", once)
	// The order of members, and what is returned, are no parameters of the transaction.
	r.do("TransactWriteItems",
		`{"ReturnConsumedCapacity":"TOTAL",
			"TransactItems":[{"Update":{"ExpressionAttributeValues":{":n":{"N":"1"}},`+
			`"Key":{"pk":{"S":"a"}},"UpdateExpression":"ADD n :n","TableName":"plain"}}],"ClientRequestToken":"t"}`)
	r.pass(10*time.Minute - 1)
	r.do("TransactWriteItems", once)
	n("1")
	r.fails("TransactWriteItems", withToken("t", transaction(add("b"))), exception.IdempotentMismatch,
		"DynamoDB rejected the request because you retried a request with a different payload but with an "+
			"idempotent token that was already used.")
	r.pass(1)
	r.do("TransactWriteItems", once)
	n("2")
	r.do("TransactWriteItems", transaction(add("a"))) // no token
	n("3")

	// A cancelled transaction leaves no token.
	cancelled := withToken("c", transaction(deleteIf("a", "attribute_exists(nope)")))
	for range 2 {
		r.cancelled(cancelled, "ConditionalCheckFailed",
			`[{"Code":"ConditionalCheckFailed","Message":"The conditional request failed"}]`)
	}
	r.do("TransactWriteItems", withToken("c", transaction(add("b"))))
}

// While a transaction is held, its items are its own; all else goes on.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTables(t)
		let := make(chan error)
		r.hold = func() func(context.Context) error {
			return func(ctx context.Context) error {
				select {
				case err := <-let:
					return err
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		held := func(ctx context.Context) <-chan error {
			ended := make(chan error, 1)
			go func() {
				_, err := r.Do(ctx, "TransactWriteItems",
					[]byte(withToken("t", transaction(add("a"), deleteIf("z", "attribute_not_exists(pk)")))))
				ended <- err
			}()
			synctest.Wait()
			return ended
		}
		const conflict = "Transaction is ongoing for the item"
		meets := func(pk string) {
			t.Helper()
			key := `{"TableName":"plain","Key":{"pk":{"S":"` + pk + `"}}}`
			r.fails("UpdateItem", key, exception.TransactionConflict, conflict)
			r.fails("DeleteItem", key, exception.TransactionConflict, conflict)
			r.fails("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"`+pk+`"}}}`, exception.TransactionConflict,
				conflict)
			r.gives("GetItem", key, `{}`)
			r.gives("BatchWriteItem", `{"RequestItems":{"plain":[{"DeleteRequest":{"Key":{"pk":{"S":"`+pk+
				`"}}}},{"DeleteRequest":{"Key":{"pk":{"S":"q"}}}}]}}`,
				`{"UnprocessedItems":{"plain":[{"DeleteRequest":{"Key":{"pk":{"S":"`+pk+`"}}}}]}}`)
			reasons := `[{"Code":"None"},{"Code":"TransactionConflict","Message":"` + conflict + `"}]`
			r.cancelled(transaction(putOf("q"), putOf(pk)), "None, TransactionConflict", reasons)
			r.do("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"q"}}}`)
		}

		ended := held(t.Context())
		meets("a")
		meets("z") // a condition holds its item too
		r.fails("TransactWriteItems",
			withToken("t", transaction(add("a"), deleteIf("z", "attribute_not_exists(pk)"))),
			exception.TransactionInProgress,
			"The transaction with the given request token is already in progress.")
		let <- nil
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		r.gives("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"a"}}}`,
			`{"Item":{"pk":{"S":"a"},"n":{"N":"1"}}}`)
		r.do("DeleteItem", `{"TableName":"plain","Key":{"pk":{"S":"a"}}}`)
		r.pass(time.Hour)

		// One whose caller gives up has done nothing, and lets go of its items and its token.
		ctx, cancel := context.WithCancel(t.Context())
		ended = held(ctx)
		meets("a")
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's error", err)
		}
		r.gives("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"a"}}}`, `{}`)
		ended = held(t.Context())
		let <- nil
		if err := <-ended; err != nil {
			t.Fatal(err)
		}

		// A table can go while its items are held.
		r.pass(time.Hour)
		ended = held(t.Context())
		r.do("DeleteTable", `{"TableName":"plain"}`)
		r.do("CreateTable", plainTable)
		let <- nil
		if err := <-ended; !exception.Is(err, exception.ResourceNotFound) {
			t.Errorf("got %v, want %s", err, exception.ResourceNotFound)
		}
		r.gives("Scan", `{"TableName":"plain"}`, `{"Items":[],"Count":0,"ScannedCount":0}`)
	})
}

func TestConflictByChance(t *testing.T) {
	r := newTables(t)
	r.under(engine.Conditions{Conflict: 1})
	r.fails("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"}}}`, exception.TransactionConflict,
		"Transaction is ongoing for the item")
	if bills := r.billed(); len(bills) > 0 {
		t.Errorf("bills %v for nothing", bills)
	}
	seen := map[string]bool{}
	for range 50 {
		_, err := r.Do(t.Context(), "TransactWriteItems", []byte(transaction(putOf("a"), putOf("b"))))
		if !exception.Is(err, exception.TransactionCanceled) {
			t.Fatalf("got %v", err)
		}
		_, codes, _ := strings.Cut(err.Error(), "specific reasons ")
		seen[codes] = true
	}
	if want := map[string]bool{"[TransactionConflict, None]": true,
		"[None, TransactionConflict]": true}; fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("reasons %v, want %v", seen, want)
	}
	r.gives("Scan", `{"TableName":"plain"}`, `{"Items":[],"Count":0,"ScannedCount":0}`)
}
