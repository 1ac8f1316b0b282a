package dynamo

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/store"
)

// refusal is a denial that memory alone has led to. Callers of one millisecond share it: a flood of them costs no garbage, and
// retry after is exact for all.
type refusal struct {
	now    int64
	cost   []int64
	images []*bucket.Image // of the chain
	err    *store.DeniedError
}

// Refused implements store.Session. Where a bucket is due for another shape, or is to be given something back, it says
// nothing: the next write changes what there is.
func (s *session) Refused(def store.Definition, chain []store.Link, cost []int64, now int64) *store.DeniedError {
	r := s.resource(def)
	var memories [8]*memory
	var images [8]*bucket.Image
	if len(chain) > len(images) {
		return nil
	}
	refuses, last := false, (*refusal)(nil)
	for i := range chain {
		// Peek, as Get would take the cache's lock for writing: a bucket that refuses again and again is moved to the front once a
		// second, when its image is too old to refuse and an acquire reads it.
		m, ok := s.images.Peek(bucketKey{r, chain[i].Kind, chain[i].ID})
		if !ok {
			return nil
		}
		m.mu.Lock()
		trusted, img, known := s.trusts(r, m, now), m.img, m.shape
		if i == 0 {
			last = m.last
		}
		m.mu.Unlock()
		if !trusted {
			return nil
		}
		memories[i], images[i] = m, img
		for j := range img.Balances {
			b := &img.Balances[j]
			switch {
			case cost[j] <= 0, img.Missing[j]:
			case known.Ceiling != nil && store.Beyond(b.Limit, cost[j]) && cost[j] <= known.Ceiling[j].Burst:
				refuses = true
			case cost[j] > b.Burst: // never: another error
				return nil
			case !refuses:
				refuses = bucket.Available(*b, img.Refilled, now) < cost[j]
			}
		}
	}
	if !refuses {
		return nil
	}
	seen := images[:len(chain)]
	if last != nil && last.now == now && slices.Equal(last.cost, cost) && slices.Equal(last.images, seen) {
		return last.err
	}
	next := &refusal{now: now, cost: slices.Clone(cost), images: slices.Clone(seen)}
	for i, img := range seen {
		next.err = store.Refuse(next.err, r.spec, memories[i].entity, img, cost, now)
	}
	m := memories[0]
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = next
	return next.err
}

// trusts reports whether m's image may refuse at now. The caller holds m's lock.
func (s *session) trusts(r *resource, m *memory, now int64) bool {
	return m.img != nil && m.shape != nil && trustworthy(m.seen, now, trusted) && m.back == 0 &&
		s.fresh(r.spec, m.shape.ReadAt, now) && !m.shape.Expired(r.spec, now) && !plan.Outdated(m.img, &m.shape.Shape)
}
