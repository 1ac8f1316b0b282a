package x

import (
	"context"

	limits "github.com/sluice-go/sluice/gen/testdata/golden/plans/out"
)

func f(ctx context.Context, lim *limits.Limiter, org limits.Org) {
	lim.SetPlan(ctx, "org-1", limits.PlanPro)
}
