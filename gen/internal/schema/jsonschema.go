package schema

import _ "embed" // for limits.schema.json

//go:embed limits.schema.json
var limitsSchema string

// JSONSchema returns the JSON Schema (draft 2020-12) of limits.yaml, for editors. The caller may keep and
// change it. It accepts every file that Read accepts; Read finds more mistakes.
func JSONSchema() []byte { return []byte(limitsSchema) }
