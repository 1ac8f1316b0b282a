package oncall_test

import (
	"testing"

	"github.com/sluice-go/sluice/internal/test/linted"
	"github.com/sluice-go/sluice/internal/test/longform"
)

// TestCloudFormation has CloudFormation's linter look at the alarms. That it finds what is broken is held in
// package infra, as for terraform.
func TestCloudFormation(t *testing.T) {
	longform.Only(t, "cfn-lint takes 2 s")
	lint, text := linted.CloudFormation(t), outputs(t)["alarms.yaml"]
	if out, ok := lint(text); !ok || out != "" {
		t.Errorf("cfn-lint: %s", out)
	}
}

// TestTerraform has terraform hold the alarms against its grammar and its format, and against the provider's
// resources.
func TestTerraform(t *testing.T) {
	text := outputs(t)["alarms.tf"]
	if out, ok := linted.TerraformFormat(t)(text); !ok {
		t.Errorf("terraform fmt: %s", out)
	}
	longform.Only(t, "terraform takes 4 s a configuration")
	if out, ok := linted.TerraformValidate(t)(text); !ok {
		t.Errorf("terraform validate: %s", out)
	}
}
