package wire

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// WriteUnits returns what a write cost. DynamoDB bills a failed condition like a write, and does not say so; buckets are
// rarely above 1 KB, so that is one unit.
func WriteUnits(o Outcome, consumed *types.ConsumedCapacity) float64 {
	switch {
	case o == Refused:
		return 1
	case consumed != nil:
		return aws.ToFloat64(consumed.CapacityUnits)
	}
	return 0
}

// CancelledUnits returns what a transaction over n items cost that was cancelled: like one that is applied, whether by a condition or
// by another transaction. One that was throttled cost nothing.
func CancelledUnits(o Outcome, n int) float64 {
	if o == Refused || o == Conflict {
		return 2 * float64(n)
	}
	return 0
}
