package docs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/limittest"
)

// mostReadmeLines bounds README.md: the rest belongs on pages of docs.
const mostReadmeLines = 220

// TestReadmeIsShort holds README.md to its bound.
func TestReadmeIsShort(t *testing.T) {
	text := read(t, "README.md")
	if wrong := tooLong(text); wrong != "" {
		t.Error(wrong)
	}
	more := mostReadmeLines + 1 - strings.Count(text, "\n")
	if more > 0 && tooLong(text+strings.Repeat("\n", more)) == "" { // the control
		t.Errorf("README.md may have %d lines more", more)
	}
}

// tooLong says that a README has too many lines, or "".
func tooLong(text string) string {
	n := strings.Count(text, "\n")
	if n <= mostReadmeLines {
		return ""
	}
	return fmt.Sprintf("README.md has %d lines, at most %d: move details to a page of docs", n, mostReadmeLines)
}

// TestDocsQuoteAllOfLimits lets readers copy the quoted file and generate from it.
func TestDocsQuoteAllOfLimits(t *testing.T) {
	if !strings.Contains(read(t, "docs/limits-yaml.md"), "\n```yaml\n"+read(t, "limits.yaml")+"```\n") {
		t.Error("docs/limits-yaml.md does not quote all of limits.yaml")
	}
}

// TestAPIRuns runs the calls that docs/api.md shows.
func TestAPIRuns(t *testing.T) {
	user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
	for name, show := range map[string]func(context.Context, *limits.Limiter) error{
		"a call": func(ctx context.Context, lim *limits.Limiter) error {
			reply, err := complete(ctx, lim.GPT4, user, "say something")
			if snap, failed := lim.GPT4.Peek(ctx, user); failed != nil || reply == "" ||
				snap.Available.TPM != 15_000-4 {
				err = errors.Join(err, failed, fmt.Errorf("replied %q; %+v is left", reply, snap))
			}
			return err
		},
		"a call that is denied": func(ctx context.Context, lim *limits.Limiter) error {
			return denial(ctx, lim, user)
		},
		"Wait, Do, Peek": func(ctx context.Context, lim *limits.Limiter) error {
			return others(ctx, io.Discard, lim, user)
		},
		"several resources": func(ctx context.Context, lim *limits.Limiter) error {
			return both(ctx, lim, user)
		},
		"look-ups":  lookUp,
		"overrides": override,
		"refills": func(ctx context.Context, lim *limits.Limiter) error {
			_, err := lim.GPT4.Acquire(ctx, user, limits.GPT4Cost{TPM: 15_000})
			err = errors.Join(err, refill(ctx, lim))
			for entity, want := range map[limits.GPT4Entity]int64{user: 20_000, user.Project: 150_000} {
				if snap, failed := lim.GPT4.Peek(ctx, entity); failed != nil || snap.Buckets[0].Available.TPM != want {
					err = errors.Join(err, failed, fmt.Errorf("%s: %+v is left, want %d", entity, snap, want))
				}
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim, err := limits.New(limittest.Store(t))
				if err == nil {
					err = show(t.Context(), lim)
				}
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// unwrapped returns a file in one line, so that a text is found wherever the lines of a paragraph break.
func unwrapped(t *testing.T, name string) string {
	t.Helper()
	return strings.Join(strings.Fields(read(t, name)), " ")
}
