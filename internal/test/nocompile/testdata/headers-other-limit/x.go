package x

import (
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/httplimit"
)

var _ = httplimit.OpenAIHeaders(limits.GPT4RPM, limits.EmbeddingsRPS)
