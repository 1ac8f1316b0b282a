package region

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// A raised quota adds no tokens to a bucket: another region may have used those of the quota that moved. In a
// fresh book none has, so a raise grants the bucket what its burst has gained. docs/design.md, "Regions", has
// the proof.

// remembers reports whether s knows of all quotas of bk's entity that were in force within the time in which
// an empty bucket fills up. It has forgotten those of an earlier epoch, and of books that were closed.
func (s *Sync) remembers(bk *book, now time.Time) bool {
	for i := range bk.whole {
		fill := fillTime(bk.whole[i])
		if fill > s.Unused || s.epoch > 1 && now.Sub(s.began) <= fill+minEvictWindows*s.regions.Window {
			return false
		}
	}
	return true
}

// fillTime returns how long an empty bucket takes to be full. It is the same for each quota of a limit.
func fillTime(l bucket.Limit) time.Duration {
	return time.Duration(bucket.MulDiv(l.Burst, l.Period, max(1, l.Refill))) * time.Millisecond
}

// allLive reports whether all peers take part.
func allLive(peers []*peer) bool {
	return !slices.ContainsFunc(peers, func(p *peer) bool { return p.state != Live })
}

// anyStale reports whether a region says that bk's generation is not fresh any more.
func (s planner) anyStale(bk *book, peers []*peer) bool {
	return slices.ContainsFunc(peers, func(p *peer) bool {
		e := s.published(p, bk.key())
		return e != nil && e.Gen == bk.Gen && !e.Fresh
	})
}

// grantFor returns the millitokens that a raise of the i-th quota to an amount grants the bucket. Without a
// bucket, or one without the limit, it is 0: such a bucket starts full.
func (bk *book) grantFor(i int, to int64) int64 {
	if !bk.Fresh || bk.doubt || bk.seen == nil || !slices.ContainsFunc(bk.seen.Extra,
		func(n bucket.Named) bool { return n.Name == bk.Limits[i].Limit }) {
		return 0
	}
	return bk.whole[i].Quota(to).Burst - bk.whole[i].Quota(bk.Limits[i].Quota).Burst
}

// noteGrants notes what a raise that was written has granted. A bucket stays for two fill times after its
// last refill. Later on it may be another one, which started full. One fill time leaves room for rounding.
func (bk *book) noteGrants(grants []int64) {
	if bk.seen == nil || !slices.ContainsFunc(grants, func(n int64) bool { return n > 0 }) {
		return
	}
	if bk.grants == nil {
		bk.grants, bk.grantUntil = make([]int64, len(grants)), 1<<62
	}
	for i, n := range grants {
		bk.grants[i] += n
		bk.grantUntil = min(bk.grantUntil, bk.seen.Refilled+fillTime(bk.whole[i]).Milliseconds())
	}
}

// awaitsGrant reports whether bk's quotas stay as they are for now, since tokens that came with a raise are
// still to be granted: they would be lost. A limit that was lowered does not wait.
func (s planner) awaitsGrant(bk *book, decisions []decision) bool {
	return bk.grants != nil && s.now.UnixMilli()-bk.Wrote < grantWindows*s.window() &&
		!slices.ContainsFunc(decisions, func(d decision) bool { return d.why == Lower })
}

// grantWindows is the number of windows after a raise within which a bucket that is called has taken it on,
// and sync has seen that.
const grantWindows = 3

// quotas returns the limits of bk's quotas as last written.
func (bk *book) quotas() []bucket.Limit {
	limits := make([]bucket.Limit, len(bk.Limits))
	for i := range limits {
		limits[i] = bk.whole[i].Quota(bk.Limits[i].Written)
	}
	return limits
}

// grant adds tokens to the buckets that have taken on the raised quotas. It gives up a grant whose outcome is
// not known, and one whose quota is lowered first.
func (s *Sync) grant(ctx context.Context, start time.Time, r *Report) {
	until := start.Add(s.regions.Window)
	for _, bk := range s.books.all() {
		now := s.Clock.Now()
		switch {
		case bk.grants == nil || !now.Before(until):
			continue
		case bk.whole == nil || len(bk.grants) != len(bk.Limits) || bk.doubt || bk.maturing() ||
			now.UnixMilli()+s.window() >= bk.grantUntil:
			bk.grants = nil
			continue
		case bk.seen == nil || bk.contradicted():
			continue
		}
		grants := bk.grants
		bk.grants = nil
		ok, err := s.Table.Grant(ctx, bk.spec, bk.Entity, inOrder(bk, bk.quotas()), inOrder(bk, grants))
		switch {
		case err != nil:
			r.Failed = append(r.Failed, fmt.Errorf("first tokens of %s for %s: %w", bk.Resource,
				store.Quote(bk.Entity), err))
		case !ok:
			bk.grants = grants // nothing was written: the bucket has other limits again
		}
	}
}

// contradicted reports whether the bucket as last read has other limits than the quotas last written.
func (bk *book) contradicted() bool {
	for i, l := range bk.quotas() {
		if h := &bk.Limits[i]; h.CP != l.Capacity || h.BX != l.Burst || h.RA != l.Refill || h.RP != l.Period {
			return true
		}
	}
	return false
}
