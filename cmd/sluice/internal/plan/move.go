package plan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/runtime/store"
)

type moveCommand struct {
	bucketstore.TableOrRedis
	schemafile.Flag
	bucketstore.Reason

	From   string `required:"" placeholder:"PLAN" help:"Plan that the entities are on."`
	To     string `required:"" placeholder:"PLAN" help:"Plan that they are put on, or none."`
	DryRun bool   `help:"Count the entities, and write nothing."`
	Rate   int    `placeholder:"N" help:"Most entities a second. The default is as many as the store takes."`
}

// Help describes the command.
func (moveCommand) Help() string {
	return "Finds the entities by one scan of the whole table, which is half a read unit for each 4 kB, or of " +
		"all keys of a Redis. On a table, each entity then costs 1 read and 4 write units: its plan and the " +
		"record for `sluice audit` are one transaction. A run that was interrupted goes on when it is repeated, " +
		"since entities that were moved are no longer on --from. An entity that is put on --from meanwhile may " +
		"be left out.\n\n" +
		"--from may be a plan that limits.yaml no longer has.\n\n" +
		"Example: sluice plan move --from pro --to free --dry-run"
}

// movesAtOnce bounds the moves that are under way.
const movesAtOnce = 8

// Run moves the entities that a scan finds.
func (c moveCommand) Run(ctx context.Context, p program.Env) error {
	s, err := read(c.Flag)
	if err != nil {
		return err
	}
	to, err := s.parse(c.To)
	switch {
	case err != nil:
		return err
	case c.From == "" || c.From == none:
		return program.Usagef("--from names no plan: entities on none are not listed; put them on a plan one by " +
			"one")
	case c.From == to:
		return program.Usagef("--from and --to are both %s: pass two plans", term.Quote(to))
	case c.Rate < 0:
		return program.Usagef("--rate %d is below 0: pass the most entities a second, or leave the flag out",
			c.Rate)
	}
	open, end := program.Finishing(ctx, !c.DryRun)
	defer end()
	at, err := c.OpenToWrite(open, p.Now, c.Flag, "")
	if err != nil {
		return err
	}
	defer at.Close()
	if ctx, err = c.Recorded(ctx, at); err != nil {
		return err
	}
	m := &mover{plans: s, at: at, from: c.From, to: to, dry: c.DryRun, limiter: rate.NewLimiter(rate.Inf, 1),
		now: p.Now, status: term.StatusLine{W: p.Stderr, Terminal: term.IsTerminal(p.Stderr),
			Every: 10 * time.Second, Next: p.Now().Add(time.Second)}}
	if c.Rate > 0 {
		m.limiter.SetLimit(rate.Limit(c.Rate))
	}
	err = m.all(ctx)
	m.status.Wipe()
	things := format.Quantity(m.moved, s.kind().Name)
	if c.DryRun && err == nil {
		p.Say("would move %s from %s to %s\n", things, s.named(c.From), s.named(to))
		return nil
	}
	if !c.DryRun {
		p.Say("moved %s from %s to %s\n", things, s.named(c.From), s.named(to))
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w; run the command again, and it goes on", at.Explain(err))
	case m.moved > 0:
		p.Note("%s\n", bucketstore.TakenUp())
	}
	return nil
}

// mover moves entities from one plan to another.
type mover struct {
	plans

	at       bucketstore.Store
	from, to string
	dry      bool
	limiter  *rate.Limiter
	now      func() time.Time

	mu          sync.Mutex
	moved, read int
	status      term.StatusLine
}

// all moves the entities of each page of the scan, and ends with the first error.
func (m *mover) all(ctx context.Context) error {
	for page, err := range m.at.OnPlan(ctx, m.kind(), m.from) {
		if err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		m.note(0, page.Read)
		if m.dry {
			m.note(len(page.Entities), 0)
			continue
		}
		if err := m.page(ctx, page.Entities); err != nil {
			return err
		}
	}
	return nil
}

// page moves entities, several at a time. An entity that is on another plan by now stays there. Those under
// way when an error or an interrupt comes are moved all the same: the count is right.
func (m *mover) page(ctx context.Context, entities []string) error {
	group, together := errgroup.WithContext(ctx)
	group.SetLimit(movesAtOnce)
	for _, entity := range entities {
		if m.limiter.Wait(together) != nil {
			break
		}
		group.Go(func() error {
			call, done := program.Finish(ctx)
			defer done()
			err := m.at.Members().SetPlan(call, entity, m.to, &m.from)
			if _, changed := errors.AsType[*store.ConflictError](err); changed {
				return nil
			}
			if err == nil {
				m.note(1, 0)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// note adds to the counts, and shows them if that is due.
func (m *mover) note(moved, read int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moved, m.read = m.moved+moved, m.read+read
	if now := m.now(); m.status.Due(now) {
		m.status.Show(now, fmt.Sprintf("%s moved, %s read", format.Count(m.moved), format.Count(m.read)))
	}
}
