package operator_test

import (
	"testing"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// TestWrongTable: an ARN of something else leads to that of the table, where it has one.
func TestWrongTable(t *testing.T) {
	const table = "arn:aws:dynamodb:eu-west-1:123456789012:table/limits"
	for given, want := range map[string]string{
		"a": `table "a" is not a table's name: pass 3 to 255 letters, digits, '_', '.' and '-', or an ARN`,
		table + "/stream/2026-01-01T00:00:00.000": `"` + table +
			`/stream/2026-01-01T00:00:00.000" is not the ARN of a table: pass that of its table, ` + table,
		table + "/index/GSI1": `"` + table +
			`/index/GSI1" is not the ARN of a table: pass that of its table, ` + table,
		"arn:aws:s3:::limits": `"arn:aws:s3:::limits" is not the ARN of a table: pass ` +
			`arn:aws:dynamodb:REGION:ACCOUNT:table/NAME, or the name alone`,
	} {
		if _, ok := operator.TableName(given); ok {
			t.Errorf("%s is accepted", given)
		}
		if got := operator.WrongTable(given); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}
