package infra_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/infra"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// definitions are the two ways to be billed.
func definitions() map[string]dynamo.Definition {
	return map[string]dynamo.Definition{
		"on-demand":   {Table: "rate_limits", Protected: true, Recoverable: true},
		"provisioned": {Table: "rate_limits", ReadUnits: 10, WriteUnits: 200, Protected: true, Recoverable: true},
	}
}

// rendered returns what f gives, which is the same each time.
func rendered(t *testing.T, f func(dynamo.Definition) ([]byte, error), d dynamo.Definition) []byte {
	t.Helper()
	text, err := f(d)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := f(d); !bytes.Equal(text, again) {
		t.Error("a second call gave something else")
	}
	return text
}

// TestGolden holds all that is printed against testdata, byte for byte.
func TestGolden(t *testing.T) {
	all := map[string][]byte{}
	for billing, d := range definitions() {
		all["cloudformation-"+billing+".yaml"] = rendered(t, infra.CloudFormation, d)
		all["terraform-"+billing+".tf"] = rendered(t, infra.Terraform, d)
	}
	for _, role := range infra.Roles() {
		text, err := infra.Policy(role, infra.Place{Table: "rate_limits", Region: "eu-west-1", Account: "123456789012"})
		if err != nil {
			t.Fatal(err)
		}
		all["iam-"+string(role)+".json"] = text
	}
	for name, got := range all {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s, - wanted, + printed (run `go test ./internal/infra -update` if it is meant):\n%s", name, diff)
		}
	}
	files, err := filepath.Glob("testdata/*")
	if err != nil || len(files) != len(all) {
		t.Errorf("testdata has %d files for %d outputs: %v", len(files), len(all), err)
	}
}

// TestPlace: what is wrong with a table, a region, an account or a role is said, and an ARN says all.
func TestPlace(t *testing.T) {
	const arn = "arn:aws-us-gov:dynamodb:us-gov-west-1:123456789012:table/limits"
	for _, test := range []struct {
		role infra.Role
		at   infra.Place
		arn  string // of the table, in the policy
		err  string
	}{
		{infra.Acquire, infra.Place{Table: "limits"}, "arn:aws:dynamodb:*:*:table/limits", ""},
		{infra.Acquire, infra.Place{Table: "limits", Region: "eu-west-1", Account: "123456789012"}, "arn:aws:dynamodb:eu-west-1:123456789012:table/limits", ""},
		{infra.Acquire, infra.Place{Table: "limits", Region: "cn-north-1"}, "arn:aws-cn:dynamodb:cn-north-1:*:table/limits", ""},
		{infra.Acquire, infra.Place{Table: "limits", Region: "us-gov-west-1"}, "arn:aws-us-gov:dynamodb:us-gov-west-1:*:table/limits", ""},
		{infra.Acquire, infra.Place{Table: "limits", Region: "eusc-de-east-1"}, "arn:aws-eusc:dynamodb:eusc-de-east-1:*:table/limits", ""},
		{infra.Acquire, infra.Place{Table: "limits", Region: "us-iso-east-1"}, "arn:aws-iso:dynamodb:us-iso-east-1:*:table/limits", ""},
		{infra.Acquire, infra.Place{Table: "limits", Region: "us-isob-east-1"}, "arn:aws-iso-b:dynamodb:us-isob-east-1:*:table/limits", ""},
		{infra.Acquire, infra.Place{Table: "limits", Region: "eu-isoe-west-1"}, "arn:aws-iso-e:dynamodb:eu-isoe-west-1:*:table/limits", ""},
		{infra.Acquire, infra.Place{Table: "limits", Region: "us-isof-south-1"}, "arn:aws-iso-f:dynamodb:us-isof-south-1:*:table/limits", ""},
		{infra.Acquire, infra.Place{Table: arn}, arn, ""},
		{infra.Acquire, infra.Place{Table: arn, Region: "eu-west-1"}, "", `table "` + arn + `" is an ARN, which has a region and an account: leave the others out`},
		{infra.Acquire, infra.Place{Table: "a b"}, "", `table "a b": want 3 to 255 letters, digits, '_', '.' and '-', or an ARN`},
		{infra.Acquire, infra.Place{Table: "limits", Region: "europe"}, "", `region "europe": want a region of AWS, such as eu-west-1`},
		{infra.Acquire, infra.Place{Table: "limits", Account: "me"}, "", `account "me": want the 12 digits of an account of AWS`},
		{"root", infra.Place{Table: "limits"}, "", `role "root": want one of acquire, admin, aggregator, read-only`},
	} {
		text, err := infra.Policy(test.role, test.at)
		switch {
		case err != nil && err.Error() != test.err, err == nil && test.err != "":
			t.Errorf("%v: error %v, want %q", test.at, err, test.err)
		case err == nil && parsePolicy(t, text).Statement[0].Resource != test.arn:
			t.Errorf("%v gave\n%s", test.at, text)
		}
	}
}
