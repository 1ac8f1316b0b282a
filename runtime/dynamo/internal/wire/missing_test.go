package wire

import "testing"

// TestCreateCure: the command that creates a missing table takes its name, also where the table has an ARN.
func TestCreateCure(t *testing.T) {
	for table, want := range map[string]string{
		"limits": "run `sluice table create --table limits`, or check region and endpoint",
		"arn:aws:dynamodb:eu-west-1:123456789012:table/limits": "run `sluice table create --region eu-west-1 " +
			"--table limits` with credentials of account 123456789012, or check the ARN",
	} {
		if got := createCure(table); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}
