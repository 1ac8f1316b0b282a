// Package dynamotest gives tests a real engine: one DynamoDB Local per test binary, and a table per test.
//
//	func TestMain(m *testing.M) { dynamotest.Main(m) }
//
//	func TestAcquire(t *testing.T) {
//		client := dynamotest.Client(t)
//		table := dynamotest.Table(t, client, createTableInput)
//		…
//	}
//
// Where the machine cannot run the engine, such a test skips and says what to install. CI sets SLUICE_REQUIRE_DYNAMODB=1:
// there it fails, so that a missing engine cannot pass for a green run.
package dynamotest
