package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/gen"
)

// TestGenerated: generated/ is what limits.yaml gives.
func TestGenerated(t *testing.T) {
	result, err := gen.Run(gen.Config{Schema: "limits.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := result.Diff(); diff != "" {
		t.Errorf("run `make generate` and commit:\n%s", diff)
	}
}

func settingsOf(t *testing.T, args ...string) (settings, error) {
	t.Helper()
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return parse(flags, args)
}

func TestFlags(t *testing.T) {
	for want, args := range map[string][]string{
		`unexpected argument "hot": run with -help for the flags`: {"hot"},
		"-latency -1s: want at least 0":                           {"-latency", "-1s"},
		"-n 0: want at least 1":                                   {"-n", "0"},
		"-run: error parsing regexp: missing closing ]: `[`":      {"-run", "["},
	} {
		if _, err := settingsOf(t, args...); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}

func TestRunMatchesNothing(t *testing.T) {
	s, err := settingsOf(t, "-run", "no such row")
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), s, bubbles(t), io.Discard, io.Discard); err == nil ||
		err.Error() != "-run no such row: no row's text matches" {
		t.Error(err)
	}
}

// TestRun measures two rows, in each of both forms.
func TestRun(t *testing.T) {
	args := []string{"-quick", "-n", "2", "-run", "2 limits, all fields|2 limits, vs"}
	s, err := settingsOf(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	if err := run(t.Context(), s, bubbles(t), &out, &progress); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if !strings.HasPrefix(lines[0], "WHAT ") || !strings.HasPrefix(lines[1], "build Normal, 2 limits") ||
		!strings.HasPrefix(lines[2], "decode ALL_NEW, 2 limits, all fields") || lines[3] != "" {
		t.Errorf("printed\n%s", out.String())
	}
	if !strings.Contains(progress.String(), "run 2 of 2: decode ALL_NEW") {
		t.Errorf("progress\n%s", progress.String())
	}

	if s, err = settingsOf(t, append(args, "-json")...); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := run(t.Context(), s, bubbles(t), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var rows []result
	if err := json.Unmarshal(out.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || len(rows[0].Figures) != 3 || len(rows[0].Figures[0].Runs) != 2 ||
		rows[0].Figures[0].Want != ">= 40" {
		t.Errorf("%+v", rows)
	}
	if times := rows[0].Figures[0].Median; times < 1 || times > 10_000 {
		t.Errorf("generated code is %v times as fast as expression.Builder", times)
	}
}
