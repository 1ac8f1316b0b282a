package x

import (
	"context"

	limits "github.com/sluice-go/sluice/gen/testdata/golden/templates/out"
)

func f(ctx context.Context, lim *limits.Limiter) {
	lim.Text.Named(ctx, "gpt-5")
}
