// Command regions shows limits that regions share out: one limit for all of them, over tables that know
// nothing of each other.
//
//	go run ./examples/regions                         three regions in this process, with live traffic
//	go run ./examples/regions -simulate -svg out.svg  many buckets on a virtual clock
//
// In the first, the sync of one region stops for a while. The second prints writes, starvation and distance
// from the target. Both end with a check: the quotas in force never summed to more than the limit. If it
// fails, so does the program.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sluice-go/sluice/internal/test/regionsim"
)

// settings are the flags.
type settings struct {
	simulate bool
	world    worldSettings
	svg      string
	prices   prices
}

// Exit codes besides 0.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	s, err := parse(flag.NewFlagSet("regions", flag.ExitOnError), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "regions:", err)
		os.Exit(exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	if s.simulate {
		err = simulate(ctx, s, os.Stdout, os.Stderr)
	} else {
		err = live(ctx, mainStory(), os.Stdout)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "regions:", err)
		os.Exit(exitFailure)
	}
}

// parse reads the flags. There are no other arguments.
func parse(flags *flag.FlagSet, args []string) (settings, error) {
	var s settings
	flags.BoolVar(&s.simulate, "simulate", false,
		"simulate a world of many buckets on a virtual clock; the other flags are for that")
	w := &s.world
	flags.IntVar(&w.regions, "regions", 3, fmt.Sprintf("how many `regions`, 2 to %d", len(allNames())))
	flags.IntVar(&w.entities, "entities", 200, "`entities` in each resource, all of them active")
	flags.IntVar(&w.resources, "resources", 10, "how many `resources`")
	flags.StringVar((*string)(&w.shape), "shape", string(mixed),
		"how demand changes: "+strings.Join(shapes(), ", "))
	flags.IntVar(&w.faults, "faults", 0,
		"how many `faults` happen: regions killed, snapshots lost or stale, calls refused")
	flags.IntVar(&w.windows, "windows", 60, "for how many `windows` of 10 seconds")
	flags.Uint64Var(&w.seed, "seed", 1, "`seed` of demand, faults and clocks")
	flags.StringVar(&s.svg, "svg", "", "draw a picture into this `file`")
	s.prices.flags(flags)
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q: run with -help for the flags", flags.Arg(0))
	}
	if !s.simulate && flags.NFlag() > 0 {
		return s, fmt.Errorf("flags are for the simulation: add -simulate")
	}
	return s, s.check()
}

// check says which flag is wrong.
func (s settings) check() error {
	w := s.world
	for _, f := range []struct {
		name        string
		value       int
		least, most int
	}{
		{"regions", w.regions, 2, len(allNames())},
		{"entities", w.entities, 1, 100_000},
		{"resources", w.resources, 1, 1_000},
		{"windows", w.windows, 2, 100_000},
		{"faults", w.faults, 0, 1_000},
	} {
		if f.value < f.least || f.value > f.most {
			return fmt.Errorf("-%s is %d: want %d to %d", f.name, f.value, f.least, f.most)
		}
	}
	if !slices.Contains(shapes(), string(w.shape)) {
		return fmt.Errorf("-shape is %q: want one of %s", w.shape, strings.Join(shapes(), ", "))
	}
	if folder := filepath.Dir(s.svg); s.svg != "" { // now, and not when all is done
		if _, err := os.Stat(folder); err != nil {
			return fmt.Errorf("-svg: there is no folder %s: make it, or name a file elsewhere", folder)
		}
	}
	return s.prices.check()
}

// shapes are those of the simulator, and the mixture of them.
func shapes() []string {
	names := []string{string(mixed)}
	for _, shape := range regionsim.Shapes() {
		names = append(names, string(shape))
	}
	return names
}
