package differential_test

import (
	"math/big"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// This file holds known differences in what Local and the service return.

// amendLastPage adds our empty last page to a query that ended with the last key that can be.
func amendLastPage(o operation, truth, ours []reply) []reply {
	n := len(truth)
	in, ok := o.input.(*dynamodb.QueryInput)
	if !ok || in.Limit == nil || len(ours) != n+1 || ours[n].Code != "" || ours[n].Body["ScannedCount"] != 0.0 {
		return truth
	}
	bounded := aws.ToString(in.TableName) == hashTable ||
		strings.Contains(strings.ToUpper(*in.KeyConditionExpression), " AND ")
	if last := ours[n-1].Body["LastEvaluatedKey"]; bounded && last != nil {
		truth[n-1].Body["LastEvaluatedKey"] = last
		return append(truth, ours[n])
	}
	return truth
}

// amendFilters takes our items where Local has found more in an index that does not hold everything.
func amendFilters(o operation, truth, ours []reply) {
	var x index
	var filter *string
	switch in := o.input.(type) {
	case *dynamodb.QueryInput:
		x, filter = indexOf(in.TableName, in.IndexName), in.FilterExpression
	case *dynamodb.ScanInput:
		x, filter = indexOf(in.TableName, in.IndexName), in.FilterExpression
	}
	if filter == nil || x.name == "" || x.projection.ProjectionType == types.ProjectionTypeAll {
		return
	}
	for i := range min(len(truth), len(ours)) {
		for _, name := range []string{"Items", "Count", "ConsumedCapacity"} {
			if v, ok := ours[i].Body[name]; ok {
				truth[i].Body[name] = v
			}
		}
	}
}

// amendStartAtEnd takes our empty page where Local sees a start key out of bounds.
func amendStartAtEnd(o operation, truth, ours []reply) {
	_, ok := o.input.(*dynamodb.QueryInput)
	if ok && truth[0].Message == "The provided starting key does not match the range key predicate" &&
		ours[0].Body["ScannedCount"] == 0.0 {
		truth[0] = ours[0]
	}
}

// amendUpdatedPaths takes our attributes where they are parts of Local's.
func amendUpdatedPaths(o operation, truth, ours []reply) {
	in, ok := o.input.(*dynamodb.UpdateItemInput)
	if !ok || in.ReturnValues != types.ReturnValueUpdatedNew && in.ReturnValues != types.ReturnValueUpdatedOld {
		return
	}
	theirs, _ := truth[0].Body["Attributes"].(map[string]any)
	mine, _ := ours[0].Body["Attributes"].(map[string]any)
	for name, part := range mine {
		if whole, ok := theirs[name]; ok && partOf(part, whole) {
			theirs[name] = part
		}
	}
}

// partOf tells whether part is whole without some members of its maps and lists.
func partOf(part, whole any) bool {
	switch part := part.(type) {
	case map[string]any:
		w, ok := whole.(map[string]any)
		for name, v := range part {
			ok = ok && partOf(v, w[name])
		}
		return ok
	case []any:
		rest, ok := whole.([]any)
		for _, v := range part {
			i := slices.IndexFunc(rest, func(w any) bool { return partOf(v, w) })
			if !ok || i < 0 {
				return false
			}
			rest = rest[i+1:]
		}
		return ok
	}
	return part == whole
}

// amendNumbers writes every number the plain way.
func amendNumbers(_ operation, truth, _ []reply) {
	for _, r := range truth {
		writePlain(r.Body)
	}
}

func writePlain(v any) {
	switch v := v.(type) {
	case []any:
		for _, part := range v {
			writePlain(part)
		}
	case map[string]any:
		for name, part := range v {
			switch part := part.(type) {
			case string:
				if name == "N" && len(v) == 1 {
					v[name] = plainNumber(part)
				}
			case []any:
				if name == "NS" && len(v) == 1 {
					for i, member := range part {
						if text, ok := member.(string); ok {
							part[i] = plainNumber(text)
						}
					}
					sortAny(part)
					continue
				}
				writePlain(part)
			default:
				writePlain(part)
			}
		}
	}
}

// plainNumber writes a number without an exponent and needless zeroes. The text is one that an engine took
// for a number.
func plainNumber(text string) string {
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return text
	}
	const places = 130 + 38
	plain := n.FloatString(places)
	return strings.TrimSuffix(strings.TrimRight(plain, "0"), ".")
}
