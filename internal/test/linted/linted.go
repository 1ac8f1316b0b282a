// Package linted has tests run the tools of others on what sluice prints: cfn-lint, terraform. A machine
// without one skips the test.
package linted

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// pluginVariable names a folder, as `terraform init -plugin-dir` takes it, that has a provider of AWS. Tests
// fetch none.
const pluginVariable = "SLUICE_TERRAFORM_PLUGINS"

// Tool runs a command in a folder, and returns what it printed and whether it liked what it saw.
type Tool func(folder string, args ...string) (output string, ok bool)

// Find returns a tool that is on PATH; install says how it gets there.
func Find(t *testing.T, name, install string) Tool {
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
		// no look for a newer terraform
		cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
		out, err := cmd.CombinedOutput()
		_, exited := errors.AsType[*exec.ExitError](err)
		if err != nil && (!exited || ctx.Err() != nil) {
			t.Fatalf("%s: %v", name, err)
		}
		return string(out), err == nil
	}
}

// File writes a file into a new folder, and returns the folder.
func File(t *testing.T, name, text string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// CloudFormation returns CloudFormation's linter.
func CloudFormation(t *testing.T) func(text string) (output string, ok bool) {
	t.Helper()
	lint := Find(t, "cfn-lint", "pip install cfn-lint")
	return func(text string) (string, bool) {
		t.Helper()
		return lint(File(t, "sluice.yaml", text), "sluice.yaml")
	}
}

// TerraformFormat returns terraform's look at grammar and format.
func TerraformFormat(t *testing.T) func(text string) (output string, ok bool) {
	t.Helper()
	terraform := Find(t, "terraform", "install it from its vendor")
	return func(text string) (string, bool) {
		t.Helper()
		return terraform(File(t, "sluice.tf", text), "fmt", "-check", "-diff")
	}
}

// TerraformValidate returns terraform's look at the provider's resources. It skips without a provider.
func TerraformValidate(t *testing.T) func(text string) (output string, ok bool) {
	t.Helper()
	terraform := Find(t, "terraform", "install it from its vendor")
	plugins := os.Getenv(pluginVariable)
	if plugins == "" {
		t.Skipf("no %s: set it to a folder with a provider of AWS (terraform providers mirror FOLDER)",
			pluginVariable)
	}
	return func(text string) (string, bool) {
		t.Helper()
		folder := File(t, "sluice.tf", text)
		if out, ok := terraform(folder, "init", "-backend=false", "-input=false", "-no-color",
			"-plugin-dir="+plugins); !ok {
			t.Fatalf("terraform init: %s", out)
		}
		return terraform(folder, "validate", "-no-color")
	}
}
