package entity

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
	"github.com/sluice-go/sluice/runtime/store"
)

type eraseCommand struct {
	argument

	DryRun        bool `help:"Count what is stored, and delete nothing."`
	LeaveChildren bool `help:"Erase it even if others name it as their parent, whose look-ups then fail."`
	JSON          bool `name:"json" help:"Print the counts as a JSON object."`
}

// Help describes the command.
func (eraseCommand) Help() string {
	return "Deletes the buckets, overrides, regional quotas and usage of an entity, and the link to its " +
		"parent. End its calls first: slots that open leases hold would be given out again. A run that was " +
		"interrupted goes on when it is repeated.\n\n" +
		"Example: sluice entity erase user-123 --dry-run"
}

// erasedJSON is what Run did, in JSON.
type erasedJSON struct {
	Entity    string `json:"entity"`
	DryRun    bool   `json:"dry_run"`
	Buckets   int    `json:"buckets"`
	Overrides int    `json:"overrides"`
	Usage     int    `json:"usage"`
	Other     int    `json:"other"`
}

// Run erases the entity, prints what it deleted, also before an error, and what is out of its reach.
func (c eraseCommand) Run(ctx context.Context, p program.Env) error {
	e, err := c.toWrite(ctx, p, c.isEntity)
	if err != nil {
		return err
	}
	defer e.store.Close()
	n, err := e.Erase(ctx, c.Entity, store.Erasing{DryRun: c.DryRun, LeaveChildren: c.LeaveChildren})
	if _, children := errors.AsType[*store.InvalidError](err); children {
		return fmt.Errorf("%w: pass --leave-children", err)
	}
	if err != nil && n == (store.Erased{}) {
		return e.store.Explain(err)
	}
	if c.JSON {
		printed := p.JSONLine(erasedJSON{c.Entity, c.DryRun, n.Buckets, n.Overrides, n.Usage, n.Other})
		if err == nil && printed != nil {
			return printed
		}
	} else {
		verb := "erased"
		if c.DryRun {
			verb = "would erase"
		}
		p.Say("%s: %s %s, %s, %s of usage and %s\n", term.Quote(c.Entity), verb,
			format.Quantity(n.Buckets, "bucket"), format.Quantity(n.Overrides, "override"),
			format.Quantity(n.Usage, "window"), format.Quantity(n.Other, "other item"))
	}
	if err != nil {
		return fmt.Errorf("%w; some may be left: run the command again, and it goes on", e.store.Explain(err))
	}
	say := p.Say
	if c.JSON {
		say = p.Note
	}
	say("%s\n", e.unreached(c.Redis != nil))
	return nil
}

// unreached says what an erase does not reach.
func (e entities) unreached(redis bool) string {
	expiry := fmt.Sprintf("after %s by default", format.Span(store.DefaultCacheTTL))
	lines := []string{
		"its data stays in backups and point-in-time recovery, for a day in the table's stream, and in usage " +
			"that was exported",
		"a process that serves a call of it, an aggregator that is behind, and a process with cached links, " +
			"overrides or buckets store data again: end its calls, and repeat the command once their caches expire, " +
			expiry,
	}
	if redis {
		lines[0] = "its data stays in backups of Redis, and in append-only files until they are rewritten"
		lines[1] = "a process that serves a call of it, or has cached its link or overrides, stores data again: " +
			"end its calls, and repeat the command once their caches expire, " + expiry
	}
	for _, spec := range e.Specs {
		if spec.Regions != nil {
			lines = append(lines, "each region has a table of its own: erase it there too; regional sync keeps it in "+
				"its snapshots, and stores quotas for it, until it has been idle")
			break
		}
	}
	return strings.Join(lines, "\n")
}
