package load

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// Prefix is what the ids of a load's entities start with: user-load-0, project-load-7. No others are charged.
const Prefix = "load-"

// Plan is which calls are made: on what, by whom, for how much. The nth call of a Plan is always the same.
type Plan struct {
	Specs    []*store.Spec
	Mix      []Portion
	Entities int // of each kind that calls
	Children int // how many entities have the same parent
	Keys     Keys
	Seed     uint64
}

// Portion is the part of the calls that one kind of entity makes on one resource.
type Portion struct {
	Resource int // index into Plan.Specs
	Kind     int // index into its Kinds: one that has a bucket
	Weight   float64
	Cost     []Range // by limit, whole tokens; 0 is the limit's per_call
	Settle   []Range // what calls turn out to have cost; nil where they are not settled
}

// Range is a range that costs are drawn from, evenly.
type Range struct{ Least, Most int64 }

// AsAcquired is what a Settle has for a limit that turns out to cost what was acquired.
var AsAcquired = Range{-1, -1}

// Keys is how often which entity calls. If it is zero, all entities call equally often.
type Keys struct {
	Hot        int     // so many entities make HotPortion of the calls
	HotPortion float64 // 0 to 1
	Zipf       float64 // above 1: the nth entity calls in proportion to 1/n^Zipf
}

// Call is one call.
type Call struct {
	Portion  int
	Resource int // of the portion
	Index    int // of the entity
	Entity   *Entity
	Cost     []int64
	Settle   []int64 // nil where it is not settled
}

// Entity is the entity that calls, with its parents.
type Entity struct{ links []store.Link }

// Chain implements store.Entity.
func (e *Entity) Chain(dst []store.Link) []store.Link { return append(dst, e.links...) }

// entity returns the i-th entity of a kind. Its parent is one of as many as it takes for each to have so many
// children.
func (p *Plan) entity(kinds []store.Kind, kind, i int) *Entity {
	e := &Entity{}
	for n := p.Entities; kind != store.NoParent; kind = kinds[kind].Parent {
		e.links = append(e.links, store.Link{Kind: kind, ID: Prefix + strconv.Itoa(i)})
		n = (n + p.Children - 1) / p.Children
		i %= n
	}
	return e
}

// Charged returns the entities, as stored, that a call charges, its own first.
func (p *Plan) Charged(portion, index int) (stored []string) {
	spec, kind := p.spec(portion), p.Mix[portion].Kind
	for _, link := range p.entity(spec.Kinds, kind, index).links {
		if k := spec.Kinds[link.Kind]; k.Limits != nil {
			stored = append(stored, k.Prefix+link.ID)
		}
		if spec.Cascade == store.CascadeNone {
			break
		}
	}
	return stored
}

// spec returns the resource that a portion is on.
func (p *Plan) spec(portion int) *store.Spec { return p.Specs[p.Mix[portion].Resource] }

// Drawer draws the calls of a Plan. It is used by one goroutine.
type Drawer struct {
	plan   *Plan
	source rand.PCG
	random *rand.Rand
	zipf   *rand.Zipf
	upTo   []float64 // of each portion, the sum of the weights up to it
}

// NewDrawer returns one.
func (p *Plan) NewDrawer() *Drawer {
	d := &Drawer{plan: p}
	d.random = rand.New(&d.source)
	if p.Keys.Zipf > 0 {
		d.zipf = rand.NewZipf(d.random, p.Keys.Zipf, 1, uint64(p.Entities-1))
	}
	sum := 0.0
	for _, s := range p.Mix {
		sum += s.Weight
		d.upTo = append(d.upTo, sum)
	}
	return d
}

// Draw returns the nth call, which follows from the seed and n alone.
func (d *Drawer) Draw(n int64) Call {
	d.source.Seed(d.plan.Seed, uint64(n))
	at := d.random.Float64() * d.upTo[len(d.upTo)-1]
	portion := slices.IndexFunc(d.upTo, func(upTo float64) bool { return at < upTo })
	s := &d.plan.Mix[portion]
	c := Call{Portion: portion, Resource: s.Resource, Index: d.index(), Cost: make([]int64, len(s.Cost))}
	c.Entity = d.plan.entity(d.plan.spec(portion).Kinds, s.Kind, c.Index)
	for i, r := range s.Cost {
		c.Cost[i] = d.within(r)
	}
	if s.Settle != nil {
		c.Settle = make([]int64, len(s.Settle))
		for i, r := range s.Settle {
			if c.Settle[i] = c.Cost[i]; r != AsAcquired {
				c.Settle[i] = d.within(r)
			}
		}
	}
	return c
}

// index draws an entity.
func (d *Drawer) index() int {
	p := d.plan
	switch hot := p.Keys.Hot; {
	case d.zipf != nil:
		return int(d.zipf.Uint64())
	case hot > 0 && (hot >= p.Entities || d.random.Float64() < p.Keys.HotPortion):
		return d.random.IntN(min(hot, p.Entities))
	default:
		return hot + d.random.IntN(p.Entities-hot)
	}
}

func (d *Drawer) within(r Range) int64 {
	if r.Least == r.Most {
		return r.Least
	}
	return r.Least + d.random.Int64N(r.Most-r.Least+1)
}

// String writes r as flags have it.
func (r Range) String() string { return r.In("") }

// In is String for a limit with that unit, which is empty for tokens, else a currency: 0.01..0.25 USD.
func (r Range) In(unit string) string {
	least, most := strconv.FormatInt(r.Least, 10), store.Text(unit, r.Most)
	if unit != "" {
		least = money.Amount(r.Least).String()
	}
	if r.Least == r.Most {
		return most
	}
	return least + ".." + most
}
