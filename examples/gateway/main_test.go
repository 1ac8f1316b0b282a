package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestParse(t *testing.T) {
	s, err := parse(flag.NewFlagSet("gateway", flag.ContinueOnError), []string{"-for", "3s", "-seed", "7", "-table", "t12"})
	if want := (settings{table: "t12", duration: 3 * time.Second, seed: 7}); err != nil || s != want {
		t.Errorf("%+v, %v, want %+v", s, err, want)
	}
	_, err = parse(flag.NewFlagSet("gateway", flag.ContinueOnError), []string{"-seed", "7", "3s"})
	if err == nil || err.Error() != `unexpected argument "3s": run with -help for the flags` {
		t.Errorf("a stray argument: %v", err)
	}
}

// TestStarting: an interrupt while the program starts is no failure of what it broke off.
func TestStarting(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := run(ctx, settings{table: "rate_limits"}, out); !errors.Is(err, errInterrupted) || err.Error() != "interrupted" {
		t.Errorf("run returned %v", err)
	}

	// The control: what fails by itself is not called an interrupt.
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	if err := run(t.Context(), settings{endpoint: "nonsense"}, out); err == nil || errors.Is(err, errInterrupted) {
		t.Errorf("run with a wrong endpoint returned %v", err)
	}
}

// TestDemo runs the program as `make demo` does, in time that takes none: all its checks hold.
func TestDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = out.Close() }()
		s, err := parse(flag.NewFlagSet("gateway", flag.ContinueOnError), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := run(t.Context(), s, out); err != nil {
			t.Error(err)
		}
		printed, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"\ncheck: ok: on all 14 limits ", "\ncheck: ok: on all 4 limits of projects ", "\nbill: ok: ", "\ndegraded "} {
			if !strings.Contains(string(printed), line) {
				t.Errorf("it did not print %q", line)
			}
		}
		if t.Failed() {
			t.Logf("it printed:\n%s", printed)
		}
	})
}

// TestMoment: a tick is never on time to the nanosecond.
func TestMoment(t *testing.T) {
	const all = 18 * time.Second
	for elapsed, want := range map[time.Duration]string{
		time.Second + time.Millisecond: "1 of 18 s",
		all:                            "18 of 18 s",
		all + 2*time.Millisecond:       "18 of 18 s",
		all + time.Second:              "finishing",
	} {
		if got := moment(elapsed, all); got != want {
			t.Errorf("moment(%v) = %q, want %q", elapsed, got, want)
		}
		if line := progressLine(counts{}, want); !strings.HasPrefix(line, strings.Repeat(" ", 10-len(want))+want+"   admitted ") {
			t.Errorf("line %q", line)
		}
	}
}
