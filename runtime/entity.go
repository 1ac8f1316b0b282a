package runtime

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Link is one entity of a chain.
type Link struct {
	Kind   int    // index into the schema's kinds
	ID     string // as the caller gave it, without the kind's prefix
	Lookup bool   // the chain ends here until the store says who its parent is
}

// Entity is who is charged. Only generated kinds implement it: each resource's entity interface has a private method.
type Entity interface {
	// Chain appends the entity and its ancestors to dst, nearest first.
	Chain(dst []Link) []Link
}

// maxID is the length of an id in bytes. With its kind it stays far below the 1024 bytes of a sort key, which an index
// makes of it.
const maxID = 256

// checkID says what is wrong with an id, or nothing.
func checkID(id string) string {
	switch {
	case id == "":
		return "is empty: set the entity's ID"
	case len(id) > maxID:
		return fmt.Sprintf("has %d bytes, more than %d: use a shorter id, or a hash of it", len(id), maxID)
	case strings.Contains(id, "#"):
		return "contains '#', which separates the parts of a key: replace or encode it"
	case !utf8.ValidString(id):
		return "is not valid UTF-8, so that two ids could become one: encode it, in hex for example"
	}
	return ""
}
