package cli_test

import (
	"testing"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// TestPeekUnknownResource: a resource that is neither stored nor in the schema is no full bucket.
func TestPeekUnknownResource(t *testing.T) {
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, operator.Table)
	for _, flag := range []string{"", "--json"} {
		args := []string{"peek", "user-123", "gpt4", "--table", table, "--file", demo}
		if flag != "" {
			args = append(args, flag)
		}
		code, out, errs := sluice(t, start, args...)
		expect(t, code, out, errs, 1, "", "sluice: user-123 on gpt4: no bucket is stored, and "+demo+
			` has no resource "gpt4": did you mean "gpt-4"?`+"\n")
	}
	// without a schema, nothing is known about it
	code, out, errs := sluice(t, start, "peek", "user-123", "gpt4", "--table", table, "--file", "none.yaml")
	expect(t, code, out, errs, 0, notStored("user-123", "gpt4"), "")
}
