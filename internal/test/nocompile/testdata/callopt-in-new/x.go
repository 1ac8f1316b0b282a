package x

import (
	"context"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
)

func f(ctx context.Context, lim *limits.Limiter, user limits.User, org limits.Org) {
	limits.New(nil, runtime.Budget(1))
}
