package declared

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

var update = flag.Bool("update", false, "rewrite testdata/*/stderr.txt")

// TestGolden holds what Check reports of each testdata/<case>/limits.yaml against its stderr.txt. The files
// have no other mistakes. Together they break both rules.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*/limits.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	fired := map[string]bool{}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			problems := Check(read(t, file))
			problems.Sort()
			for _, p := range problems {
				fired[p.Rule] = true
			}
			got, golden := problems.Error()+"\n", filepath.Join(filepath.Dir(file), "stderr.txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("problems differ (-want +got), run go test -update if that is right:\n%s", diff)
			}
		})
	}
	if want := map[string]bool{RuleClash: true, RuleReserved: true}; !cmp.Equal(want, fired) {
		t.Errorf("the cases break %v, want %v", fired, want)
	}
}

// read returns the schema of a file, which has no problems but those of Check.
func read(t *testing.T, file string) *schema.Schema {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, problems := schema.Read("limits.yaml", text)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return s
}

// TestUnique: if Check reports nothing, no name is declared twice. Names are drawn from words that clash
// often.
func TestUnique(t *testing.T) {
	const demo = "../schema/testdata/demo/limits.yaml"
	text, err := os.ReadFile(demo)
	if err != nil {
		t.Fatal(err)
	}
	clashes := 0
	rapid.Check(t, func(t *rapid.T) {
		changed := string(text)
		for _, word := range []string{"user", "project", "org", "gpt-4", "embeddings", "rpm", "tpm", "rps"} {
			if rapid.Bool().Draw(t, "change") {
				changed = strings.ReplaceAll(changed, word, rapid.SampledFrom([]string{
					"user", "gpt", "gpt4", "gpt_4", "gpt4_rpm", "embeddings", "embeddings_rps", "rpm", "limit", "limits",
					"cost", "config", "user_by_id", "gpt4_of_user", "kind_user", "test_entities", "vector",
				}).Draw(t, word))
			}
		}
		s, problems := schema.Read("limits.yaml", []byte(changed))
		if len(problems) > 0 {
			return
		}
		names := Names(s)
		slices.Sort(names)
		unique := len(names) == len(slices.Compact(names))
		if problems := Check(s); len(problems) > 0 {
			clashes++
		} else if !unique {
			t.Errorf("a Go name is declared twice: %v", names)
		}
	})
	if clashes == 0 {
		t.Error("no names clashed")
	}
}

// TestNames holds the list of names to what the sketch of the demonstration declares.
func TestNames(t *testing.T) {
	declared := Names(read(t, "../schema/testdata/demo/limits.yaml"))
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
