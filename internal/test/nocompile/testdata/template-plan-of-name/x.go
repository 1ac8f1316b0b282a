package x

import (
	"context"

	limits "github.com/sluice-go/sluice/gen/testdata/golden/templates/out"
)

func f(ctx context.Context, lim *limits.Limiter, key limits.Key) {
	lim.Config.Model.Named("gpt-5").Plan("pro", key).Delete(ctx, "")
}
