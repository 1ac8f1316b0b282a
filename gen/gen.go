// Package gen turns a limits.yaml into a typed Go package, and into EXPRESSIONS.md, which reviewers of a
// change read. Not for import: the command imports it.
//
//	limits.yaml -> schema (what it says) -> model (every name) -> expr (what DynamoDB runs) -> emit (Go)
//	                                                         -> lua (what Redis runs)     -> review (Markdown)
//
// Run does all of it in memory, so that nothing is written unless everything succeeds; the Result is written,
// or compared with what is there. Load stops at the schema, for commands that read and write tables; Breaking
// compares two. gen never imports runtime: the code it prints does.
package gen

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/digest"
	"github.com/sluice-go/sluice/gen/internal/emit"
	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/review"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// Problems is a sorted list of all mistakes of a limits.yaml. As an error it has a line file:line:col: RULE:
// message for each of the first ones, and counts the rest.
//
//nolint:errname // a list: Problems as schema names it
type Problems = schema.Problems

// Generation is that of the code that Run returns, which the code's runtime has to serve.
const Generation = emit.Generation

// Config is the input of Run.
type Config struct {
	Schema string // path of the limits.yaml; its folder is what paths in it are relative to

	// Scanned says that `go generate` runs this. It has listed the Go files before, and fails if one that it has
	// yet to read is gone: stale ones become stubs, which the next run removes.
	Scanned bool

	// Committed returns a file as it was last committed, nil if it was not. A schema that was not has no numbers
	// that a bucket could have. If Committed is nil, numbers are compared with those of the last run.
	Committed func(path string) ([]byte, error)
}

// Run reads the schema and returns the files that it gives, without writing them. The error is a Problems if
// the schema has mistakes.
//
// Run also reads the output of an earlier run, to find stale files, and that or what was committed to find
// numbers that changed under an old revision. The content of the new files does not depend on them.
func Run(cfg Config) (*Result, error) {
	s, problems, err := read(cfg.Schema)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(filepath.Dir(cfg.Schema), filepath.FromSlash(s.Out))
	if len(problems) == 0 {
		if problems, err = checkInside(s, filepath.Dir(cfg.Schema), out); err != nil {
			return nil, err
		}
	}
	if len(problems) == 0 {
		if err := checkPlace(cfg.Schema, out, s.Package); err != nil {
			return nil, err
		}
		if problems, err = cfg.checkDigest(s, filepath.Join(out, emit.LimitsFile)); err != nil {
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
	r := &Result{Notes: review.Notes(s)}
	for _, f := range files {
		r.add(filepath.Join(out, f.Name), f.Data)
	}
	r.add(filepath.Join(out, review.File), review.Document(p))
	r.add(strings.TrimSuffix(cfg.Schema, filepath.Ext(cfg.Schema))+".schema.json", schema.JSONSchema())
	if err := r.compare(out, filepath.Dir(cfg.Schema)); err != nil {
		return nil, err
	}
	if cfg.Scanned {
		r.keepStubs(s.Package)
	}
	return r, nil
}

// checkDigest compares s with the numbers that buckets may have: those of the committed schema, and those
// whose digests the committed file of generated code has. A commit may have one without the other. If what is
// committed is not known, it compares s with the file of generated code.
func (cfg Config) checkDigest(s *schema.Schema, file string) (Problems, error) {
	read := cfg.Committed
	if read == nil {
		read = func(path string) ([]byte, error) {
			text, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return text, err
		}
	}
	before, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("read the digests of the numbers: %w", err)
	}
	problems := digest.Check(s, digest.Parse(before))
	if cfg.Committed == nil || len(problems) > 0 {
		return problems, nil
	}
	text, err := read(cfg.Schema)
	if err != nil {
		return nil, fmt.Errorf("read the committed numbers: %w", err)
	}
	// one that does not pass the rules of this sluice has its digests in the generated code
	old, mistakes := schema.Read(cfg.Schema, text)
	if len(mistakes) > 0 {
		return nil, nil
	}
	return digest.Check(s, digest.RecordOf(old)), nil
}
