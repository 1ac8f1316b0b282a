package store

import (
	"slices"
	"strings"
)

// LimitName is the generated name of a limit, such as limits.GPT4TPM. A string does not implement it. That of
// a resource with limits of money has a method Unit, too.
type LimitName interface {
	Resource() string // as in limits.yaml and DeniedError.Resource
	String() string   // as in limits.yaml and DeniedError.Limit
}

// NameOf returns the name of l, a generated limit: names has those of its resource, from l = 1 on. It returns
// "" for any other l. Generated code calls it, and for the unit of l, too.
func NameOf[L ~uint8](l L, names ...string) string {
	if l < 1 || int(l) > len(names) {
		return ""
	}
	return names[l-1]
}

// ParsePlan is the reverse of NameOf for plans: names has those of limits.yaml, from the plan 1 on. It fails
// with an *InvalidError. Generated code calls it.
func ParsePlan[P ~uint8](name string, names ...string) (P, error) {
	i := slices.Index(names, name)
	if i < 0 {
		return 0, &InvalidError{Field: "plan", Value: name, Reason: "is none of limits.yaml: it can be " +
			strings.Join(names, ", ")}
	}
	return P(i + 1), nil //nolint:gosec // at most len(names), which are constants of a uint8
}
