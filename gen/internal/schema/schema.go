// Package schema reads limits.yaml: its text goes in, a checked Schema or the list of all its mistakes comes
// out.
//
//	limits.yaml -> yaml.Node -> Schema        (read.go; then kinds.go, resources.go, limits.go)
//	                         -> Problems      (rules.go names every rule a Problem can carry)
//
// It resolves all that later phases need: Go names, defaults, and each kind's own numbers.
package schema

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/gen/internal/window"
)

// Schema is the content of a limits.yaml, in the file's order, with every default filled in. It is complete
// and consistent only if Read returned no Problems.
type Schema struct {
	Version     int    // of the file format: 1
	Owner       string // of the tables that generated code may use: acme
	Revision    int64  // of the numbers: 1 to 90,000
	RevisionPos Pos    // where Revision is written
	Package     string // name of the generated package
	Out         string // its folder: a slash-separated path, relative to the folder of limits.yaml

	Stores     []string // stores that code is generated for: StoreDynamoDB, StoreRedis or both
	Regions    *Regions // those that have the limits of global resources in common; nil if none is global
	Kinds      []*Kind
	Plans      *Plans // of the numbers; nil if there are none
	Resources  []*Resource
	Exceptions []Exception // of except and ignore_only in breaking

	GoPos, KindsPos, ResourcesPos Pos // of the keys go, entities and resources
	StoresPos                     Pos // of key stores; GoPos where that is left out
	OutPos                        Pos // of Out; GoPos where that is left out
}

// Regions have the limits of global resources in common. Each has a table of its own.
type Regions struct {
	Names  []string      // sorted
	Floor  int64         // the part of a limit that every region keeps, in percent; 0 to 50
	Window time.Duration // between two runs of sync; whole seconds
	// percent by which demand may differ from a quota before that is written, 1 to 100
	Drift   int64
	Horizon int64 // windows for which a balance has to last, or its quota is written, 1 to 100
	Pos     Pos   // of key regions

	NamesPos, FloorPos, WindowPos Pos // of these keys; Pos where one is left out
}

// Kind is a kind of entity, such as user.
type Kind struct {
	Name   string // as in "<kind>-<id>"
	GoName string // of its struct: User
	Doc    string // "" if there is none; see Limit.Doc
	Parent int    // index into Schema.Kinds, -1 for none; following Parent always ends
	Pos    Pos    // of its key in limits.yaml

	ParentPos Pos // of key parent; Pos where that is left out
}

// Resource is a target of calls under limits, such as gpt-4.
type Resource struct {
	Name    string
	GoName  string // gpt-4: GPT4; ASCII letters and digits
	Doc     string // "" if there is none; see Limit.Doc
	Limits  []*Limit
	Usage   []*Usage // what a call consumes
	Removed []string // names of earlier limits, which buckets may still hold; none of them is in Limits
	Charged []Charged
	OnPlans bool // Schema.Plans change its numbers
	// Template says that it has a name for each entry of a catalog: names: catalog.
	Template bool
	Pos      Pos // of its key in limits.yaml

	Global        bool   // Schema.Regions have its limits in common
	Cascade       string // atomic, compensated or none
	OnUnavailable string // allow, deny or local
	Settle        string // now or lazy
	Shadow        bool   // its calls are never denied
	// Prefetch is how long before its use a process may take a token; 0 if each call asks the store.
	Prefetch time.Duration

	// of these keys; Pos where one is left out
	GlobalPos, CascadePos, OnUnavailablePos, SettlePos, PrefetchPos, ShadowPos, PlansPos, NamesPos Pos
}

// Windows reports whether a limit of r has windows.
func (r *Resource) Windows() bool {
	return slices.ContainsFunc(r.Limits, func(l *Limit) bool { return l.Window != nil })
}

// Holds reports whether buckets of r count what open leases hold of a limit.
func (r *Resource) Holds() bool { return slices.ContainsFunc(r.Limits, (*Limit).Holds) }

// Limit is one limit of a resource, such as rpm, with the numbers that its kinds start from.
type Limit struct {
	Name   string
	GoName string // rpm: RPM; ASCII letters and digits
	// trimmed text of one or more lines joined by '\n', no control characters but tabs; "" for none
	Doc string
	Numbers
	Window   *window.Window // nil if it has none; Period is else the (nominal) length of its windows
	InFlight bool           // tokens come back as calls end
	Release  bool           // on_crash: release; tokens that a dead process had reserved in a window come back
	Refills  bool           // continuous refill is meant: see review.Notes
	AllNames bool           // of a template: all names together have it, not each for itself
	PerCall  int64          // what a cost of 0 stands for, in tokens or nano-units; 0 for none
	Counts   []string       // names of the usages that are added up for it; nil for none, and for money
	Pos      Pos            // of its key in limits.yaml
}

// Holds reports whether buckets count what open leases hold of l.
func (l *Limit) Holds() bool { return l.InFlight || l.Release }

// Numbers are the parameters of a token bucket, in whole tokens, or nano-units of money. All are within the
// bounds of docs/design.md, "Arithmetic", and positive but for the Refill of a limit that does not refill,
// which is 0. The zero Numbers are those of a limit that a kind does not have.
type Numbers struct {
	Capacity int64
	Burst    int64 // at least Capacity; equal to it for a limit that does not refill
	Refill   int64 // tokens added each Period

	// of a limit with windows, their length: nominal, but for those from the first use; of one in flight, a
	// millisecond, as buckets store it
	Period   time.Duration
	Currency string // of a limit of money; "" for tokens
}

// Stored returns a number of n as buckets store it: money in nano-units as it is, and tokens as millitokens.
func (n Numbers) Stored(number int64) int64 {
	const milli = 1000
	if n.Currency != "" {
		return number
	}
	return number * milli
}

// Windowed reports whether n are of a limit with windows.
func (n Numbers) Windowed() bool { return n.Refill == 0 && n.Period > inFlightPeriod }

// InFlight reports whether n are of a limit that is in flight.
func (n Numbers) InFlight() bool { return n.Refill == 0 && n.Period == inFlightPeriod }

// Absent reports whether n are of a limit that a kind does not have.
func (n Numbers) Absent() bool { return n == Numbers{} }

// Charged is a kind of entity that has a bucket of a resource, with that kind's own numbers.
type Charged struct {
	Kind     int  // index into Schema.Kinds
	AllNames bool // of a bucket that Buckets returns: it is that of all names together

	Limits []Numbers // one for each of Resource.Limits; at least one is not zero
	// one for each of Resource.Limits; see Limit.PerCall. For a limit that the kind does not have, it is that of
	// the nearest kind that calls charge too and that has the limit
	PerCall []int64
	// what plans restate, by plan: one for each of Resource.Limits, zero for one that the plan does not restate;
	// nil for a plan that restates nothing. It is nil if the resource has no plans
	Plans [][]Numbers
	Pos   Pos // of its key in the resource's entities; the resource's own where that is left out
}
