package store

import (
	"context"
	"fmt"
	"strings"
)

// Erasing is how MemberStore.Erase goes about it.
type Erasing struct {
	DryRun        bool // count, and delete nothing
	LeaveChildren bool // erase an entity although others name it as their parent
}

// Erased counts what Erase deleted of an entity, or would delete.
type Erased struct {
	Buckets   int // one for each resource, or name of a template; on a Redis cluster, for each root as well
	Overrides int // tombstones and regional quotas too
	Usage     int // windows of usage
	Other     int // its link and plan, entries of lists, grants, records, and items of unknown kinds
}

// NamedChildren is how many children an error names.
const NamedChildren = 3

// Childless returns an *InvalidError that names the first children of entity, if it has any. Stores call it.
func Childless(ctx context.Context, members MemberStore, entity string) error {
	var children []string
	for child, err := range members.Children(ctx, entity) {
		if err != nil {
			return err
		}
		if len(children) == NamedChildren {
			children = append(children, "others")
			break
		}
		children = append(children, Quote(child))
	}
	if len(children) == 0 {
		return nil
	}
	return &InvalidError{Field: "entity", Value: entity, Reason: fmt.Sprintf("is the parent of %s: nothing was "+
		"erased, since their look-ups would fail; store another parent for them, or leave the children as they are",
		strings.Join(children, ", "))}
}
