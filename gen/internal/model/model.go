// Package model is the input of the code's writers: a schema with every Go name and every attribute decided,
// once.
//
//	gpt-4:  Resource{Const: "GPT4", Definition: "gpt4", Cost: "GPT4Cost", ..}
//	  rpm:    Limit{Field: "RPM", Const: "GPT4RPM", Attrs: {Tokens: "b_rpm_tk", ..}}
//
// Later phases make up no names.
package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/gen/internal/declared"
	"github.com/sluice-go/sluice/gen/internal/goname"
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/window"
)

// Package is a generated package.
type Package struct {
	Name      string // its package clause
	Source    string // file name of the schema, without folder
	Owner     string // of the tables
	Revision  int64
	DynamoDB  bool        // whether to write code for this store
	Redis     bool        // whether to write code for this store
	Kinds     []*Kind     // in schema order
	Plans     *Plans      // of the numbers; nil if there are none
	Resources []*Resource // in schema order
}

// Stores returns the names of the stores that code is written for.
func (p *Package) Stores() []string {
	var names []string
	if p.DynamoDB {
		names = append(names, "DynamoDB")
	}
	if p.Redis {
		names = append(names, "Redis")
	}
	return names
}

// Kind is a kind of entity.
type Kind struct {
	Name, Doc string
	Prefix    string // of its stored ids: user-
	Type      string // User
	ByID      string // UserByID, for kinds that have a parent
	Const     string // its index, kindUser
	Receiver  string // u
	Parent    *Kind  // nil for none
	Markers   []string

	ParentBy []string // resources whose calls charge the parent too when they charge this kind or one below
	AboveBy  []string // resources whose calls then charge an ancestor of the parent, but not the parent
	PlanBy   []string // resources whose calls then need the parent for the plan of it, or of an ancestor
}

// Resource is a resource with its Go names and keys.
type Resource struct {
	Name, Doc string
	SortKey   string // SK of its buckets
	IndexKey  string // GSI2PK of its buckets
	File      string // what its files' names start with

	Const      string // GPT4, the Limiter's field too
	Definition string // gpt4, the private type, and the private method of the kinds it charges
	Resource   string // GPT4Resource
	Acquirer   string
	Lease      string
	Entity     string
	Cost       string
	Override   string // GPT4Limits
	LimitType  string // GPT4Limit
	Bucket     string
	ToVector   string   // gpt4Vector
	FromVector string   // gpt4Cost
	ToLimits   string   // gpt4LimitsVector
	FromLimits string   // gpt4LimitsOf
	Usage      string   // GPT4Usage; "" if it has no usage
	Windows    string   // gpt4Windows: the calendars of its limits; "" if none has windows
	Holds      bool     // its buckets count what open leases hold of a limit
	Scripts    []string // gpt4Script1: for chains of one bucket, of two, up to the longest that a call can have
	Test       string
	Benchmark  string

	Create, Normal, Retry, Adjust, Reshape Path

	OnPlans bool // plans change its numbers
	// ModelConfig, its overrides with those of plans and names; "" if it has neither
	Config string

	Template *Template // nil if it is none

	Currency string   // of its limits of money; "" if it has none
	Consumes []*Usage // what its calls consume

	Limits  []*Limit
	Removed []Attrs
	Width   int // of its vectors, which in a variant have more limits
	Charged []*Charged

	Variants []*Variant // for each set of limits that kinds have; nil if every kind has all of them

	Cascade       string // runtime's constant: CascadeAtomic
	OnUnavailable string // runtime's constant: Allow
	LazySettle    bool
	Prefetch      time.Duration // 0 for none
	Shadow        bool
	Regions       *schema.Regions // those that have its limits in common; nil if each table has its own
}

// Path is the names of one write path: of its method, and of the constants that hold its text.
type Path struct{ Method, Update, Condition string }

// Limit is one limit of a resource.
type Limit struct {
	Name, Doc string
	Index     int    // in the resource's vectors
	Field     string // RPM
	Const     string // GPT4RPM
	Attrs     Attrs
	Window    *window.Window // nil if it has none
	InFlight  bool           // its tokens come back as calls end
	Currency  string         // its tokens are money; "" for tokens
	Counts    []*Usage       // the usages that are added up for it
	AllNames  bool           // of a template: all names together have it
}

// Usage is something that calls consume.
type Usage struct {
	Name, Doc string
	Field     string // Input
	Price     int64  // of one, in pico-units of the currency; 0 for none
}

// Holds reports whether buckets count what open leases hold of l.
func (l *Limit) Holds() bool { return l.Attrs.Epoch != "" }

