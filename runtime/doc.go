// Package runtime drives generated limits: acquire, wait, settle, release, peek.
//
//	lease, err := lim.GPT4.Acquire(ctx, ada, limits.GPT4Cost{TPM: 9_000}) // of the user and its project
//	if err != nil {
//		return "", err
//	}
//	defer lease.Release(ctx) // gives all back, unless the lease is settled
//
//	reply, used, err := model(prompt)
//	if err != nil {
//		return "", err
//	}
//	return reply, lease.Settle(ctx, limits.GPT4Cost{TPM: used})
//
// A call charges the buckets of an entity's chain, all or none ([Resource]), or several resources together
// ([Limiter.AcquireAll]). A store may hold which entity belongs to which ([Entities]), and limits other than
// limits.yaml's ([Config]). The failure policy decides on calls while the store does not answer ([Policy]); a
// circuit breaker keeps them from waiting for it.
//
// Services import the package that sluice generated from their limits.yaml, above as limits. It re-exports
// the errors of this one. Nothing here knows DynamoDB or Redis: a [Store] does.
package runtime
