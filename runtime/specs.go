package runtime

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/store"
)

// Specs returns what describes the resources of l, in the order of limits.yaml: for what works on them beside calls, as regional
// sync does. Nobody changes them.
func Specs(l *Limiter) []*store.Spec { return slices.Clone(l.core.specs) }
