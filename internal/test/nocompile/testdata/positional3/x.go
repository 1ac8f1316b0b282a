package x

import (
	"context"

	limits "github.com/sluice-go/sluice/generated"
)

func f(ctx context.Context, lim *limits.Limiter, user limits.User, org limits.Org) {
	lim.GPT4.Acquire(ctx, user, limits.GPT4Cost{struct{}{}, 1, 5})
}
