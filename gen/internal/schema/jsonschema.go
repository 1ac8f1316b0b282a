package schema

import _ "embed" // for limits.schema.json

//go:embed limits.schema.json
var limitsSchema string

// JSONSchema returns the JSON Schema (draft 2020-12) of limits.yaml, for editors: the caller may keep and change it.
// It takes whatever Read takes; Read finds more.
func JSONSchema() []byte { return []byte(limitsSchema) }
