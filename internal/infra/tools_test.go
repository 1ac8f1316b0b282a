package infra_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/infra"
)

// pluginVariable names a folder, as `terraform init -plugin-dir` takes it, that has a provider of AWS. Tests fetch none.
const pluginVariable = "SLUICE_TERRAFORM_PLUGINS"

// tool returns a function that runs a command in a folder, and returns what it printed and whether it liked what it saw. A
// machine without the command skips the test.
func tool(t *testing.T, name, install string) func(folder string, args ...string) (output string, ok bool) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("no %s on PATH: %s", name, install)
	}
	return func(folder string, args ...string) (string, bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1") // no look for a newer terraform
		out, err := cmd.CombinedOutput()
		if _, exited := err.(*exec.ExitError); err != nil && (!exited || ctx.Err() != nil) { //nolint:errorlint // it is one, or none
			t.Fatalf("%s: %v", name, err)
		}
		return string(out), err == nil
	}
}

// file writes a file into a new folder, and returns the folder.
func file(t *testing.T, name, text string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

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
	if testing.Short() {
		t.Skip("cfn-lint takes 2 s a template")
	}
	lint := tool(t, "cfn-lint", "pip install cfn-lint")
	for billing, d := range definitions() {
		if out, ok := lint(file(t, "sluice.yaml", string(rendered(t, infra.CloudFormation, d))), "sluice.yaml"); !ok || out != "" {
			t.Errorf("%s: cfn-lint: %s", billing, out)
		}
	}
	text := string(rendered(t, infra.CloudFormation, definitions()["on-demand"]))
	for rule, broken := range map[string]string{
		"E3039": replaced(t, text, `AttributeName: "GSI1SK"`+"\n          AttributeType: S", `AttributeName: "GSI9SK"`+"\n          AttributeType: S"),
		"W3037": replaced(t, text, "dynamodb:GetRecords", "dynamodb:GetRecord"),
	} {
		if out, ok := lint(file(t, "sluice.yaml", broken), "sluice.yaml"); ok || !strings.Contains(out, rule) {
			t.Errorf("cfn-lint does not find %s in a broken template: %s", rule, out)
		}
	}
}

// TestTerraform has terraform hold the configurations against its grammar and its format.
func TestTerraform(t *testing.T) {
	terraform := tool(t, "terraform", "install it from its vendor")
	for billing, d := range definitions() {
		text := string(rendered(t, infra.Terraform, d))
		if out, ok := terraform(file(t, "sluice.tf", text), "fmt", "-check", "-diff"); !ok {
			t.Errorf("%s: terraform fmt: %s", billing, out)
		}
	}
	text := string(rendered(t, infra.Terraform, definitions()["provisioned"]))
	for _, broken := range []string{replaced(t, text, "hash_key     =", "hash_key ="), replaced(t, text, "locals {", "locals ")} {
		if _, ok := terraform(file(t, "sluice.tf", broken), "fmt", "-check"); ok {
			t.Error("terraform fmt likes a broken configuration")
		}
	}
}

// TestTerraformValidate has terraform hold the configurations against the provider's resources.
func TestTerraformValidate(t *testing.T) {
	if testing.Short() {
		t.Skip("terraform takes 4 s a configuration")
	}
	terraform := tool(t, "terraform", "install it from its vendor")
	plugins := os.Getenv(pluginVariable)
	if plugins == "" {
		t.Skipf("no %s: set it to a folder with a provider of AWS (terraform providers mirror FOLDER)", pluginVariable)
	}
	validate := func(text string) (string, bool) {
		folder := file(t, "sluice.tf", text)
		if out, ok := terraform(folder, "init", "-backend=false", "-input=false", "-no-color", "-plugin-dir="+plugins); !ok {
			t.Fatalf("terraform init: %s", out)
		}
		return terraform(folder, "validate", "-no-color")
	}
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
