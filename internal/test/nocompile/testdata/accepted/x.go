package x

import (
	"context"

	plans "github.com/sluice-go/sluice/gen/testdata/golden/plans/out"
	templates "github.com/sluice-go/sluice/gen/testdata/golden/templates/out"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/limittest"
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

func h(ctx context.Context, lim *templates.Limiter, key templates.Key) {
	model, _ := lim.Model.Named(ctx, "gpt-5")
	lease, _ := model.Acquire(ctx, key, templates.ModelUsage{Input: 5, Output: 7}.Cost(model.Prices))
	lease.Settle(ctx, templates.ModelUsage{Input: 5, Output: 3}.Cost(model.Prices))
	var d *templates.DeniedError
	_ = d.By(templates.ModelMonth)
	var _ templates.ModelAcquirer = model
	var _ templates.ModelAcquirer = limittest.NewFake(templates.ModelResource{}.Resource)
	voice, _ := lim.Voice.Named(ctx, "alloy")
	voice.Acquire(ctx, key.Org, templates.VoiceUsage{Characters: 9}.Cost())
	lim.Config.Model.Entity(key).Delete(ctx, "")
	lim.Config.Model.Plan(templates.PlanPro, key.Org).Delete(ctx, "")
	named := lim.Config.Model.Named("gpt-5")
	named.Entity(key).Set(ctx, templates.ModelLimits{RPM: &runtime.Rate{Capacity: 200}}, "")
	named.Kind(key).Delete(ctx, "")
	named.Plan(templates.PlanPro, key).Delete(ctx, "")
	lim.Config.Voice.Named("alloy").Kind(key).Delete(ctx, "")
}
