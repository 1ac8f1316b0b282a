package schema

import (
	"slices"
	"testing"
)

// TestDeclared holds the list of names to what the sketch of the demonstration declares.
func TestDeclared(t *testing.T) {
	s, problems := Read("limits.yaml", cases(t)["demo"])
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	declared := s.Declared()
	for _, name := range []string{
		"Entity", "Limiter", "New", "ExtractDeltas", "DeniedError", "CostTooLargeError", "UnavailableError",
		"InvalidError",
		"SetupError", "ContendedError", "ErrSettled", "Revision", "Config", "ParseEntity", "ConflictError",
		"Org", "Project", "User", "kindOrg", "kindProject", "kindUser", "ProjectByID", "UserByID",
		"GPT4", "GPT4RPM", "GPT4TPM", "GPT4Resource", "GPT4Acquirer", "GPT4Lease", "GPT4Entity", "GPT4Cost",
		"GPT4Limit", "GPT4Limits", "GPT4Bucket",
		"gpt4", "gpt4Vector", "gpt4Cost", "gpt4LimitsVector", "gpt4LimitsOf", "gpt4NormalUpdate",
		"gpt4NormalCondition", "TestGPT4",
		"embeddings", "EmbeddingsRPS",
	} {
		if !slices.Contains(declared, name) {
			t.Errorf("%s is not declared", name)
		}
	}
	slices.Sort(declared)
	if n := len(declared); n != len(slices.Compact(declared)) {
		t.Error("a name is declared twice")
	}
}
