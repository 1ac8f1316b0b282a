package emit

import (
	"fmt"
	"time"

	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/words"
)

// specRegions is the Regions of a Spec.
func specRegions(r *schema.Regions) jen.Code {
	names := each(r.Names, func(_ int, name string) jen.Code { return jen.Lit(name) })
	fields := []jen.Code{
		pair("Names", jen.Index().String().Add(braces(names, few(len(names), len("\t\t\tNames:  []string{},"),
			len(`"", `), r.Names)))),
		pair("Floor", num(r.Floor)),
		pair("Window", seconds(r.Window)),
	}
	if r.Drift != schema.DefaultDrift {
		fields = append(fields, pair("Drift", num(r.Drift)))
	}
	if r.Horizon != schema.DefaultHorizon {
		fields = append(fields, pair("Horizon", num(r.Horizon)))
	}
	return jen.Op("&").Qual(storePath, "Regions").Add(lines(fields...))
}

// seconds is a duration of whole seconds.
func seconds(d time.Duration) jen.Code {
	unit, name := time.Second, "Second"
	switch {
	case d%time.Hour == 0:
		unit, name = time.Hour, "Hour"
	case d%time.Minute == 0:
		unit, name = time.Minute, "Minute"
	}
	if d == unit {
		return jen.Qual("time", name)
	}
	return num(int64(d/unit)).Op("*").Qual("time", name)
}

// regionsNote is a sentence on the regions that have r's limits in common, "" if there are none.
func regionsNote(r *model.Resource) string {
	if r.Regions == nil {
		return ""
	}
	return fmt.Sprintf(" %s have its limits in common: each keeps %s, and gets a part of the rest from "+
		"regional sync.",
		regionNames(r.Regions), words.Kept(r.Regions))
}

// regionNames lists the regions, or says how many they are.
func regionNames(r *schema.Regions) string {
	if n := len(r.Names); n > manyResources {
		return fmt.Sprintf("%d regions", n)
	}
	return "Regions " + words.List(r.Names, "and")
}

// ifGlobal returns text if regions have r's limits in common, else other.
func ifGlobal(r *model.Resource, text, other string) string {
	if r.Regions != nil {
		return text
	}
	return other
}
