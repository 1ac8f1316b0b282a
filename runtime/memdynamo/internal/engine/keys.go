package engine

import (
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/table"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// badKey is the answer to a Key that has other attributes, or other types, than the table's key.
func badKey() error { return exception.Invalid("The provided key element does not match the schema") }

// checkKey errs unless key, a Key parameter, is a key of the table and nothing more.
func (t *tableState) checkKey(key value.Map) error {
	if len(key) != len(keyAttributes(t.Def.Key)) || !hasKey(t.Def.Key, key) {
		return badKey()
	}
	return checkKeyValues(t.Def.Key, key)
}

// checkItem errs unless item has the table's key, and index keys have the right types where it has them.
func (t *tableState) checkItem(item value.Map) error {
	for _, a := range keyAttributes(t.Def.Key) {
		v, ok := item[a.Name]
		if !ok {
			return exception.Invalid("One or more parameter values were invalid: Missing the key %s in the item",
				a.Name)
		}
		if v.Kind() != a.Kind {
			return exception.Invalid("One or more parameter values were invalid: Type mismatch for key %s expected: "+
				"%s actual: %s",
				a.Name, a.Kind, v.Kind())
		}
	}
	if err := checkKeyValues(t.Def.Key, item); err != nil {
		return err
	}
	return t.checkIndexKeys(item, false)
}

// badIndexKey is the answer to an attribute of another type than the index's key that it is.
func badIndexKey(index table.IndexDef, a table.Attribute, v value.Value) error {
	return exception.Invalid("One or more parameter values were invalid: "+
		"Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s", a.Name, a.Kind, v.Kind(),
		index.Name)
}

// checkIndexKeys errs if an attribute of item that is an index's key has a wrong type, is empty or is too
// large. For an item that an update has left the service has other words.
func (t *tableState) checkIndexKeys(item value.Map, updated bool) error {
	for _, index := range t.Def.Indexes {
		for _, a := range keyAttributes(index.Key) {
			v, ok := item[a.Name]
			if !ok {
				continue
			}
			if v.Kind() != a.Kind {
				return badIndexKey(index, a, v)
			}
			if what, empty := emptyKey(v); empty {
				text := emptyIndexKeyText(what, index.Name, a.Name)
				if updated {
					text = "One or more parameter values are not valid. The update expression attempted to update a " +
						"secondary index key to a value that is not supported. " +
						"The AttributeValue for a key attribute cannot contain an empty " + what + " value."
				}
				return exception.Invalid("%s", text).OfInput()
			}
		}
		err := checkKeySizes(index.Key, item)
		if err != nil && updated {
			err = exception.Invalid("One or more parameter values were invalid: " +
				"The update expression attempted to update the secondary index key beyond allowed size limits")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkKeyValues errs if a key attribute of item, all of which are there, is empty or too large.
func checkKeyValues(key table.KeySchema, item value.Map) error {
	for _, a := range keyAttributes(key) {
		if what, empty := emptyKey(item[a.Name]); empty {
			return exception.Invalid("%s", emptyKeyText(what, a.Name)).OfInput()
		}
	}
	return checkKeySizes(key, item)
}

// checkKeySizes errs if a key attribute that item has is too large.
func checkKeySizes(key table.KeySchema, item value.Map) error {
	if v, ok := item[key.Hash.Name]; ok && value.Size(v) > table.MaxHashSize {
		return exception.Invalid("One or more parameter values were invalid: " +
			"Size of hashkey has exceeded the maximum size limit of2048 bytes")
	}
	if v, ok := item[key.Sort.Name]; ok && value.Size(v) > table.MaxSortSize {
		return exception.Invalid("One or more parameter values were invalid: " +
			"Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
	}
	return nil
}

// emptyKey reports whether v is of no bytes, which no key may be, and what it is called then.
func emptyKey(v value.Value) (what string, empty bool) {
	switch v := v.(type) {
	case value.String:
		return "string", v == ""
	case value.Binary:
		return "binary", v == ""
	default:
		return "", false
	}
}

// emptyKeyText says that a value for an attribute of a table's key is of no bytes; what is what kind of value
// it is.
func emptyKeyText(what, attribute string) string {
	return "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain " +
		"an empty " + what +
		" value. Key: " + attribute
}

// emptyIndexKeyText says so of an attribute of an index's key.
func emptyIndexKeyText(what, index, attribute string) string {
	return "One or more parameter values are not valid. A value specified for a secondary index key is not " +
		"supported. " +
		"The AttributeValue for a key attribute cannot contain an empty " + what + " value. IndexName: " + index +
		", IndexKey: " + attribute
}

// keyAttributes returns the one or two attributes of a key.
func keyAttributes(key table.KeySchema) []table.Attribute {
	if key.Sort.Name == "" {
		return []table.Attribute{key.Hash}
	}
	return []table.Attribute{key.Hash, key.Sort}
}

// isKeyOf reports whether the attribute is of the key.
func isKeyOf(key table.KeySchema, attribute string) bool {
	return attribute == key.Hash.Name || key.Sort.Name != "" && attribute == key.Sort.Name
}

// hasKey reports whether item has all attributes of the key, of the right types.
func hasKey(key table.KeySchema, item value.Map) bool {
	for _, a := range keyAttributes(key) {
		if v, ok := item[a.Name]; !ok || v.Kind() != a.Kind {
			return false
		}
	}
	return true
}

// checkScalars errs if an expression goes into an attribute that is of a key: of the table's, or of an
// index's.
func (t *tableState) checkScalars(e interface{ Nested() []string }) error {
	const rule = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
	for _, attribute := range e.Nested() {
		if isKeyOf(t.Def.Key, attribute) {
			return exception.Invalid(rule+"Key: %s", attribute)
		}
		for _, index := range t.Def.Indexes {
			if isKeyOf(index.Key, attribute) {
				return exception.Invalid(rule+"IndexKey: %s", attribute)
			}
		}
	}
	return nil
}