// Attrs is a limit's name and those of its attributes in a bucket: six, and Ends of a limit with windows.
// Cells and Epoch are of one that counts what open leases hold.
type Attrs struct {
	Limit                                             string
	Tokens, Capacity, Burst, Refill, Period, Consumed string

	Ends    string    // the end of the open window; "" for a limit without windows
	Cells   [2]string // what open leases hold, by the parity of the epoch; "" for a limit that counts no holds
	Epoch   string    // the lowest epoch that was not swept; "" as with Cells
	Carried string    // the part of Consumed that was there before the bucket was made of per-limit items
}

// All returns the attributes in the order of docs/design.md, "Table".
func (a Attrs) All() []string {
	all := []string{a.Tokens, a.Capacity, a.Burst, a.Refill, a.Period, a.Consumed}
	if a.Ends != "" {
		all = append(all, a.Ends)
	}
	if a.Epoch != "" {
		all = append(all, a.Cells[0], a.Cells[1], a.Epoch)
	}
	return all
}

// Charged is a kind that has a bucket of a resource. Numbers and PerCall are in the order of the resource's
// limits. Of a template it has all limits, and Buckets has those of each bucket.
type Charged struct {
	Kind     *Kind
	AllNames bool   // it is a bucket of all names together
	Index    int    // in Spec.Kinds
	Const    string // of Index: kindUser, or modelAllUser for a bucket of all names

	Buckets []*Charged // what entities have; of a template, those by name first

	Along   []*Kind // ancestors whose buckets a call charges too, nearest first
	Numbers []schema.Numbers
	PerCall []int64
	Plans   [][]schema.Numbers // what plans restate, by plan, as in schema.Charged
	ToPlan  int                // parents from Kind to that whose plans change the numbers; -1 if none do
}

// Of returns the model of s, which must have no problems. source is the name of the schema's file.
func Of(s *schema.Schema, source string) *Package {
	p := &Package{
		Name: s.Package, Source: source, Owner: s.Owner, Revision: s.Revision,
		DynamoDB: slices.Contains(s.Stores, schema.StoreDynamoDB), Redis: slices.Contains(s.Stores,
			schema.StoreRedis),
	}
	for _, k := range s.Kinds {
		p.Kinds = append(p.Kinds, &Kind{
			Name:     k.Name,
			Doc:      k.Doc,
			Prefix:   k.Name + "-",
			Type:     k.GoName,
			Const:    "kind" + k.GoName,
			Receiver: strings.ToLower(k.GoName[:1]),
		})
	}
	for i, k := range s.Kinds {
		if k.Parent >= 0 {
			p.Kinds[i].Parent, p.Kinds[i].ByID = p.Kinds[k.Parent], k.GoName+"ByID"
		}
	}
	p.Plans = plansOf(s, p.Kinds)
	for _, r := range s.Resources {
		m := ResourceOf(r)
		m.Cascade, m.OnUnavailable = "Cascade"+titled(r.Cascade), titled(r.OnUnavailable)
		m.LazySettle, m.Shadow, m.Prefetch = r.Settle == schema.SettleLazy, r.Shadow, r.Prefetch
		if r.Global {
			m.Regions = s.Regions
		}
		for _, c := range r.Charged {
			kind := p.Kinds[c.Kind]
			kind.Markers = append(kind.Markers, m.Definition)
			m.Charged = append(m.Charged, &Charged{Kind: kind, Numbers: c.Limits, PerCall: c.PerCall, Plans: c.Plans})
		}
		if r.Cascade != schema.CascadeNone {
			cascade(m)
		}
		for _, c := range m.Charged {
			c.ToPlan = -1
			if r.OnPlans {
				c.ToPlan = p.Plans.from(c.Kind)
			}
		}
		if r.OnPlans {
			p.Plans.need(m)
		}
		addBuckets(m, s, r, p)
		for _, v := range m.Variants {
			v.name(m.buckets())
		}
		for chain := range longest(m) {
			m.Scripts = append(m.Scripts, fmt.Sprintf("%sScript%d", m.Definition, chain+1))
		}
		p.Resources = append(p.Resources, m)
	}
	return p
}

// cascade sets Along of a resource's kinds, and ParentBy and AboveBy of these kinds and of those between
// them.
func cascade(m *Resource) {
	has := func(k *Kind) bool {
		return slices.ContainsFunc(m.Charged, func(c *Charged) bool { return c.Kind == k })
	}
	add := func(to *[]string) {
		if !slices.Contains(*to, m.Name) {
			*to = append(*to, m.Name)
		}
	}
	for _, c := range m.Charged {
		for k := c.Kind; k.Parent != nil; k = k.Parent {
			if has(k.Parent) {
				c.Along = append(c.Along, k.Parent)
			}
		}
		if len(c.Along) == 0 {
			continue
		}
		top := c.Along[len(c.Along)-1]
		for k := c.Kind; k != top; k = k.Parent {
			if has(k.Parent) {
				add(&k.ParentBy)
			} else {
				add(&k.AboveBy)
			}
		}
	}
}

