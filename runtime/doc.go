// Package runtime drives generated limits: acquire, wait, settle, release, peek.
//
// A call charges the buckets of an entity's chain, all or none (Resource), and several resources together (AcquireAll).
// Who belongs to whom may be stored (Entities), and so may other limits than limits.yaml's (Config). What becomes of calls
// while the store does not answer is the failure policy's to say (Policy); a circuit breaker keeps them from waiting for it.
//
// Services import the package that sluice generated from their limits.yaml; it re-exports what they need of this one.
// Nothing here knows DynamoDB: a Store does.
package runtime
