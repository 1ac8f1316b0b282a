package runtime

import (
	"context"

	"github.com/sluice-go/sluice/runtime/internal/chains"
	"github.com/sluice-go/sluice/runtime/internal/observers"
	"github.com/sluice-go/sluice/runtime/internal/tokens"
	"github.com/sluice-go/sluice/runtime/store"
)

// vectors holds a chain and its cost for as long as nothing keeps them, so that a denial from memory
// allocates nothing.
type vectors struct {
	links        [8]store.Link // each is enough for most calls
	whole, milli [8]int64      // whole tokens, millitokens
}

// vectors returns memory that its user puts back into the vectorPool.
func (c *core) vectors() *vectors { return c.vectorPool.Get().(*vectors) }

// refused returns the denial of an acquire of cost, in whole tokens, by the store's cached images at now
// (ms), and reports it to the observer. It returns nil, so that the caller asks the store, if
//   - the cached images deny nothing,
//   - the chain continues by look-ups,
//   - or the input is invalid: the caller then finds out how.
func (r *resource) refused(
	ctx context.Context, entity Entity, cost []int64, v *vectors, now int64,
) *DeniedError {
	links, ok := chains.Charged(r.spec, entity.Chain(v.links[:0]))
	if !ok {
		return nil
	}
	vector := append(v.milli[:0], cost...)
	if empty, err := tokens.Scale(r.spec, links[0].Kind, true, vector); empty || err != nil {
		return nil //nolint:nilerr // the caller asks the store, which returns err
	}
	denied := r.core.session.Refused(r.def, links, vector, now)
	if denied != nil {
		observers.Refused(ctx, r.core.env.Observer, r.spec, links, denied)
	}
	return denied
}

// refusedWaiter is refused for a call that waits. For other waiters it leaves in call's buckets what denied
// it.
func (r *resource) refusedWaiter(call *request) *DeniedError {
	part := &call.Parts[0]
	if call.chains[0].Continues() {
		return nil
	}
	v := r.core.vectors()
	defer r.core.vectorPool.Put(v)
	links := v.links[:0]
	for i := range part.Buckets {
		b := &part.Buckets[i]
		links = append(links, store.Link{Kind: b.Kind, ID: b.Entity[len(r.spec.Kinds[b.Kind].Prefix):]})
	}
	denied := r.core.session.Refused(r.def, links, part.Cost, call.Called.UnixMilli())
	if denied != nil {
		r.core.session.Lookup(&call.Call)
	}
	return denied
}