// ResourceOf returns the model of r without its kinds, cascade and policy. That is enough for its
// expressions. Its variants have no names.
func ResourceOf(r *schema.Resource) *Resource {
	private := goname.Unexported(r.GoName)
	m := &Resource{
		Name:       r.Name,
		Doc:        r.Doc,
		SortKey:    "#BUCKET#" + r.Name,
		IndexKey:   "RESOURCE#" + r.Name,
		File:       strings.ToLower(r.GoName),
		Const:      r.GoName,
		Definition: private,
		Resource:   r.GoName + "Resource",
		Acquirer:   r.GoName + "Acquirer",
		Lease:      r.GoName + "Lease",
		Entity:     r.GoName + "Entity",
		Cost:       r.GoName + "Cost",
		Override:   r.GoName + "Limits",
		LimitType:  r.GoName + "Limit",
		Bucket:     r.GoName + "Bucket",
		ToVector:   private + "Vector",
		FromVector: private + "Cost",
		ToLimits:   private + "LimitsVector",
		FromLimits: private + "LimitsOf",
		Test:       "Test" + r.GoName,
		Benchmark:  "Benchmark" + r.GoName,
		Width:      len(r.Limits),
		Holds:      r.Holds(),
		OnPlans:    r.OnPlans,
		Currency:   r.Money(),
	}
	m.namePaths(private)
	m.nameSome(r, private)
	for _, u := range r.Usage {
		m.Consumes = append(m.Consumes, &Usage{Name: u.Name, Doc: u.Doc, Field: u.GoName, Price: u.Price})
	}
	for i, l := range r.Limits {
		limit := &Limit{
			Name: l.Name, Doc: l.Doc, Index: i, Field: l.GoName, Const: r.GoName + l.GoName,
			Attrs: attrs(l.Name, l.Window != nil, l.Holds()), Window: l.Window, InFlight: l.InFlight,
			Currency: l.Currency, AllNames: l.AllNames,
		}
		for _, name := range l.Counts {
			at := slices.IndexFunc(m.Consumes, func(u *Usage) bool { return u.Name == name })
			if at >= 0 { // a schema with problems may count a usage that there is not
				limit.Counts = append(limit.Counts, m.Consumes[at])
			}
		}
		m.Limits = append(m.Limits, limit)
	}
	// A removed limit may have had windows or holds, and REMOVE of none does nothing. Every reshape that adds a
	// limit of its name would be refused by what is left behind.
	for _, name := range r.Removed {
		m.Removed = append(m.Removed, attrs(name, true, true))
	}
	var buckets []schema.Charged
	for _, c := range r.Charged {
		buckets = append(buckets, r.Buckets(c)...)
	}
	m.Variants = variants(m, buckets)
	return m
}

// nameSome names what only some resources have. private begins unexported names.
func (r *Resource) nameSome(from *schema.Resource, private string) {
	if from.Windows() {
		r.Windows = private + declared.WindowsSuffix
	}
	r.Template = templateOf(from)
	if from.OnPlans || from.Template {
		r.Config = from.GoName + declared.ConfigSuffix
	}
	if from.Usage != nil {
		r.Usage = from.GoName + declared.UsageSuffix
	}
}

// namePaths names r's write paths, whose constants begin with private.
func (r *Resource) namePaths(private string) {
	for method, p := range map[string]*Path{
		"Create": &r.Create, "Normal": &r.Normal, "Retry": &r.Retry, "Adjust": &r.Adjust, "Reshape": &r.Reshape,
	} {
		*p = Path{Method: method, Update: private + method + "Update", Condition: private + method + "Condition"}
	}
}

// titled returns a word of limits.yaml as it is in the names of runtime's constants.
func titled(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// attrs names a limit's attributes: those of a limit with windows, with holds, with both or with neither.
func attrs(limit string, windows, holds bool) Attrs {
	field := func(f string) string { return "b_" + limit + "_" + f }
	a := Attrs{
		Limit:    limit,
		Tokens:   field("tk"),
		Capacity: field("cp"),
		Burst:    field("bx"),
		Refill:   field("ra"),
		Period:   field("rp"),
		Consumed: field("tc"),
		Carried:  "m_" + limit,
	}
	if windows {
		a.Ends = field("we")
	}
	if holds {
		a.Cells, a.Epoch = [2]string{field("h0"), field("h1")}, field("e")
	}
	return a
}
