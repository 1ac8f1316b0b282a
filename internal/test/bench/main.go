// Command bench measures what the hot path costs and holds it against what it is to reach: `make bench`.
//
// It prints a row for each figure: its name, its goal, and the median of some runs with the least and the
// most. The last column is ok if the median reaches the goal, and short if not. Figures that depend on the
// machine are ratios of two things measured in turns, within one run. Exceptions are figures in ns, the CPU
// of a build and of a region's cycle, and those that are only stated. Capacity units are those that the
// DynamoDB in the process bills, failed conditions included.
//
// Rows of Redis are measured on a redis-server of its own, where there is one on PATH, and left out
// elsewhere.
//
// Rows of traffic are measured in virtual time, where the machine counts for nothing: each run has to reach
// their goals, not the median alone.
//
// It exits with 0 whatever falls short: a busy machine is no reason to fail a build.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/bench/generated"
	"github.com/sluice-go/sluice/internal/test/definitions"
)

// settings are the flags.
type settings struct {
	only    *regexp.Regexp
	repeats int
	quick   bool
	json    bool
	oneWay  time.Duration
}

// conditions are what every experiment measures under.
type conditions struct {
	load   time.Duration // how long callers call the DynamoDB in the process
	timing time.Duration // how long something is timed that calls nothing
	oneWay time.Duration // how long a request to the DynamoDB in the process travels, and its reply again
	bubble bubble        // virtual time
}

// main runs the program as a test, since only a test can open a bubble of virtual time. The test ends the
// process, before package testing prints anything.
func main() {
	args := os.Args[1:]
	os.Args = os.Args[:1] // package testing parses them
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
		Name: "bench",
		F: func(t *testing.T) {
			t.Helper()
			os.Exit(program(args, bubbles(t)))
		},
	}}, nil, nil)
}

// program measures, and returns the exit code.
func program(args []string, in bubble) int {
	s, err := parse(flag.NewFlagSet("bench", flag.ExitOnError), args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s, in, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// parse reads the flags. There are no other arguments.
func parse(flags *flag.FlagSet, args []string) (settings, error) {
	s := settings{}
	only := flags.String("run", "", "measure only rows whose text matches this `regexp`")
	flags.IntVar(&s.repeats, "n", 5, "how many `runs`")
	flags.BoolVar(&s.quick, "quick", false,
		"a tenth of the time per run, to see that all works: the figures mean little")
	flags.BoolVar(&s.json, "json", false, "print JSON instead of a table")
	flags.DurationVar(&s.oneWay, "latency", time.Millisecond,
		"how long a request to the DynamoDB in the process travels, and its reply again")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q: run with -help for the flags", flags.Arg(0))
	}
	if s.repeats < 1 {
		return s, fmt.Errorf("-n %d: want at least 1", s.repeats)
	}
	if s.oneWay < 0 {
		return s, fmt.Errorf("-latency %v: want at least 0", s.oneWay)
	}
	var err error
	if s.only, err = regexp.Compile(*only); err != nil {
		return s, fmt.Errorf("-run: %w", err)
	}
	return s, nil
}

// conditions returns what s measures under.
func (s settings) conditions() conditions {
	c := conditions{load: time.Second, timing: 400 * time.Millisecond, oneWay: s.oneWay}
	if s.quick {
		c.load /= 10
		c.timing /= 10
	}
	return c
}

// run measures, each experiment once and then all of them again, so that a busy minute spoils one run of each
// and not all of one.
func run(ctx context.Context, s settings, in bubble, out, progress io.Writer) error {
	c := s.conditions()
	c.bubble = in
	all, err := experiments(c)
	if err != nil {
		return err
	}
	all = matching(all, s.only)
	if len(all) == 0 {
		return fmt.Errorf("-run %v: no row's text matches", s.only)
	}
	for i := range s.repeats {
		for j := range all {
			e := &all[j]
			_, _ = fmt.Fprintf(progress, "run %d of %d: %s\n", i+1, s.repeats, e.rows[0].what)
			values, err := e.measure(ctx)
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			if err == nil {
				err = e.note(values)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", e.rows[0].what, err)
			}
		}
	}
	rows := rowsOf(all, s.only)
	if s.json {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false) // it writes <=
		return encoder.Encode(results(rows))
	}
	return printTable(out, rows, s.repeats, c)
}

// experiments returns all that this machine can run, in the order of the table.
func experiments(c conditions) ([]experiment, error) {
	resources, err := definitions.ForDynamo(generated.New)
	if err != nil {
		return nil, err
	}
	all := codecExperiments(resources, c)
	all = append(all, sdkExperiment(resources, c), leanExperiment(c), buildExperiment())
	all = append(all, capacityExperiments(c)...)
	all = append(all, hotExperiments(c)...)
	all = append(all, overloadExperiments(c)...)
	all = append(all, denialExperiments(c)...)
	all = append(all, hitExperiments(c)...)
	all = append(all, midnightExperiments(c)...)
	all = append(all, cascadeExperiment(c))
	all = append(all, regionExperiments(c)...)
	all = append(all, trafficExperiments(c)...)
	if _, err := exec.LookPath("redis-server"); err == nil {
		all = append(all, redisExperiments(c)...)
	}
	return all, nil
}
