package prefetch

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// lastDenial is the newest denial that withhold has made for a pool. Calls in the same millisecond share it.
type lastDenial struct {
	at     int64 // ms
	cost   []int64
	denied *store.DeniedError
}

// fresh is for how long an image denies, as in stores.
const fresh = time.Second

// withhold returns the denial of a call, or nil. It denies a call that the cached images of chain's buckets
// would admit, if the call would take tokens that this process leaves to others (blocks.Demand.Leave). So the
// table keeps tokens for processes that ask for little, however often the others ask.
func (r *resource) withhold(
	def store.Definition, chain []store.Link, cost []int64, now int64,
) (denied *store.DeniedError) {
	at := r.now()
	for i := range chain {
		p := r.find(keyOf(def, chain[i].Kind, chain[i].ID))
		if p == nil {
			continue
		}
		if one := p.withhold(def, &chain[i], cost, at, now); one != nil {
			denied = both(denied, one)
		}
		p.mu.Unlock()
	}
	return denied
}

// withhold is resource.withhold for p's bucket at now, which is ms by the store's clock. It does not deny a
// call that p has the tokens for. The caller has locked p.
func (p *pool) withhold(
	def store.Definition, link *store.Link, cost []int64, now time.Duration, ms int64,
) *store.DeniedError {
	if p.image == nil || now-p.seenAt >= fresh || p.covers(cost, now) {
		return nil
	}
	demand, missing := p.meter.Demand(now), false
	level := p.vectors[1]
	for i, b := range p.image.Balances {
		level[i] = bucket.Spendable(b, p.image.Refilled, ms)
		need := cost[i] - p.blocks.LeftFor(i, p.prefetch, now)
		// a full bucket serves a call that needs nearly all of it
		if leave := min(demand.Leave(i, b.Limit), b.Burst-need); leave > 0 {
			level[i] = bucket.Sub(level[i], p.waiting[i]+leave)
			missing = missing || need > level[i]
		}
	}
	if !missing {
		return nil
	}
	if w := &p.denial; w.at == ms && slices.Equal(w.cost, cost) {
		return w.denied
	}
	spec, q := p.resource.spec, p.missing(cost)
	if name, ok := def.(*store.Named); ok {
		spec = name.Spec()
	}
	img := &bucket.Image{
		Refilled: max(ms, p.image.Refilled), Missing: p.image.Missing, Balances: slices.Clone(p.image.Balances),
	}
	for i := range img.Balances {
		img.Balances[i].Tokens = level[i]
	}
	entity := spec.Kinds[link.Kind].Prefix + link.ID
	if denied := store.Refuse(nil, spec, entity, img, q.need(), ms); denied != nil {
		q.err = denied
	}
	denied, _ := q.explained().(*store.DeniedError) //nolint:errorlint // it is not wrapped
	p.denial = lastDenial{ms, slices.Clone(cost), denied}
	return denied
}

// covers reports whether p has all of cost at now, be it in several blocks.
func (p *pool) covers(cost []int64, now time.Duration) bool {
	for i, n := range cost {
		if n > p.blocks.LeftFor(i, p.prefetch, now) {
			return false
		}
	}
	return true
}
