// Package expr is DynamoDB's expression language: conditions, filters, updates, projections and key
// conditions. A text is parsed, checked and resolved once; the result is evaluated against items, which it
// never changes.
package expr

// Parameters that hold expressions, by the names that error messages use.
const (
	ConditionExpression    = "ConditionExpression"
	FilterExpression       = "FilterExpression"
	KeyConditionExpression = "KeyConditionExpression"
	ProjectionExpression   = "ProjectionExpression"
	UpdateExpression       = "UpdateExpression"
)
