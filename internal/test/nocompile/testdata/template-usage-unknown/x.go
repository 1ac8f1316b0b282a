package x

import (
	"context"

	limits "github.com/sluice-go/sluice/gen/testdata/golden/templates/out"
)

func f(_ context.Context, model *limits.ModelResource) limits.ModelCost {
	return limits.ModelUsage{Reasoning: 5}.Cost(model.Prices)
}
