package infra

import "github.com/aws/aws-sdk-go-v2/service/dynamodb"

// alarm is one on a metric of DynamoDB's. It has the table's dimension, and at most one more.
type alarm struct {
	Subject string // the table, an index or an operation
	Metric  string
	Why     string
	// Dimension and its Value; empty for the table alone.
	Dimension, Value string
}

// Operations are what acquires, settles and releases call. DynamoDB counts throttled requests and its own
// failures by table and operation, never by table alone, and a transaction under its own name.
func Operations() []string {
	return []string{"GetItem", "BatchGetItem", "PutItem", "UpdateItem", "TransactWriteItems"}
}

// alarms are all alarms of a table. Its metrics come only while something is counted, on demand as with
// provisioned units.
func alarms(in *dynamodb.CreateTableInput) []alarm {
	all := []alarm{
		{Subject: "Table", Metric: "ReadThrottleEvents",
			Why: "Reads are throttled: acquires that have to look at their bucket first fail or wait."},
		{Subject: "Table", Metric: "WriteThrottleEvents",
			Why: "Writes are throttled: a bucket is hot, or the table short of write units."},
	}
	for _, index := range in.GlobalSecondaryIndexes {
		name := *index.IndexName
		all = append(all,
			alarm{name, "ReadThrottleEvents", "Reads of the index are throttled: lists fail; acquires do without it.",
				"GlobalSecondaryIndexName", name},
			alarm{name, "WriteThrottleEvents", "The index falls behind: then writes of the table that touch it are " +
				"throttled too.", "GlobalSecondaryIndexName", name},
		)
	}
	for _, operation := range Operations() {
		all = append(all,
			alarm{operation, "ThrottledRequests", "Whole requests are throttled.", "Operation", operation},
			alarm{operation, "SystemErrors", "DynamoDB fails: outcomes are unknown, and the failure policy decides.",
				"Operation", operation},
		)
	}
	return all
}
