package x

import (
	"context"

	limits "github.com/sluice-go/sluice/gen/testdata/golden/templates/out"
)

func f(_ context.Context, lim *limits.Limiter) {
	var _ limits.ModelAcquirer = lim.Model
}
