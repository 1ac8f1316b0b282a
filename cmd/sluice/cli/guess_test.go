package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestGuesses: a mistyped command or flag gets the name that was probably meant, and no other.
func TestGuesses(t *testing.T) {
	for args, want := range map[string]string{
		"foo":               "unexpected argument foo; run",
		"pek":               `unexpected argument pek, did you mean "peek"?; run`,
		"tabel check":       `unexpected argument tabel, did you mean "table"?; run`,
		"re":                `unexpected argument re, did you mean "reset" or "region"?; run`,
		"top gpt-4 --tabel": `unknown flag --tabel, did you mean "--table"?; run`,
		"top gpt-4 --xyz":   "unknown flag --xyz; run",
	} {
		var out, errs bytes.Buffer
		code := Program{Stdout: &out, Stderr: &errs, Now: time.Now}.Run(t.Context(), strings.Fields(args))
		if got := errs.String(); code != exitUsage || !strings.HasPrefix(got, "sluice: "+want) {
			t.Errorf("%s: exit code %d, %swant %s", args, code, got, want)
		}
	}
}
