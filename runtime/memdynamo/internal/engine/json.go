package engine

import (
	"encoding/json"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// reply returns an output as JSON.
func reply(output any) ([]byte, error) { return json.Marshal(output) }

// appendMember appends the name of an object's next member, after a comma unless it is the first.
func appendMember(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = value.AppendString(b, name)
	return append(b, ':')
}

// appendElement appends what stands before an array's next element: a comma, unless it is the first.
func appendElement(b []byte) []byte {
	if b[len(b)-1] != '[' {
		b = append(b, ',')
	}
	return b
}
