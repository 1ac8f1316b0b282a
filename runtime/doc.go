// Package runtime drives generated limits: acquire, wait, settle, release, peek.
//
// A call charges the buckets of an entity's chain, all or none (Resource), or several resources together
// (AcquireAll). A store may hold which entity belongs to which (Entities), and limits other than
// limits.yaml's (Config). The failure policy decides on calls while the store does not answer (Policy); a
// circuit breaker keeps them from waiting for it.
//
// Services import the package that sluice generated from their limits.yaml; it re-exports what they need of
// this one. Nothing here knows DynamoDB: a Store does.
package runtime
