package runtime

import "slices"

// Specs returns what describes the resources of l, in the order of limits.yaml: for what works on them beside calls, as regional
// sync does. Nobody changes them.
func Specs(l *Limiter) []*Spec { return slices.Clone(l.core.specs) }
