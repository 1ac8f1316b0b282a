package runtime

// ParseID takes an id as stored apart, such as user-123: into the index of its kind's name in kinds, and what follows. The
// error is an *InvalidError. Generated code calls it.
func ParseID(stored string, kinds []string) (kind int, id string, err error) {
	named := make([]Kind, len(kinds))
	for i, name := range kinds {
		named[i].Name = name
	}
	return parse("", named, "entity", stored)
}
