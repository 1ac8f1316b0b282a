// Package sluice is the root of a code generator and runtime for distributed rate limits on DynamoDB.
//
// A team writes limits.yaml; sluice generate turns it into a typed Go package whose calls are admitted or
// denied by token buckets in one table. The parts are:
//
//	cmd/sluice       the command line
//	gen              limits.yaml -> Go
//	runtime          what generated code runs on
//	runtime/dynamo   the store
//	generated        what limits.yaml, beside this file, gives: the demonstration's limits
package sluice

//go:generate go run ./cmd/sluice generate
