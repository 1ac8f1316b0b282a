package x

import (
	"context"

	limits "github.com/sluice-go/sluice/gen/testdata/golden/plans/out"
)

func f(ctx context.Context, lim *limits.Limiter, key limits.Key) {
	lim.PlanOf(ctx, key)
}
