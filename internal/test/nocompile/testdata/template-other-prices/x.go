package x

import (
	"context"

	limits "github.com/sluice-go/sluice/gen/testdata/golden/templates/out"
)

func f(_ context.Context, image *limits.ImageResource) limits.ModelCost {
	return limits.ModelUsage{Input: 5}.Cost(image.Prices)
}
