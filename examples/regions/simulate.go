package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sluice-go/sluice/internal/test/regionsim"
	"github.com/sluice-go/sluice/runtime/region"
)

// play is a simulated world, and what was seen of it.
type play struct {
	worldSettings

	faults  []regionsim.Fault
	samples []regionsim.Sample
	asked   [][]float64 // of the first bucket, by window and region, as a part of G
	result  *regionsim.Result
}

// errInterrupted is a Ctrl-C.
var errInterrupted = errors.New("interrupted")

// simulate plays what the settings say, and prints how it went. progress is told how far it is.
func simulate(ctx context.Context, s settings, out, progress io.Writer) error {
	p, err := run(ctx, s.world, s.world.world(), progress)
	if err != nil {
		return err
	}
	if len(p.samples) == 0 { // a violation at once
		return p.check()
	}
	if err := p.print(out, s.prices); err != nil {
		return err
	}
	if s.svg != "" {
		if err := p.draw(s.svg); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "\ndrawn: %s\n", s.svg); err != nil {
			return err
		}
	}
	return p.check()
}

// run plays w, which s describes.
func run(ctx context.Context, s worldSettings, w regionsim.World, progress io.Writer) (*play, error) {
	p := &play{worldSettings: s, faults: w.Faults}
	began, next := time.Now(), time.Now()
	done := make(chan struct{})
	w.Watch = func(now regionsim.Sample) {
		p.samples = append(p.samples, now)
		if time.Now().After(next) {
			next = time.Now().Add(2 * time.Second)
			_, _ = fmt.Fprintf(progress, "window %*d of %d, %d writes in it\n", len(fmt.Sprint(s.windows)),
				len(p.samples), s.windows, now.Writes)
		}
	}
	go func() {
		defer close(done)
		p.result = w.Run()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return nil, errInterrupted // the program ends, and the world with it
	}
	p.asked = demand(w)
	_, _ = fmt.Fprintf(progress, "%d cycles of %d regions in %v, %v of simulated time\n\n",
		p.result.Cycles, s.regions, time.Since(began).Round(time.Second/10), w.Duration)
	return p, nil
}

// idle is a sync that does nothing.
type idle struct{}

// Cycle does nothing.
func (idle) Cycle(context.Context) (*region.Report, error) { return nil, nil }

// demand is what is asked of the first bucket of w: of a world that has no other, samples say it.
func demand(w regionsim.World) (asked [][]float64) {
	w.Entities, w.Resources, w.Faults = 1, w.Resources[:1], nil
	w.New = func(region.Config) (regionsim.Sync, error) { return idle{}, nil }
	w.Watch = func(now regionsim.Sample) { asked = append(asked, now.Demand) }
	w.Run()
	return asked
}

// check errs if the result has a violation.
func (p *play) check() error {
	if len(p.result.Violations) > 0 {
		return fmt.Errorf("the world ended with a violation: %s", p.result.Violations[0])
	}
	return nil
}

// draw writes the picture.
func (p *play) draw(name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(p.chart(1).SVG(file), file.Close())
}
