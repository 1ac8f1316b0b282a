// Package gen turns a limits.yaml into a typed Go package, and into EXPRESSIONS.md, which reviewers of a
// change read.
//
//	limits.yaml -> schema (what it says) -> model (every name) -> expr (what DynamoDB runs) -> emit (Go)
//	                                                         -> lua (what Redis runs)     -> review (Markdown)
//
// Run does all of it in memory, so that nothing is written unless everything succeeds; the Result is written,
// or compared with what is there. Load stops at the schema, for commands that read and write tables; Breaking
// compares two. gen never imports runtime: the code it prints does.
package gen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/digest"
	"github.com/sluice-go/sluice/gen/internal/emit"
	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/review"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// Problems is a sorted list of all mistakes of a limits.yaml, as an error: for each a line file:line:col:
// RULE: message.
//
//nolint:errname // a list: Problems as schema names it
type Problems = schema.Problems

// Config is the input of Run.
type Config struct {
	Schema string // path of the limits.yaml; its folder is what paths in it are relative to
}

// Run reads the schema and returns the files that it gives, without writing them. The error is a Problems if
// the schema has mistakes.
//
// Run also reads the output of an earlier run, to find stale files and numbers that changed under an old
// revision. The content of the new files does not depend on it.
func Run(cfg Config) (*Result, error) {
	s, problems, err := read(cfg.Schema)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(filepath.Dir(cfg.Schema), filepath.FromSlash(s.Out))
	if len(problems) == 0 {
		if err := checkPlace(cfg.Schema, out, s.Package); err != nil {
			return nil, err
		}
		if problems, err = checkDigest(s, filepath.Join(out, emit.LimitsFile)); err != nil {
			return nil, err
		}
	}
	if len(problems) > 0 {
		problems.Sort()
		return nil, problems
	}

	p := model.Of(s, filepath.Base(cfg.Schema))
	files, err := emit.Files(p, digest.Of(s))
	if err != nil {
		return nil, err
	}
	r := &Result{}
	for _, f := range files {
		r.add(filepath.Join(out, f.Name), f.Data)
	}
	r.add(filepath.Join(out, review.File), review.Document(p))
	r.add(strings.TrimSuffix(cfg.Schema, filepath.Ext(cfg.Schema))+".schema.json", schema.JSONSchema())
	if err := r.compare(out, filepath.Dir(cfg.Schema)); err != nil {
		return nil, err
	}
	return r, nil
}

// checkDigest compares s with the digests of numbers in the generated file, if there is one.
func checkDigest(s *schema.Schema, file string) (Problems, error) {
	before, err := os.ReadFile(file)
	switch {
	case os.IsNotExist(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the digests of the numbers: %w", err)
	}
	return digest.Check(s, digest.Parse(before)), nil
}
