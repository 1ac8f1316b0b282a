// Package dynamotest gives tests a DynamoDB, and a table per test.
//
//	func TestMain(m *testing.M) { dynamotest.Main(m) }
//
//	func TestAcquire(t *testing.T) {
//		client := dynamotest.Client(t)
//		table := dynamotest.Table(t, client, createTableInput)
//		…
//	}
//
// It is the engine in the process, one per test binary, which needs nothing. With SLUICE_DYNAMODB=local the
// same tests run on DynamoDB Local (`make test-local`). A machine that cannot run it then fails them, so that
// a missing engine cannot pass for a green run. Tests that hold one engine against the other ask for Local,
// and skip without that variable.
package dynamotest
