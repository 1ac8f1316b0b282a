package infra_test

import (
	"strings"
	"testing"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/infra"
	"github.com/sluice-go/sluice/internal/test/linted"
	"github.com/sluice-go/sluice/internal/test/longform"
)

// replaced returns text with old, which it has, replaced.
func replaced(t *testing.T, text, old, by string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("there is no %q to replace", old)
	}
	return strings.ReplaceAll(text, old, by)
}

// TestCloudFormation has CloudFormation's linter look at the templates, and at the policies in them.
func TestCloudFormation(t *testing.T) {
	longform.Only(t, "cfn-lint takes 2 s a template")
	lint := linted.CloudFormation(t)
	for billing, d := range definitions() {
		if out, ok := lint(string(rendered(t, infra.CloudFormation, d))); !ok || out != "" {
			t.Errorf("%s: cfn-lint: %s", billing, out)
		}
	}
	text := string(rendered(t, infra.CloudFormation, definitions()["on-demand"]))
	for rule, broken := range map[string]string{
		"E3039": replaced(t, text, `AttributeName: "GSI1SK"`+"\n          AttributeType: S",
			`AttributeName: "GSI9SK"`+"\n          AttributeType: S"),
		"W3037": replaced(t, text, "dynamodb:GetRecords", "dynamodb:GetRecord"),
	} {
		if out, ok := lint(broken); ok || !strings.Contains(out, rule) {
			t.Errorf("cfn-lint does not find %s in a broken template: %s", rule, out)
		}
	}
}

// TestTerraform has terraform hold the configurations against its grammar and its format.
func TestTerraform(t *testing.T) {
	formatted := linted.TerraformFormat(t)
	for billing, d := range definitions() {
		if out, ok := formatted(string(rendered(t, infra.Terraform, d))); !ok {
			t.Errorf("%s: terraform fmt: %s", billing, out)
		}
	}
	text := string(rendered(t, infra.Terraform, definitions()["provisioned"]))
	for _, broken := range []string{replaced(t, text, "hash_key     =", "hash_key ="),
		replaced(t, text, "locals {", "locals ")} {
		if _, ok := formatted(broken); ok {
			t.Error("terraform fmt likes a broken configuration")
		}
	}
}

// TestTerraformValidate has terraform hold the configurations against the provider's resources.
func TestTerraformValidate(t *testing.T) {
	longform.Only(t, "terraform takes 4 s a configuration")
	validate := linted.TerraformValidate(t)
	for billing, d := range definitions() {
		if out, ok := validate(string(rendered(t, infra.Terraform, d))); !ok {
			t.Errorf("%s: terraform validate: %s", billing, out)
		}
	}
	text := string(rendered(t, infra.Terraform, definitions()["on-demand"]))
	if _, ok := validate(replaced(t, text, "projection_type", "projection")); ok {
		t.Error("terraform validate likes a broken configuration")
	}
}
