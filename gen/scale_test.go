package gen

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/longform"
)

// thousand returns a schema with 1,000 limits over 100 resources.
func thousand() string {
	var b strings.Builder
	b.WriteString("version: 1\nowner: acme\nrevision: 1\ngo: {package: limits}\n" +
		"entities: {project: {}, user: {parent: project}}\nresources:\n")
	for r := range 100 {
		fmt.Fprintf(&b, "  model-%d:\n    doc: Calls of model %d.\n    limits:\n", r, r)
		for l := range 10 {
			fmt.Fprintf(&b, "      limit_%d: {doc: tokens, capacity: %d, every: 1m}\n", l, 100*r+l+1)
		}
		b.WriteString("    entities: {user: {}, project: {limit_0: {capacity: 1_000_000}}}\n")
	}
	return b.String()
}

// BenchmarkThousandLimits runs the generator, short of writing: well under a second is the target.
func BenchmarkThousandLimits(b *testing.B) {
	path := filepath.Join(b.TempDir(), "limits.yaml")
	if err := os.WriteFile(path, []byte(thousand()), 0o644); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Run(Config{Schema: path}); err != nil {
			b.Fatal(err)
		}
	}
}

// priced returns a schema with 200 resources of 5 prices each.
func priced() string {
	var b strings.Builder
	b.WriteString("version: 1\nowner: acme\nrevision: 1\ngo: {package: limits}\n" +
		"entities: {project: {}, user: {parent: project}}\nresources:\n")
	for r := range 200 {
		fmt.Fprintf(&b, "  model-%d:\n    limits:\n      month: {money: USD, capacity: %d.25, window: month}\n"+
			"    usage:\n", r, r+1)
		for u := range 5 {
			fmt.Fprintf(&b, "      usage_%d: {price: %d.%d/1M}\n", u, r+1, u+1)
		}
		b.WriteString("    entities: {user: {}, project: {}}\n    on_unavailable: deny\n")
	}
	return b.String()
}

// BenchmarkPrices runs the generator on 200 resources of 5 prices each: under a second is the target.
func BenchmarkPrices(b *testing.B) {
	path := filepath.Join(b.TempDir(), "limits.yaml")
	if err := os.WriteFile(path, []byte(priced()), 0o644); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Run(Config{Schema: path}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestThousandLimitsCompile vets what a thousand limits give, in a module of its own that requires this one.
func TestThousandLimitsCompile(t *testing.T) {
	longform.Only(t, "it compiles 300 files")
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Replace(string(mod), "module github.com/sluice-go/sluice", "module example.com/scale", 1) +
		"\nrequire github.com/sluice-go/sluice v0.0.0\n\nreplace github.com/sluice-go/sluice => " + root + "\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(own), 0o644); err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644); err != nil {
		t.Fatal(err)
	}
	schemaAt(t, dir, thousand())
	generate(t, dir)
	cmd := exec.CommandContext(t.Context(), "go", "vet", "-mod=mod", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go vet: %v\n%s", err, out)
	}
}
