// Package differential holds memdynamo to DynamoDB Local: random histories of operations run on both through
// the SDK's client, and every reply and the final tables are compared. It has only tests.
//
// What may differ is listed in known_test.go and knownwords_test.go, each with its reason; the test's end
// tells how often each was met. A history that differs is shrunk and printed, a line of JSON per operation.
// Every run takes the same histories; to look for more:
//
//	SLUICE_DYNAMODB=local go test ./runtime/memdynamo/differential -run TestDifferential -rapid.seed 2 -rapid.checks 500 -v
package differential
