// Package windows is `sluice windows`: it lists when windows of limits start.
package windows

import (
	"context"
	"time"

	"github.com/alecthomas/kong"
	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Command is `sluice windows`.
type Command struct {
	bucketstore.TableOrRedis
	schemafile.Flag

	Entity *string `placeholder:"ENTITY" type:"entity" help:"${of_entity}"`
	Next   int     `default:"6" placeholder:"6" help:"Number of windows of each limit, 1 to 1000."`
	JSON   bool    `name:"json" help:"Print a JSON object per limit on a line."`
}

// Help describes the list.
func (Command) Help() string {
	return "Prints when the next windows start, for each limit that has windows: by the limit's own " +
		"clock and in UTC, and how long each window lasts. A window of 23h or 25h has a change of " +
		"the clock in it. Windows from the first use have no such times.\n\n" +
		"With --entity, the limits are those of the entity's kind. Limits with starts: entity or " +
		"zone: entity then go by the calendar that is stored for the entity, or for the nearest of " +
		"its stored ancestors. Otherwise nothing is read but limits.yaml.\n\n" +
		"The list is what limits.yaml says. A window that is open ends when its bucket says, which " +
		"`sluice peek` shows: after a change of starts or zone, the two differ for one window.\n\n" +
		"Example: sluice windows --entity org-7 --next 3"
}

// FlagHelp returns the help texts that are too long for a tag.
func (Command) FlagHelp() kong.Vars {
	return kong.Vars{"of_entity": "Show the windows of this entity, such as user-123."}
}

// most bounds --next.
const most = 1000

// Run prints the next windows of each limit.
func (c Command) Run(ctx context.Context, p program.Env) error {
	if c.Next < 1 || c.Next > most {
		return program.Usagef("--next %d is out of range: pass 1 to %d", c.Next, most)
	}
	s, err := c.Read()
	if err != nil {
		return err
	}
	var all []limit
	if c.Entity == nil {
		all = ofSchema(s)
	} else if all, err = c.ofEntity(ctx, p, s); err != nil {
		return err
	}
	if len(all) == 0 {
		p.Note("no limit of %s has windows\n", c.whose(s))
	}
	now := p.Now()
	for _, l := range all {
		if c.JSON {
			err = p.JSONLine(l.json(c.Next, now))
		} else {
			err = l.print(p, c.Next, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// whose names what has no windows.
func (c Command) whose(s *schemafile.Schema) string {
	if c.Entity == nil {
		return s.File
	}
	return "kind " + s.Kinds[s.KindOf(*c.Entity)].Name
}

// limit is a limit with windows.
type limit struct {
	resource, name string
	calendar       *bucket.Calendar
	// entity is that of --entity, or empty.
	entity string
	// own says that limits.yaml leaves the calendar to entities. from is the entity whose calendar it is, or
	// empty if it is the default.
	own  bool
	from string
}

// ofSchema returns the limits of s with the calendars of limits.yaml.
func ofSchema(s *schemafile.Schema) (all []limit) {
	for _, spec := range s.Specs {
		for i, name := range spec.Limits {
			if c := calendarOf(spec, i); c != nil {
				all = append(all, limit{resource: spec.Resource, name: name, calendar: c, own: c.Own()})
			}
		}
	}
	return all
}

// calendarOf returns the calendar of the i-th limit, which is the same for all kinds that have it.
func calendarOf(spec *store.Spec, i int) *bucket.Calendar {
	for k := range spec.Kinds {
		if kind := &spec.Kinds[k]; kind.Has(i) && kind.Windows != nil {
			return kind.Windows[i]
		}
	}
	return nil
}

// ofEntity returns the limits of the entity's kind with the calendars of the entity. It opens the store only
// if one of them is left to entities.
func (c Command) ofEntity(ctx context.Context, p program.Env, s *schemafile.Schema) (all []limit, err error) {
	kind, err := s.Entity(*c.Entity)
	if err != nil {
		return nil, err
	}
	var at bucketstore.Store
	for _, spec := range s.Specs {
		l := schemafile.Scope{Spec: spec, Kind: kind, At: *c.Entity}
		if l.Own().OwnWindows() && at == nil {
			if at, err = c.Open(ctx, p.Now, c.Flag); err != nil {
				return nil, err
			}
			defer at.Close()
		}
		calendars, err := bucketstore.CalendarsOf(ctx, at, l)
		if err != nil {
			return nil, err
		}
		for i, calendar := range calendars.Of {
			if calendar != nil {
				all = append(all, limit{resource: spec.Resource, name: spec.Limits[i], calendar: calendar,
					entity: *c.Entity, own: l.Own().Windows[i].Own(), from: calendars.From})
			}
		}
	}
	return all, nil
}

// windowJSON is a window in JSON.
type windowJSON struct {
	Local  time.Time `json:"local"` // its start in the zone of the limit
	UTC    time.Time `json:"utc"`
	Length int64     `json:"length_ms"`
}

// limitJSON is a limit in JSON.
type limitJSON struct {
	Resource string       `json:"resource"`
	Limit    string       `json:"limit"`
	Entity   string       `json:"entity,omitempty"`
	From     string       `json:"calendar_of,omitempty"` // the entity whose calendar it is; none is the default
	Calendar string       `json:"calendar"`
	Zone     string       `json:"zone,omitempty"`      // none for windows from the first use, and never
	Length   int64        `json:"length_ms,omitempty"` // of windows from the first use
	Starts   []windowJSON `json:"starts"`
}

// starts returns the next n windows after now. There are none for windows from the first use, and for never.
func (l limit) starts(n int, now time.Time) []windowJSON {
	all := []windowJSON{}
	next := l.byDefault().Next(now.UnixMilli(), n+1)
	for i := 1; i < len(next); i++ {
		at := time.UnixMilli(next[i-1]).UTC()
		all = append(all, windowJSON{Local: at.In(l.zone()), UTC: at, Length: next[i] - next[i-1]})
	}
	return all
}

// byDefault returns the calendar, where it is left to entities with the defaults.
func (l limit) byDefault() *bucket.Calendar {
	c := *l.calendar
	c.OwnStarts, c.OwnZone = false, false
	return &c
}

// zone returns the zone of the windows.
func (l limit) zone() *time.Location {
	if l.calendar.Zone == nil {
		return time.UTC
	}
	return l.calendar.Zone
}

// json returns what JSON has of l.
func (l limit) json(n int, now time.Time) limitJSON {
	out := limitJSON{Resource: l.resource, Limit: l.name, Entity: l.entity, Calendar: l.calendar.String(),
		Starts: l.starts(n, now)}
	if l.own {
		out.From = l.from
	}
	switch l.calendar.Unit {
	case bucket.FirstUse:
		out.Length = l.calendar.Length
	case bucket.Never:
	default:
		out.Zone = l.zone().String()
	}
	return out
}

// title names l and says what its windows follow.
func (l limit) title() string {
	text := l.resource + " " + l.name
	if l.entity != "" {
		text += " of " + term.Quote(l.entity)
	}
	text += ": " + l.calendar.String()
	switch {
	case !l.own:
	case l.from != "":
		text += ", by the calendar of " + term.Quote(l.from)
	case l.entity != "":
		text += "; neither it nor a stored parent has a calendar: " + l.byDefault().String()
	default:
		text += "; by default " + l.byDefault().String()
	}
	return text
}

// print prints l and its next windows.
func (l limit) print(p program.Env, n int, now time.Time) error {
	p.Say("%s\n", l.title())
	rows := [][]string{{"STARTS", "UTC", "LENGTH"}}
	for _, w := range l.starts(n, now) {
		rows = append(rows, []string{
			format.Instant(w.Local) + " " + w.Local.Format("MST"), format.Instant(w.UTC),
			format.Days(time.Duration(w.Length) * time.Millisecond),
		})
	}
	if len(rows) == 1 {
		return nil
	}
	return texttable.Write(p.Stdout, "  ", "lll", rows)
}
