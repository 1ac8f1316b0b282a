package x

import (
	"context"

	plans "github.com/sluice-go/sluice/gen/testdata/golden/plans/out"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
)

func f(ctx context.Context, lim *limits.Limiter, user limits.User) {
	lease, _ := lim.GPT4.Acquire(ctx, user, limits.GPT4Cost{TPM: 5}, runtime.Budget(1))
	lease.Settle(ctx, limits.GPT4Cost{TPM: 4})
	lease.Release(ctx)
	lim.GPT4.Acquire(ctx, limits.UserByID("1"), limits.GPT4Cost{TPM: 5})
	lim.Embeddings.Acquire(ctx, user.Project, limits.EmbeddingsCost{})
	lim.Config.GPT4.Entity(user).Set(ctx, limits.GPT4Limits{RPM: &runtime.Rate{Capacity: 200}}, "")
	var d *limits.DeniedError
	_ = d.By(limits.GPT4RPM)
}

func g(ctx context.Context, lim *plans.Limiter, key plans.Key) {
	lim.SetPlan(ctx, key.Team.Org, plans.PlanPro)
	lim.PlanOf(ctx, key.Team.Org)
	lim.Config.Model.Plan(plans.PlanPro, plans.Key{}).Delete(ctx, "")
	lim.Config.Model.Entity(key).Delete(ctx, "")
}
