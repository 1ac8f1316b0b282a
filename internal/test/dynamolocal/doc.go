// Package dynamolocal runs DynamoDB Local, the engine our tests and the demonstration hold to be the truth,
// as a child process.
//
// The engine is a folder of jars that `make dynamodb-local` fetches; pom.xml beside this file names its
// version. It needs Java 17. Two environment variables choose another one: SLUICE_DYNAMODB_LOCAL names the
// folder of jars, and SLUICE_DYNAMODB_ENDPOINT an engine that is already running, which is then used as it is
// and never stopped.
package dynamolocal
