package entity

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/runtime/bucket"
)

type calendarCommand struct {
	argument

	Since string `required:"" placeholder:"TIME" help:"${since}"`
	Zone  string `default:"UTC" placeholder:"UTC" help:"IANA time zone of its windows, such as Europe/Berlin."`
}

// Help describes what the calendar is for.
func (calendarCommand) Help() string {
	return "Windows of limits with starts: entity start at the clock time, the day of the week, the day " +
		"of the month and the month of --since. Those with zone: entity go by --zone. Entities below " +
		"this one that have no calendar go by it too.\n\n" +
		"A window that is open keeps its end. The next one is from half as long to one and a half " +
		"times as long.\n\n" +
		"Example: sluice entity calendar org-7 --since 2026-01-31T09:00 --zone Europe/Berlin"
}

// layouts are the forms of --since: local times in --zone.
var layouts = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02"}

// Run stores the calendar of the entity.
func (c calendarCommand) Run(ctx context.Context, p program.Env) error {
	since, err := c.since()
	if err != nil {
		return err
	}
	e, err := c.toWrite(ctx, p, c.isEntity)
	if err != nil {
		return err
	}
	defer e.store.Close()
	before, _, err := e.Get(ctx, c.Entity)
	if err == nil {
		err = e.SetCalendar(ctx, c.Entity, since)
	}
	if err != nil {
		return e.store.Explain(err)
	}
	p.Say("%s: billed since %s, was %s\n", term.Quote(c.Entity), billed(since), billed(before.Since))
	if !e.ownWindows() {
		p.Note("note: no limit of %s has starts: entity or zone: entity, so nothing uses it\n", e.File)
	}
	p.Say("%s\n", bucketstore.TakenUp())
	return nil
}

// since returns the time of --since and --zone.
func (c calendarCommand) since() (time.Time, error) {
	zone, err := bucket.Zone(c.Zone)
	if err != nil {
		return time.Time{}, program.Usagef("--zone %q is no time zone: write a name of the IANA database, "+
			"such as Europe/Berlin or UTC", c.Zone)
	}
	for _, layout := range layouts {
		if at, err := time.ParseInLocation(layout, c.Since, zone); err == nil {
			return at, nil
		}
	}
	return time.Time{}, program.Usagef("--since %q is no time: write the local time in --zone, such as "+
		"2026-01-31T09:00 or 2026-01-31", c.Since)
}

// ownWindows reports whether any limit leaves its windows to entities.
func (e entities) ownWindows() bool {
	for _, spec := range e.Specs {
		for k := range spec.Kinds {
			if spec.Kinds[k].OwnWindows() {
				return true
			}
		}
	}
	return false
}

// billed writes the start of billing, or a dash for none.
func billed(since time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return format.Instant(since) + " " + since.Location().String()
}
