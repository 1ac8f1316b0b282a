package x

import (
	"context"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
)

func f(ctx context.Context, lim *limits.Limiter, user limits.User) {
	lease, _ := lim.GPT4.Acquire(ctx, user, limits.GPT4Cost{TPM: 5}, runtime.Budget(1))
	lease.Settle(ctx, limits.GPT4Cost{TPM: 4})
	lease.Release(ctx)
	lim.Embeddings.Acquire(ctx, user.Project, limits.EmbeddingsCost{})
	var d *limits.DeniedError
	_ = d.Limit == limits.GPT4RPM
}
