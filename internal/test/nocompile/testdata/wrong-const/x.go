package x

import (
	"context"

	limits "github.com/sluice-go/sluice/generated"
)

func f(ctx context.Context, lim *limits.Limiter, user limits.User, org limits.Org) {
	var d *limits.DeniedError
	_ = d.Limit == limits.GPT4RPS
}
