package engine

// Known reports whether Do knows the operation, and whether it is one of DynamoDBStreams_20120810.
func Known(operation string) (known, streams bool) {
	switch operation {
	case "ListStreams", "DescribeStream", "GetShardIterator", "GetRecords":
		streams = true
	}
	_, known = operations[operation]
	return known, streams
}
