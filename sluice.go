// Package sluice limits how much each user, project or tenant of a Go service may consume, in token buckets
// that all processes share in DynamoDB or Redis.
//
//	lease, err := gpt4.Acquire(ctx, user, limits.GPT4Cost{TPM: 9_000}) // of the user and its project
//	if denied, ok := errors.AsType[*limits.DeniedError](err); ok {
//		return denied.RetryAfter, nil
//	}
//	if err != nil {
//		return 0, err
//	}
//	defer lease.Release(ctx) // gives all back, unless the lease is settled
//	used, err := call(ctx)
//	if err != nil {
//		return 0, err
//	}
//	return 0, lease.Settle(ctx, limits.GPT4Cost{TPM: used})
//
// A team writes limits.yaml; `sluice generate` turns it into the package limits, in which a wrong limit or a
// wrong entity does not compile. This package has no code. The parts are:
//
//	cmd/sluice          the command: generates, checks, creates tables, reads and changes what they store
//	runtime             calls: acquire, wait, settle, release, peek, override
//	runtime/dynamo      the store in DynamoDB
//	runtime/redisstore  the store in Redis
//	runtime/httplimit   limits in front of net/http handlers
//	runtime/grpclimit   limits in front of gRPC handlers, a module of its own
//	runtime/limittest   limits in users' tests
//	runtime/usage       who consumed how much, and when
//	runtime/region      one limit for several regions
//	generated           what limits.yaml, beside this file, gives: the demonstration's limits
package sluice

//go:generate go run ./cmd/sluice generate
