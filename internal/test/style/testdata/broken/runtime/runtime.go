// Package runtime breaks the rules of comments, names and exported names.
package runtime

// Resource is one exported name. Who reads on finds a sentence that opens as none may. Who asks?
type Resource struct{}

// Lease is the second exported name. Its sentence is far too long, since it goes on and on and adds one clause
// after the other, until a reader has forgotten what it began with, which is what the rule is there for.
type Lease struct{}

// Third is one name too many, and mended.
const Third = 3

// next declares private words as a function's name, a parameter, a result, a local, a range and a field.
func nextLeg(share int) (told bool) {
	rival := struct{ lanes int }{}
	for patience := range share {
		_ = patience
	}
	return rival.lanes == 0
}
