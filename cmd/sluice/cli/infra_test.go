package cli_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestInfra: what is printed is what cmd/sluice/internal/tool/infra holds against the definition.
func TestInfra(t *testing.T) {
	sequential(t)
	for file, line := range map[string]string{
		"cloudformation-on-demand.yaml":   "infra cloudformation",
		"cloudformation-provisioned.yaml": "infra cloudformation --read-units 10 --write-units 200",
		"terraform-on-demand.tf":          "infra terraform --table rate_limits",
		"terraform-provisioned.tf":        "infra terraform --read-units=10 --write-units=200",
		"iam-read-only.json": "infra iam --role read-only" +
			" --region eu-west-1 --account 123456789012",
		"cloudformation-regional.yaml": "infra cloudformation --snapshots s3://quotas/limits",
		"terraform-regional.tf":        "infra terraform --snapshots s3://quotas/limits/",
		"iam-region-sync.json": "infra iam --role region-sync --snapshots s3://quotas/limits" +
			" --region eu-west-1 --account 123456789012",
		"iam-acquire.json": "infra iam --role acquire" +
			" --table arn:aws:dynamodb:eu-west-1:123456789012:table/rate_limits",
	} {
		want, err := os.ReadFile("../internal/tool/infra/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		code, out, errs := run(t, strings.Fields(line)...)
		expect(t, code, out, errs, 0, string(want), "")
	}

	t.Setenv("SLUICE_TABLE", "quotas")
	code, out, errs := run(t, "infra", "iam")
	var roles map[string]json.RawMessage
	if err := json.Unmarshal([]byte(out), &roles); err != nil || code != 0 || errs != "" {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
	for _, role := range []string{"acquire", "admin", "aggregator", "read-only"} {
		if !strings.Contains(string(roles[role]), `"arn:aws:dynamodb:*:*:table/quotas`) {
			t.Errorf("%s: %s", role, roles[role])
		}
	}
	if len(roles) != 4 {
		t.Errorf("%d roles", len(roles))
	}
	if _, out, _ = run(t, "infra", "iam", "--snapshots", "s3://quotas"); !strings.Contains(out,
		`  "region-sync": {`) {
		t.Errorf("all roles of a table of several regions: %s", out)
	}
}

// TestInfraMistakes: nothing is printed where an argument is wrong.
func TestInfraMistakes(t *testing.T) {
	sequential(t)
	const arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/rate_limits"
	const noARN = ` is not a table's name: pass 3 to 255 letters, digits, '_', '.' and '-', and no ARN, ` +
		`since the template makes the table`
	const units = "--read-units, --write-units: 0 read and 7 write units: want both above 0, or neither for " +
		"a table on demand"
	for _, test := range []struct{ line, want string }{
		{"infra cloudformation --table " + arn, `table "` + arn + `"` + noARN},
		{"infra terraform --table ab", `table "ab"` + noARN},
		{"infra cloudformation --write-units 7", units},
		{"infra terraform --write-units 7", units},
		{"infra iam --role root",
			`role "root" is unknown: pass one of acquire, admin, aggregator, read-only, region-sync`},
		{"infra iam --role region-sync",
			"role region-sync needs to know where regions publish: pass --snapshots s3://bucket/prefix"},
		{"infra iam --snapshots=", "--snapshots: it is empty: pass s3://bucket/prefix, or leave the flag out"},
		{"infra terraform --snapshots=",
			"--snapshots: it is empty: pass s3://bucket/prefix, or leave the flag out"},
		{"infra cloudformation --snapshots quotas", `--snapshots: snapshots "quotas": want s3://bucket/prefix, ` +
			`of letters, digits and '-', '.', '_', '=' and '/'`},
		{"infra iam --role=", `role "" is unknown: pass one of acquire, admin, aggregator, read-only, region-sync`},
		{"infra iam --table a/b",
			`table "a/b" is not a table's name: pass 3 to 255 letters, digits, '_', '.' and '-', or an ARN`},
		{"infra iam --region europe",
			`region "europe" is not the name of an AWS region: pass one, such as eu-west-1`},
		{"infra iam --account 42", `account "42" is not an AWS account: pass its 12 digits`},
		{"infra iam --region eu-west-1 --table " + arn, `table "` + arn +
			`" is an ARN, which has a region and an account: leave the others out`},
	} {
		code, out, errs := run(t, strings.Fields(test.line)...)
		command := strings.Join(strings.Fields(test.line)[:2], " ")
		expect(t, code, out, errs, 2, "", "sluice: "+test.want+"; run `sluice "+command+" --help`\n")
	}
}
