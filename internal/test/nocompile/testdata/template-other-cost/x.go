package x

import (
	"context"

	limits "github.com/sluice-go/sluice/gen/testdata/golden/templates/out"
)

func f(ctx context.Context, model *limits.ModelResource, key limits.Key) {
	model.Acquire(ctx, key, limits.VoiceUsage{Characters: 5}.Cost())
}
