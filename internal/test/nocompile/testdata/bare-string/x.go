package x

import (
	"context"

	limits "github.com/sluice-go/sluice/generated"
)

func f(ctx context.Context, lim *limits.Limiter, user limits.User, org limits.Org) {
	lim.GPT4.Acquire(ctx, "user-123", limits.GPT4Cost{TPM: 5})
}
