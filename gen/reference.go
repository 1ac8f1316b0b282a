package gen

import (
	"github.com/sluice-go/sluice/gen/internal/reference"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// Reference returns the reference of limits.yaml, in Markdown: every key with its type, its default, an
// example, and the errors that its value can give.
func Reference() ([]byte, error) { return reference.Markdown() }

// JSONSchema returns the JSON Schema of limits.yaml, which Run writes beside it. The caller may keep and
// change it.
func JSONSchema() []byte { return schema.JSONSchema() }
