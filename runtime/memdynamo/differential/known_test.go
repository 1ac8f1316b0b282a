package differential_test

import (
	"encoding/json"
	"slices"
)

// knownDifference is a difference from DynamoDB Local that we keep, because the service itself differs from
// Local there.
type knownDifference struct {
	id     string
	why    string // what Local does, and what the service
	source string // who says so
	// amend makes Local's replies what the service's would be, as far as this goes. ours are for comparison.
	amend func(o operation, truth, ours []reply) []reply
}

// Sources.
const (
	dynalite = "messages recorded from AWS in github.com/architect/dynalite, test/"
	manual   = "Amazon DynamoDB Developer Guide, "
	api      = "Amazon DynamoDB API Reference, "
	measured = "measured on AWS in eu-west-2: github.com/floci-io/floci, pull request 3674"
)

// known is all of them, those about what is done before those about words.
var known = []knownDifference{
	{
		"nested-numbers",
		"Local returns numbers in lists, maps and sets as they were written; the service, normalised as everywhere",
		manual + "Supported data types: leading and trailing zeroes are trimmed", inPlace(amendNumbers),
	},
	{
		"unasked-capacity", "Local tells the capacity of a DeleteItem that found nothing even if not asked to",
		api + "DeleteItem: ReturnConsumedCapacity", inPlace(amendUnasked),
	},
	{
		"empty-reads",
		"Local bills nothing for a Query or Scan that reads nothing; the service, the least that a read costs",
		manual + "Read consumption: items that do not exist", inPlace(amendEmptyReads),
	},
	{
		"missing-items",
		"Local bills nothing for the keys of a BatchGetItem that have no item; the service, as GetItem",
		manual + "Read consumption: items that do not exist", inPlace(amendMissing),
	},
	{
		"half-index-keys", "Local bills an index for a change from one half of its key to the other",
		manual + "Write consumption of global secondary indexes", inPlace(amendHalfKeys),
	},
	{
		"batch-deletes", "Local bills a delete in a batch that finds nothing twice",
		manual + "Write consumption: one unit for an item that does not exist", inPlace(amendBatchDeletes),
	},
	{
		"index-reads",
		"Local bills reads of an index by the sizes of whole items, but not what a Scan fetches from the table",
		manual + "Secondary indexes: read operations", inPlace(amendIndexReads),
	},
	{
		"last-page", "Local gives no LastEvaluatedKey with the item that is the last that the key condition allows",
		api + "Query: LastEvaluatedKey", amendLastPage,
	},
	{
		"filter-sees-all", "Local filters what it reads from an index by attributes that are not in it",
		manual + "Global secondary indexes: only projected attributes can be read", inPlace(amendFilters),
	},
	{
		"start-at-end", "Local refuses to start a query at the bound that it reads towards",
		api + "Query: ExclusiveStartKey is what LastEvaluatedKey was", inPlace(amendStartAtEnd),
	},
	{
		"updated-paths",
		"Local returns the whole attribute as updated where the update names a path in it; the service, the path",
		api + "UpdateItem: ReturnValues", inPlace(amendUpdatedPaths),
	},
	{
		"update-faults",
		"Local reports the one of several faults of an update whose attribute its hash table has last",
		"DynamoDB Local 2.6.1; the service promises no order", inPlace(amendUpdateFaults),
	},
	{
		"token-first", "Local looks at the request token before the request",
		api + "TransactWriteItems", inPlace(fallen("IdempotentParameterMismatchException", `.`)),
	},
	{
		"keys-first",
		"Local does one action after the other, and reports a key that does not fit its table among other " +
			"reasons; the service looks at all keys before it reads an item, and gives the first that does not " +
			"fit as the only reason",
		measured, inPlace(amendKeysFirst),
	},
	{
		"short-reasons", "Local gives the ValidationError that cancelled a transaction as its only reason",
		api + "TransactWriteItems: a reason for each action", inPlace(amendShortReasons),
	},
	{
		"transaction-units",
		"Local doubles writes in a transaction twice, and of actions in a table with equal bills counts one",
		manual + "Transactions: two underlying writes of every item", inPlace(amendTransaction),
	},
	{
		"constraints",
		"Local words what a parameter may be its own way, and late; the service has a form for it, before all else",
		dynalite + "*.js", inPlace(amendConstraints),
	},
	{
		"internal-failure", "Local fails",
		"DynamoDB Local 2.6.1: UpdateItem without an UpdateExpression, UPDATED_NEW", inPlace(amendFailure),
	},
	{
		"which-fault",
		"of faults in the table, the keys, a value and an expression, Local may report another than we",
		dynalite + "updateItem.js: the service reads the expressions before it looks at the table",
		inPlace(amendWhichFault),
	},
	{
		"value-in-path", "Local's grammar takes a value for a step of a path, and fails later or not at all",
		manual + "Expression attribute names: paths are of names", inPlace(amendValueInPath),
	},
	{
		"update-paths-first",
		"Local looks at the condition before it says that an update may not change the key, or look into one",
		manual + "UpdateItem: expressions are checked before any item is read",
		inPlace(amendUpdatePaths),
	},
	{
		"size-is-reserved", "Local takes size for an attribute's name; the service reserves it",
		manual + "Reserved words: SIZE",
		inPlace(fallen("",
			`^Invalid \w+Expression: Attribute name is a reserved keyword; reserved keyword: size$`)),
	},
	{
		"same-number",
		"Local takes 1 and 1e0 for different keys when it looks for an item that stands twice in a transaction",
		manual + "Transactions: one item, one action",
		inPlace(fallen("",
			`^Transaction request cannot include multiple operations on one item$|^Provided list of item keys `+
				`contains duplicates$`)),
	},
	{
		"empty-mismatch", "Local has no message for a reused request token",
		api + "TransactWriteItems", inPlace(ours("IdempotentParameterMismatchException", `^$`, `.`)),
	},
	{
		"index-keys",
		"Local takes an update that gives an index key a wrong type or size, and a check that looks into one; " +
			"the service refuses",
		manual + "Global secondary indexes: the index key's type",
		inPlace(acceptedBut(`secondary index key|Type mismatch for Index Key|Key attributes must be scalars`)),
	},
	{
		"reasons", "Local ends the message of a failed condition in a transaction with a full stop, and words " +
			"others its own way",
		api + "CancellationReason", inPlace(amendReasons),
	},
	{
		"transaction-errors",
		"Local lets an action's error through as it is; the service cancels the transaction for that reason",
		api + "TransactWriteItems: cancellation reason ValidationError", inPlace(amendCancelled),
	},
}

// inPlace is an amendment that changes the replies it is given.
func inPlace(amend func(operation, []reply, []reply)) func(operation, []reply, []reply) []reply {
	return func(o operation, truth, ours []reply) []reply {
		amend(o, truth, ours)
		return truth
	}
}

// explain returns the known differences that are the whole of this one; nil if there is more to it.
func explain(o operation, truth, ours []reply) []string {
	amended, was := cloneAll(truth), textOf(truth)
	var ids []string
	for _, d := range allKnown() {
		amended = d.amend(o, amended, ours)
		if is := textOf(amended); is != was {
			ids, was = append(ids, d.id), is
		}
	}
	if difference(o, amended, ours) != "" {
		return nil
	}
	return ids
}

// allKnown is what is done otherwise, then what is only put otherwise.
func allKnown() []knownDifference {
	list := slices.Clone(known)
	for _, w := range wordings {
		list = append(list, knownDifference{w.id, "Local words it otherwise", w.source, inPlace(w.amend())})
	}
	return list
}

// cloneAll is a deep copy.
func cloneAll(replies []reply) []reply {
	var copied []reply
	if err := json.Unmarshal([]byte(textOf(replies)), &copied); err != nil {
		panic(err) // it was JSON just before
	}
	return copied
}
