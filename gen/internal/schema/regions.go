package schema

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/gen/internal/goname"
	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/number"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

func regionsKeys() []string { return []string{"names", "floor", "window", "drift", "horizon"} }

const (
	minRegions    = 2
	maxRegions    = 32
	maxRegionName = 32
	maxFloor      = 50  // percent
	maxDrift      = 100 // percent
	maxHorizon    = 100 // windows

	defaultFloor  = 5
	defaultWindow = 10 * time.Second
)

// Values that Regions have unless they are given. Generated code leaves them out, and runtime/store has the
// same.
const (
	DefaultDrift   = 15 // percent
	DefaultHorizon = 2  // windows
)

// windows are the values of window.
func windows() span { return span{time.Second, time.Hour, time.Second, "seconds"} }

// Keeps returns the tokens of a limit that every region keeps: Floor percent, and at least 1 if there are
// enough for all.
func (s *Regions) Keeps(capacity int64) int64 {
	return min(capacity/int64(len(s.Names)), max(1, capacity*s.Floor/100))
}

// regions reads the regions that have the limits of global resources in common.
func (r regionReader) regions(e entry) *Regions {
	at := r.pos(e.key)
	s := &Regions{Floor: defaultFloor, Window: defaultWindow, Drift: DefaultDrift, Horizon: DefaultHorizon,
		Pos:      at,
		NamesPos: at, FloorPos: at, WindowPos: at}
	f, ok := r.fields(e.value, "regions", "a mapping, such as {names: [eu-central-1, us-east-1]}", regionsKeys(),
		nil)
	if !ok {
		return s
	}
	if e, ok := r.needAt(f, at, "names", "write at least two, such as names: [eu-central-1, us-east-1]"); ok {
		s.NamesPos = r.pos(e.key)
		s.Names = r.regionNames(e)
	}
	if e, ok := f.get("floor"); ok {
		s.FloorPos = r.pos(e.key)
		s.Floor = r.floor(e)
	}
	if e, ok := f.get("window"); ok {
		s.WindowPos = r.pos(e.key)
		s.Window = r.duration(e, "window of regions", windows()).d
	}
	if e, ok := f.get("drift"); ok {
		s.Drift = r.count(e, "drift of regions", maxDrift).n
	}
	if e, ok := f.get("horizon"); ok {
		s.Horizon = r.count(e, "horizon of regions", maxHorizon).n
	}
	return s
}

// regionNames returns the names of the regions, sorted: all regions compute the same from them.
func (r regionReader) regionNames(e entry) []string {
	var names []string
	for _, it := range r.names(e.value, "names of regions", "a list, such as [eu-central-1, us-east-1]") {
		r.regionName(r.pos(it.value), it.name)
		names = append(names, it.name)
	}
	switch n := len(e.value.Content); {
	case e.value.Kind != yaml.SequenceNode:
	case n < minRegions:
		r.add(r.pos(e.value), rules.RegionCount,
			"names of regions has %d: write at least %d, or remove regions and global, as one region has its "+
				"limits for itself",
			n, minRegions)
	case n > maxRegions:
		r.add(r.pos(e.value), rules.RegionCount, "names of regions has %d: it can have at most %d", n, maxRegions)
	}
	slices.Sort(names)
	return names
}

// regionName checks the name of a region: [a-z0-9][a-z0-9-]{0,31}.
func (r regionReader) regionName(pos Pos, name string) {
	switch what := "region " + hint.Quote(name); {
	case !goname.Made(name, goname.Lowers+goname.Digits, goname.Lowers+goname.Digits+"-"):
		r.add(pos, rules.BadName, "%s has a bad name: it must start with a-z or 0-9 and go on with these or "+
			"-", what)
	case len(name) > maxRegionName:
		r.add(pos, rules.BadName, "%s has a name of %d letters: it can have at most %d", what, len(name),
			maxRegionName)
	}
}

// floor reads the percentage that every region keeps. It is the only number that can be 0.
func (r regionReader) floor(e entry) int64 {
	text, ok := r.scalar(e.value, "floor of regions", "digits, such as 5")
	if !ok {
		return 0
	}
	switch n, why := number.Parse(text, 0, maxFloor); {
	case why != "":
		r.add(r.pos(e.value), rules.BadNumber, "floor of regions: %s %s", hint.Quote(text), why)
	case n > maxFloor:
		r.add(r.pos(e.value), rules.NumberRange, "floor of regions is %s: it can be at most %d, percent of a limit",
			hint.Short(text), maxFloor)
	default:
		return n
	}
	return 0
}

// readGlobal reads whether all regions have the limits in common. They cannot have windows in common, nor
// calls in flight.
func (r *resourceReader) readGlobal(f fields) {
	on, pos, ok := r.flag(f, "global", r.what, r.res.Pos)
	r.res.Global, r.res.GlobalPos = on, pos
	if _, written := f.get("global"); !written {
		ok = !f.merged && !slices.Contains(f.meant, "global")
	}
	r.globalUnknown = r.globalUnknown || !ok
	for i, l := range r.limits {
		if l.windowed && on {
			r.add(r.res.Limits[i].Pos, rules.WindowGlobal, "%s has windows, and %s is global: regions divide what "+
				"refills, and no window; move the limit to a resource without global, or write every", l.what, r.what)
		}
		if l.inFlight && on {
			r.add(r.res.Limits[i].Pos, rules.InFlightGlobal, "%s has in_flight, and %s is global: a region cannot "+
				"give "+
				"back what another took; move the limit to a resource without global, where each region has a limit of "+
				"its own", l.what, r.what)
		}
	}
}

// checkGlobal checks regions against global resources. It reports nothing if an earlier mistake hides the
// intent.
func (r schemaReader) checkGlobal(f fields, s *Schema) {
	meant := f.merged || slices.Contains(f.meant, "regions")
	shared := r.globalUnknown
	for _, res := range s.Resources {
		shared = shared || res.Global
		if res.Global && slices.Contains(s.Stores, StoreRedis) {
			r.add(res.GlobalPos, rules.GlobalStore, "resource %s is global, and stores has redis, which keeps no "+
				"limits for several regions, so that New would fail: write stores: [dynamodb], move the resource to "+
				"a limits.yaml of its own, or remove global", hint.Quote(res.Name))
		}
		if res.Global && s.Regions == nil && !meant {
			r.add(res.GlobalPos, rules.NoRegions, "resource %s is global, and regions is missing: "+
				"list them, as in regions: {names: [eu-central-1, us-east-1]}, or remove global", hint.Quote(res.Name))
		}
	}
	if s.Regions != nil && len(s.Resources) > 0 && !shared {
		r.add(s.Regions.Pos, rules.NothingGlobal, "regions have no limits in common, as no resource is global: "+
			"write global: true into those whose limits are for all regions together, or remove regions")
	}
}
