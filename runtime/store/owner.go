package store

import "fmt"

// OtherOwner returns the *SetupError for a place, such as table rate_limits, that records another owner than
// own, the one of limits.yaml. An own of "" is that of a caller without limits.yaml. A table may hold any
// text as its owner, so both are quoted.
func OtherOwner(place, recorded, own string) *SetupError {
	if own == "" {
		return &SetupError{
			What: fmt.Sprintf("%s belongs to owner %s, and there is no limits.yaml to compare it with", place,
				Quote(recorded)),
			Do: "name the limits.yaml of that owner, or the owner",
		}
	}
	return &SetupError{
		What: fmt.Sprintf("%s belongs to owner %s, and this limits.yaml has owner %s: they would overwrite each "+
			"other's buckets and overrides", place, Quote(recorded), Quote(own)),
		Do: "use another table or a dynamo.Namespace of your own (on Redis another Prefix), or write the same " +
			"owner if both have one limits.yaml",
	}
}
