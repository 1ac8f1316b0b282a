package store

import (
	"fmt"
	"slices"
	"strings"
)

// Link is one entity of a chain.
type Link struct {
	Kind   int    // index into the schema's kinds
	ID     string // as the caller gave it, without the kind's prefix
	Lookup bool   // the chain ends here until the store returns the parent
}

// Entity is the entity that a call charges. Only generated kinds implement it: each resource's entity
// interface has a private method.
type Entity interface {
	// Chain appends the entity and its ancestors to dst, nearest first.
	Chain(dst []Link) []Link
}

// maxID is the maximal length of an id in bytes. With its kind it stays far below the 1024 bytes of a sort
// key, in which an index has it.
const maxID = 256

// parse splits a stored id that a user has written, the value of field: its kind precedes the first '-'. The
// error says what is wrong with it, and names resource unless that is empty.
func parse(resource string, kinds []Kind, field, stored string) (kind int, id string, err error) {
	if kind, id, err = split(resource, kinds, field, stored); err != nil {
		return 0, "", err
	}
	if reason := CheckID(kinds[kind].Name+"-", id); reason != "" {
		return 0, "", &InvalidError{resource, "id of " + kinds[kind].Name, id, reason}
	}
	return kind, id, nil
}

// split is parse for an id that is stored already, in which any character may be.
func split(resource string, kinds []Kind, field, stored string) (kind int, id string, err error) {
	name, id, ok := strings.Cut(stored, "-")
	switch {
	case stored == "":
		return 0, "", &InvalidError{resource, field, "", "is empty: write it as it is stored, such as user-123"}
	case !ok || name == "" || id == "":
		return 0, "", &InvalidError{
			resource, field, stored, "is not <kind>-<id>: write it as it is stored, such as user-123",
		}
	}
	kind = slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })
	if kind < 0 {
		return 0, "", unknownKind(resource, kinds, field, stored, name)
	}
	if reason := malformed(id); reason != "" {
		return 0, "", &InvalidError{resource, "id of " + name, id, reason}
	}
	return kind, id, nil
}

func unknownKind(resource string, kinds []Kind, field, value, kind string) error {
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = kinds[i].Name
	}
	return &InvalidError{resource, field, value,
		fmt.Sprintf("is of kind %s, which limits.yaml does not have: it has %s", Quote(shorten(kind)),
			enumerate(names))}
}

// enumerate joins names as prose: a, b and c.
func enumerate(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// CheckID returns what is wrong with an id, which is stored behind prefix, or "". A fake has no prefix.
func CheckID(prefix, id string) string {
	if reason := malformed(id); reason != "" {
		return reason
	}
	if prefix != "" && strings.HasPrefix(id, prefix) {
		return "begins with " + prefix + ", and is stored behind another one: leave it out"
	}
	if reason := CheckText(id); reason != "" {
		return reason + ": encode it, in hex for example"
	}
	return ""
}

// malformed returns why no key can have id, or "".
func malformed(id string) string {
	switch {
	case id == "":
		return "is empty: set the entity's ID"
	case len(id) > maxID:
		return fmt.Sprintf("has %d bytes, more than %d: use a shorter id, or a hash of it", len(id), maxID)
	case strings.IndexByte(id, '#') >= 0:
		return "contains '#', which separates the parts of a key: replace or encode it"
	}
	return ""
}

// KindOf returns the index of an entity's kind. It also accepts ids with characters that CheckID refuses, and
// that earlier versions stored: commands read and delete them. The error is an *InvalidError.
func KindOf(kinds []Kind, stored string) (int, error) {
	kind, _, err := split("", kinds, "entity", stored)
	return kind, err
}

// ParseID splits an id as stored, such as user-123, into the index of its kind in kinds, and the rest. The
// error is an *InvalidError. Generated code calls it.
func ParseID(stored string, kinds []string) (kind int, id string, err error) {
	named := make([]Kind, len(kinds))
	for i, name := range kinds {
		named[i].Name = name
	}
	return parse("", named, "entity", stored)
}

// ParentOf returns the kind of the parent that is stored of an entity of a kind, in m. found is false if
// nothing is stored of it. It fails with an *InvalidError if no parent is stored, and with a *SetupError if
// the stored one is of another kind than the schema's.
func (s *Spec) ParentOf(kind int, entity string, m Member, found bool) (parent int, err error) {
	parent = s.Kinds[kind].Parent
	above := &s.Kinds[parent]
	cure := fmt.Sprintf("sluice entity put %s --parent %s<id>", Argument(entity), above.Prefix)
	missing := func(what string) error {
		return &InvalidError{
			Resource: s.Resource, Field: "entity", Value: entity,
			Reason: "is " + what + ": store it (" + cure + "), or give its parent in the call",
		}
	}
	switch {
	case !found:
		return parent, missing("not known, and so its parent is not")
	case m.Parent == "":
		return parent, missing("stored without a parent, which its calls need")
	}
	id, ok := strings.CutPrefix(m.Parent, above.Prefix)
	if !ok || CheckID(above.Prefix, id) != "" {
		return parent, &SetupError{
			What: fmt.Sprintf("entity %s is stored with parent %q, which is no id of kind %s",
				Quote(entity), m.Parent, above.Name),
			Do: "store it again: " + cure,
		}
	}
	return parent, nil
}
