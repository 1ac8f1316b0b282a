package main

import (
	"context"
	"errors"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
)

// gateway stands for one process of the gateway: a limiter of its own, and the model.
type gateway struct {
	gpt4       limits.GPT4Acquirer
	embeddings limits.EmbeddingsAcquirer
	model      func(ctx context.Context, prompt string) (answer, error)
}

// complete reserves the estimate, of the user and of the project, calls the model, settles what was used.
func (g *gateway) complete(ctx context.Context, user limits.User, prompt string) (answer, error) {
	lease, err := g.gpt4.Acquire(ctx, user, limits.GPT4Cost{TPM: estimate(prompt)}) // RPM: per_call 1
	if err != nil {
		return answer{}, err
	}
	defer lease.Release(ctx) // does nothing once settled; works though the client has gone
	reply, err := g.model(ctx, prompt)
	reply.degraded = lease.Degraded() // DynamoDB did not answer, and on_unavailable let the call through
	if reply.used > 0 {               // also when the stream broke half way
		err = errors.Join(err, lease.Settle(ctx, limits.GPT4Cost{TPM: reply.used}))
	}
	return reply, err
}

// embed charges a batch of texts. Its cost is known beforehand, so that there is nothing to settle: the lease is dropped.
func (g *gateway) embed(ctx context.Context, project limits.Project) (degraded bool, err error) {
	lease, err := g.embeddings.Acquire(ctx, project, limits.EmbeddingsCost{}) // RPS: per_call 1
	return lease.Degraded(), err
}

// forBatch returns g for jobs that would rather wait than be denied, but not for ever.
func (g *gateway) forBatch(gpt4 *limits.GPT4Resource) *gateway {
	batch := *g
	batch.gpt4 = patient{gpt4.With(runtime.MaxWait(5 * time.Second))}
	return &batch
}

// patient is an acquirer that waits for tokens.
type patient struct{ limits.GPT4Acquirer }

// Acquire is Wait.
func (p patient) Acquire(
	ctx context.Context, entity limits.GPT4Entity, cost limits.GPT4Cost, opts ...runtime.CallOption,
) (*limits.GPT4Lease, error) {
	return p.Wait(ctx, entity, cost, opts...)
}
