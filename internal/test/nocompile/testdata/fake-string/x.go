package x

import (
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/limittest"
)

func f(fake *limittest.Fake[limits.GPT4Entity, limits.GPT4Cost]) {
	fake.Deny("nope", 0)
}
