package x

import (
	"context"

	limits "github.com/sluice-go/sluice/generated"
)

func f(ctx context.Context, lim *limits.Limiter, user limits.User, org limits.Org) {
	lim.Config.GPT4.Entity(user).Set(ctx, limits.EmbeddingsLimits{}, "")
}
