package differential_test

import "regexp"

// wording is a difference in words: in Local's message what matches local stands for what matches aws in
// ours.
type wording struct {
	id, local, aws, source string
}

// amend puts ours in place of Local's words, where both have them.
func (w wording) amend() func(operation, []reply, []reply) {
	local, aws := regexp.MustCompile(w.local), regexp.MustCompile(w.aws)
	return func(_ operation, truth, ours []reply) {
		for i := range min(len(truth), len(ours)) {
			there, here := local.FindStringIndex(truth[i].Message), aws.FindString(ours[i].Message)
			reworded := truth[i].Code == ours[i].Code && truth[i].Message != ours[i].Message
			if reworded && there != nil && here != "" {
				truth[i].Message = truth[i].Message[:there[0]] + here + truth[i].Message[there[1]:]
			}
		}
	}
}

var wordings = []wording{
	{"no-table", `Cannot do operations on a non-existent table`, `Requested resource not found`,
		dynalite + "getItem.js"},
	{"not-a-number", `A value provided cannot be converted into a number( for key :\w+)?`,
		`The parameter cannot be converted to a numeric value(: .*?)?( for key :\w+$|$)`,
		dynalite + "batchGetItem.js"},
	{"digits", `DynamoDB only supports precision up to 38 digits`,
		`Attempting to store more than 38 significant digits in a Number`, dynalite + "batchGetItem.js"},
	{"set-duplicates", `\] contains duplicates`, `\] contains duplicates\.`, dynalite + "batchGetItem.js"},
	{"binary-duplicates", `Input collection of type BS contains duplicates\.`,
		`Input collection \[.*\]of type BS contains duplicates\.`, dynalite + "batchGetItem.js"},
	{"return-values", `Return values set to invalid value`, `ReturnValues can only be ALL_OLD or NONE`,
		dynalite + "putItem.js"},
	{"item-keys",
		`(One of the required keys was not given a value|.*Type mismatch for key|Invalid attribute value type)`,
		`One or more parameter values were invalid: (Missing the key \S+ in the item|Type mismatch for ` +
			`(key|Index Key) .*)`, dynalite + "putItem.js"},
	{"keys", `(The number of conditions on the keys is invalid|.*Type mismatch for key|Invalid attribute ` +
		`value type|One of the required keys was not given a value)`,
		`The provided key element does not match the schema`, dynalite + "getItem.js"},
	{"key-sizes",
		`(Hash primary key values must be under|One or more parameter values were invalid: Size limit exceeded).*`,
		`One or more parameter values were invalid: (Size of hashkey has exceeded the maximum size limit of2048 ` +
			`bytes|Aggregated size of all range keys has exceeded the size limit of 1024 bytes)`,
		dynalite + "getItem.js"},
	{"precision", `^DynamoDB only supports precision up to 38 digits$`,
		`^Number overflow. Attempting to store a number with magnitude larger than supported range$`,
		dynalite + "updateItem.js"},
	{"start-key",
		`^(The query can return at most one row and cannot be restarted. .*|Exclusive Start Key must have same ` +
			`size as table's key schema|The provided starting key does not match the range key predicate|Type ` +
			`mismatch for attribute to update)$`,
		`^(The provided starting key is (invalid|outside query boundaries).*|The provided key element does not ` +
			`match the schema)`, dynalite + "query.js"},
	{"consistent-index", `Consistent read cannot be true when (scanning|querying) a GSI`,
		`Consistent reads are not supported on global secondary indexes`, dynalite + "query.js"},
	{"no-hash-key", `^Query condition missed key schema element$`,
		`^Query condition missed key schema element: \w+$`, dynalite + "query.js"},
	{"segments",
		`^(If (total segments|segment) is specified, .*|1 validation error detected: Value '\d+' at 'segment' .*)`,
		`^The (TotalSegments|Segment) parameter is .*`, dynalite + "scan.js"},
	{"bounds", `operand: AttributeValue: \{N:.*\}`, `operand: AttributeValue: \{N:.*\}`,
		"Local names the bounds of BETWEEN as they were written, we as they are"},
	{"nested-key-condition", `^Key attributes must be scalars; .*`,
		`^KeyConditionExpressions cannot have conditions on nested attributes$`, dynalite + "query.js"},
	{"unprojected-path",
		`^One or more parameter values were invalid: Global secondary index \w+ does not project \[.*\]$`,
		`^Key attributes must be scalars; .*`, dynalite + "query.js"},
	{"overlap", `path two: \[.*\]`, `path two: \[.*\]`, dynalite + "updateItem.js"},
}
