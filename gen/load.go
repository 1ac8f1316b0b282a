package gen

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/sluice-go/sluice/gen/internal/breaking"
	"github.com/sluice-go/sluice/gen/internal/declared"
	yamlfile "github.com/sluice-go/sluice/gen/internal/document"
	"github.com/sluice-go/sluice/gen/internal/expr"
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/internal/tool/textfile"
)

// Schema is the content of a limits.yaml, for commands that read and write tables. Lists are in the file's
// order.
type Schema struct {
	Owner     string   // of the tables
	Revision  int64    // of the numbers
	Stores    []string // StoreDynamoDB, StoreRedis or both
	Kinds     []Kind
	Plans     *Plans // of the numbers; nil if there are none
	Resources []Resource
}

// Plans are sets of numbers that entities of one kind are put on. Those below follow.
type Plans struct {
	Kind  int // index into Schema.Kinds
	Names []string
}

// Stores that code is generated for, as Schema.Stores names them.
const (
	StoreDynamoDB = schema.StoreDynamoDB
	StoreRedis    = schema.StoreRedis
)

// Kind is a kind of entity: its ids are stored as <Name>-<id>.
type Kind struct {
	Name   string
	Parent int // index into Schema.Kinds, -1 for none; following Parent always ends
}

// Resource is something that is limited.
type Resource struct {
	Name    string
	Limits  []string  // their names
	Windows []*Window // one for each of Limits, nil for one without windows; nil if none has any
	Held    []bool    // one for each of Limits: buckets count what open leases hold of it; nil if of none
	Units   []string  // one for each of Limits: the currency of one of money, "" for others; nil if none is
	Removed []string  // names of earlier limits, which buckets may still hold
	Usage   []Usage   // what a call consumes; nil if limits.yaml does not say
	Charged []Charged // the kinds that have a bucket, each once
	OnPlans bool      // Schema.Plans change its numbers
	Names   bool      // a catalog has names of it: it is a template
	// one for each of Limits: all names of a template together have it; nil if it is none
	AllNames []bool
	Priced   bool     // usage has prices, which a catalog may change
	Cascade  string   // atomic, compensated or none
	Shadow   bool     // its calls are never denied
	Regions  *Regions // those that have its limits in common; nil if each table has its own

	OnUnavailable string // allow, deny or local
	LazySettle    bool
	Prefetch      time.Duration // how long before its use a process may take a token; 0 for none
}

// Usage is something that a call on a resource consumes, such as input tokens.
type Usage struct {
	Name  string
	Price int64 // of one unit in the resource's currency, in pico-units; 0 for none

	Counts []int // indexes into Resource.Limits, of those of tokens that it is added up for
}

// Regions have the limits of a resource in common.
type Regions struct {
	Names  []string      // sorted
	Floor  int64         // the part of a limit that every region keeps, in percent
	Window time.Duration // between two runs of sync
	// percent by which demand may differ from a quota before that is written
	Drift   int64
	Horizon int64 // windows for which a balance has to last, or its quota is written
}

// Charged is a kind that has a bucket of a resource, and that bucket's numbers.
type Charged struct {
	Kind    int       // index into Schema.Kinds
	Limits  []Numbers // one for each of Resource.Limits
	PerCall []int64   // one for each of Resource.Limits: what a cost of 0 stands for, as Limits count
	// what plans restate, by plan: one for each of Resource.Limits, zero for one that the plan does not restate;
	// nil for a plan that restates nothing. It is nil if the resource has no plans
	Plans [][]Numbers
}

// Numbers are the parameters of a token bucket. Capacity, Burst and Refill are whole tokens, or nano-units if
// Currency is set; Stored returns what buckets store for them. Refill tokens are added each Period, which is
// whole milliseconds. All are positive. Of a limit with windows, Refill is 0, and Period is their length,
// which is nominal for those of the calendar. Of one in flight, Refill is 0, and Period a millisecond.
type Numbers = schema.Numbers

// Load reads and checks the limits.yaml at path. The error is a Problems if the file has mistakes.
func Load(path string) (*Schema, error) {
	from, err := sound(path)
	if err != nil {
		return nil, err
	}
	s := &Schema{Owner: from.Owner, Revision: from.Revision, Stores: from.Stores}
	for _, k := range from.Kinds {
		s.Kinds = append(s.Kinds, Kind{Name: k.Name, Parent: k.Parent})
	}
	if p := from.Plans; p != nil {
		s.Plans = &Plans{Kind: p.Kind}
		for _, plan := range p.Names {
			s.Plans.Names = append(s.Plans.Names, plan.Name)
		}
	}
	for _, r := range from.Resources {
		own := Resource{
			Name: r.Name, Removed: r.Removed, Cascade: r.Cascade, Shadow: r.Shadow,
			OnUnavailable: r.OnUnavailable, LazySettle: r.Settle == schema.SettleLazy,
			Prefetch: r.Prefetch, OnPlans: r.OnPlans, Names: r.Template, Priced: r.Priced(),
		}
		if g := from.Regions; r.Global {
			own.Regions = &Regions{Names: g.Names, Floor: g.Floor, Window: g.Window, Drift: g.Drift,
				Horizon: g.Horizon}
		}
		for _, l := range r.Limits {
			own.Limits = append(own.Limits, l.Name)
			if r.Template {
				own.AllNames = append(own.AllNames, l.AllNames)
			}
			if r.Windows() {
				own.Windows = append(own.Windows, l.Window)
			}
			if r.Money() != "" {
				own.Units = append(own.Units, l.Currency)
			}
			if r.Holds() {
				own.Held = append(own.Held, l.Holds())
			}
		}
		for _, u := range r.Usage {
			own.Usage = append(own.Usage, usageOf(u, r.Limits))
		}
		for _, c := range r.Charged {
			own.Charged = append(own.Charged, Charged{Kind: c.Kind, Limits: c.Limits, PerCall: c.PerCall,
				Plans: c.Plans})
		}
		s.Resources = append(s.Resources, own)
	}
	return s, nil
}

// usageOf returns u, a usage of a resource with limits.
func usageOf(u *schema.Usage, limits []*schema.Limit) Usage {
	own := Usage{Name: u.Name, Price: u.Price}
	for i, l := range limits {
		if slices.Contains(l.Counts, u.Name) {
			own.Counts = append(own.Counts, i)
		}
	}
	return own
}

// CheckYAML returns the mistakes in the YAML of a file, with their places: those of its syntax, and uses of
// what limits.yaml does without, such as anchors.
func CheckYAML(file string, text []byte) Problems {
	_, problems := yamlfile.Parse(file, text)
	return problems
}

// sound returns the schema at path. The error is a Problems if the schema has mistakes.
func sound(path string) (*schema.Schema, error) {
	s, problems, err := read(path)
	switch {
	case err != nil:
		return nil, err
	case len(problems) > 0:
		problems.Sort()
		return nil, problems
	}
	return s, nil
}

// read returns the schema at path and its problems, not sorted. The schema is complete only if there are
// none.
func read(path string) (*schema.Schema, Problems, error) {
	src, err := textfile.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("read schema: %w (sluice init writes one)", err)
	case errors.Is(err, syscall.EISDIR):
		return nil, nil, fmt.Errorf("read schema: %s is a folder: name the file in it, such as %s", path,
			filepath.Join(path, "limits.yaml"))
	case err != nil:
		return nil, nil, fmt.Errorf("read schema: %w", err)
	}
	s, problems := schema.Read(path, src)
	return s, slices.Concat(problems, declared.Check(s), expr.Check(s), breaking.Check(s)), nil
}
