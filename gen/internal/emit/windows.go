package emit

import (
	"fmt"
	"slices"
	"time"

	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/window"
)

// needsZones reports whether a limit of p names a zone, or leaves it to entities. A process then needs the
// rules of zones, which its machine may lack.
func needsZones(p *model.Package) bool {
	return slices.ContainsFunc(p.Resources, func(r *model.Resource) bool {
		return slices.ContainsFunc(r.Limits, func(l *model.Limit) bool {
			return l.Window != nil && l.Window.NeedsZones()
		})
	})
}

// calendars prints the calendars of a resource's limits.
func calendars(f *file, r *model.Resource) {
	list := each(r.Limits, func(_ int, l *model.Limit) jen.Code {
		switch {
		case l.InFlight:
			return noted(l.Name+" is in flight", jen.Nil())
		case l.Window == nil:
			return noted(l.Name+" refills", jen.Nil())
		}
		return noted(l.Name+": "+l.Window.String(), calendar(*l.Window))
	})
	f.decl(fmt.Sprintf("%s holds the calendars of the limits of %s.", r.Windows, r.Name),
		jen.Var().Id(r.Windows).Op("=").Index().Op("*").Qual(bucketPath, "Calendar").Add(lines(list...)))
}

// calendar is a bucket.Calendar, without its type. It leaves out what is zero.
func calendar(w window.Window) jen.Code {
	fields := []jen.Code{pair("Unit", jen.Qual(bucketPath, unitName(w.Unit)))}
	add := func(name string, value jen.Code) { fields = append(fields, pair(name, value)) }
	switch w.Unit {
	case window.FirstUse:
		add("Length", num(w.Length.Milliseconds()))
	case window.Day:
		if w.At > 0 {
			add("At", clock(w.At))
		}
	case window.Week:
		add("Weekday", jen.Qual("time", w.Weekday.String()))
	case window.Month:
		add("Date", jen.Lit(w.Date))
	case window.Quarter, window.Year:
		add("Date", jen.Lit(1))
		add("Month", jen.Qual("time", time.January.String()))
	}
	if w.Zone != window.UTC && w.Zone != "" {
		add("Zone", jen.Qual(bucketPath, "MustZone").Call(jen.Lit(w.Zone)))
	}
	if w.OwnStarts {
		add("OwnStarts", jen.True())
	}
	if w.OwnZone {
		add("OwnZone", jen.True())
	}
	return jen.Values(fields...)
}

// unitName is the constant of package bucket for a unit.
func unitName(u window.Unit) string {
	if u == window.FirstUse {
		return "FirstUse"
	}
	return string(u[0]-'a'+'A') + string(u[1:])
}

// clock is a time of the day as a time.Duration.
func clock(at time.Duration) jen.Code {
	hours, minutes := int(at/time.Hour), int(at%time.Hour/time.Minute)
	of := func(n int, unit string) *jen.Statement { return jen.Lit(n).Op("*").Qual("time", unit) }
	switch {
	case minutes == 0:
		return of(hours, "Hour")
	case hours == 0:
		return of(minutes, "Minute")
	}
	return of(hours, "Hour").Op("+").Add(of(minutes, "Minute"))
}

// capacityAlone reports whether an override of l is its capacity, without refill and burst.
func capacityAlone(l *model.Limit) bool { return l.Window != nil || l.InFlight }
