package x

import limits "github.com/sluice-go/sluice/generated"

func f(denied *limits.DeniedError) bool {
	return denied.Limit == limits.EmbeddingsRPS
}
