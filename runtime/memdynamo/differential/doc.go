// Package differential holds memdynamo to DynamoDB Local: random histories of operations run on both through
// the SDK's client, and every reply and the final tables are compared. Not for import: it has only tests.
//
// Known differences are listed in known_test.go and knownwords_test.go, each with its reason. At its end the
// test prints how often each occurred. A history that differs is shrunk and printed, a line of JSON per
// operation. Every run takes the same histories; to look for more:
//
//	SLUICE_DYNAMODB=local go test ./runtime/memdynamo/differential \
//		-run TestDifferential -rapid.seed 2 -rapid.checks 500 -v
package differential
