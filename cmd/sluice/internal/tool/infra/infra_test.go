package infra_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/infra"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// snapshots is where the tests' regions publish.
const snapshots = "s3://quotas/limits"

// definitions are the two ways to be billed, and one table of several regions.
func definitions() map[string]infra.Stack {
	onDemand := operator.Definition{Table: "rate_limits", Protected: true, Recoverable: true}
	provisioned := onDemand
	provisioned.ReadUnits, provisioned.WriteUnits = 10, 200
	return map[string]infra.Stack{
		"on-demand": {Definition: onDemand}, "provisioned": {Definition: provisioned},
		"regional": {Definition: onDemand, Snapshots: snapshots},
	}
}

// rendered returns what f gives, which is the same each time.
func rendered(t *testing.T, f func(infra.Stack) ([]byte, error), d infra.Stack) []byte {
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
		text, err := infra.Policy(role, infra.Place{Table: "rate_limits", Region: "eu-west-1",
			Account: "123456789012", Snapshots: snapshots})
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
			t.Errorf("%s, - wanted, + printed (run go test with -update if it is meant):\n%s", name, diff)
		}
	}
	files, err := filepath.Glob("testdata/*")
	if err != nil || len(files) != len(all) {
		t.Errorf("testdata has %d files for %d outputs: %v", len(files), len(all), err)
	}
}

// TestPublished: where regions publish is a bucket, in the table's part of AWS, and nothing that means more
// than it says.
func TestPublished(t *testing.T) {
	for _, test := range []struct {
		url, region     string
		objects, bucket string
	}{
		{"s3://quotas/limits/", "", "arn:aws:s3:::quotas/limits/*", "arn:aws:s3:::quotas"},
		{"s3://quotas", "cn-north-1", "arn:aws-cn:s3:::quotas/*", "arn:aws-cn:s3:::quotas"},
		{"s3://my.quotas-1/a/b=c", "eu-west-1", "arn:aws:s3:::my.quotas-1/a/b=c/*", "arn:aws:s3:::my.quotas-1"},
	} {
		text, err := infra.Policy(infra.RegionSync,
			infra.Place{Table: "limits", Region: test.region, Snapshots: test.url})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range parsePolicy(t, text).Statement {
			if strings.HasPrefix(s.Action[0], "s3:") {
				got = append(got, s.Resource)
			}
		}
		if want := []string{test.objects, test.bucket}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", test.url, got, want)
		}
	}
	for _, url := range []string{"quotas", "s3://", "s3://Quotas", "s3://q", "s3://quotas/*",
		"s3://quotas/${aws:username}", "s3://quotas/a?b", "s3://quotas/\"", "file:///quotas"} {
		const want = ": want s3://bucket/prefix, of letters, digits and '-', '.', '_', '=' and '/'"
		_, err := infra.Policy(infra.RegionSync, infra.Place{Table: "limits", Snapshots: url})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
		if again := (infra.Stack{Snapshots: url}).Check(); again == nil || again.Error() != err.Error() {
			t.Errorf("%s in a template: %v", url, again)
		}
	}
	_, err := infra.Policy(infra.RegionSync, infra.Place{Table: "limits"})
	want := "role region-sync needs to know where regions publish: pass --snapshots s3://bucket/prefix"
	if err == nil || err.Error() != want {
		t.Errorf("nowhere: %v", err)
	}
	if err := (infra.Stack{}).Check(); err != nil {
		t.Error(err)
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
		{infra.Acquire, infra.Place{Table: "limits", Region: "eu-west-1", Account: "123456789012"},
			"arn:aws:dynamodb:eu-west-1:123456789012:table/limits", ""},
		{infra.Acquire, infra.Place{Table: "limits", Region: "cn-north-1"},
			"arn:aws-cn:dynamodb:cn-north-1:*:table/limits", ""},
		{infra.Acquire, infra.Place{Table: "limits", Region: "us-gov-west-1"},
			"arn:aws-us-gov:dynamodb:us-gov-west-1:*:table/limits", ""},
		{infra.Acquire, infra.Place{Table: "limits", Region: "eusc-de-east-1"},
			"arn:aws-eusc:dynamodb:eusc-de-east-1:*:table/limits", ""},
		{infra.Acquire, infra.Place{Table: "limits", Region: "us-iso-east-1"},
			"arn:aws-iso:dynamodb:us-iso-east-1:*:table/limits", ""},
		{infra.Acquire, infra.Place{Table: "limits", Region: "us-isob-east-1"},
			"arn:aws-iso-b:dynamodb:us-isob-east-1:*:table/limits", ""},
		{infra.Acquire, infra.Place{Table: "limits", Region: "eu-isoe-west-1"},
			"arn:aws-iso-e:dynamodb:eu-isoe-west-1:*:table/limits", ""},
		{infra.Acquire, infra.Place{Table: "limits", Region: "us-isof-south-1"},
			"arn:aws-iso-f:dynamodb:us-isof-south-1:*:table/limits", ""},
		{infra.Acquire, infra.Place{Table: arn}, arn, ""},
		{infra.Acquire, infra.Place{Table: arn, Region: "eu-west-1"}, "", `table "` + arn +
			`" is an ARN, which has a region and an account: leave the others out`},
		{infra.Acquire, infra.Place{Table: "a b"}, "",
			`table "a b" is not a table's name: pass 3 to 255 letters, digits, '_', '.' and '-', or an ARN`},
		{infra.Acquire, infra.Place{Table: "limits", Region: "europe"}, "",
			`region "europe" is not the name of an AWS region: pass one, such as eu-west-1`},
		{infra.Acquire, infra.Place{Table: "limits", Account: "me"}, "",
			`account "me" is not an AWS account: pass its 12 digits`},
		{"root", infra.Place{Table: "limits"}, "",
			`role "root" is unknown: pass one of acquire, admin, aggregator, read-only, region-sync`},
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
