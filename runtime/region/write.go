package region

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// item is one write of a cycle.
type item struct {
	Write

	*book
	to        []int64 // by limit
	grants    []int64 // by limit, millitokens that the bucket is granted with the raise
	raises    bool
	tombstone bool // it leaves a tombstone

	rev store.Revision
	at  int64 // when it was answered, ms
	err error
}

// write writes the items that raise a quota, or those that do not, while there is time in this cycle's
// window. The next cycle decides anew on the rest.
func (s *Sync) write(ctx context.Context, items []*item, raises bool, start time.Time, r *Report) {
	until := start.Add(s.regions.Window)
	if !raises {
		until = start.Add(s.regions.Window / 2)
	}
	items = slices.DeleteFunc(slices.Clone(items), func(it *item) bool { return it.raises != raises })
	for chunk := range slices.Chunk(items, s.Writers) {
		if !s.Clock.Now().Before(until) {
			break
		}
		var writers sync.WaitGroup
		for _, it := range chunk[1:] {
			writers.Go(func() { it.send(ctx, s) })
		}
		chunk[0].send(ctx, s)
		writers.Wait()
		for _, it := range chunk {
			it.record(r)
		}
	}
}

// send writes the item.
func (it *item) send(ctx context.Context, s *Sync) {
	quota := store.Stored{At: it.Write.Entity, Epoch: s.epoch, Revision: it.book.rev}
	if !it.tombstone {
		limits := make([]*bucket.Limit, len(it.to))
		for i, tokens := range it.to {
			limit := it.whole[i].Quota(tokens)
			limits[i] = &limit
		}
		quota.Limits = inOrder(it.book, limits)
	}
	it.rev, it.err = s.Table.PutQuota(ctx, it.spec, quota)
	it.at = s.Clock.Now().UnixMilli()
}

// record records the outcome of the write.
func (it *item) record(r *Report) {
	_, operators := errors.AsType[*store.ConflictError](it.err)
	switch {
	case operators:
		it.tried = it.at
		r.Operated++
	case it.err != nil:
		it.doubt = true
		r.Failed = append(r.Failed, fmt.Errorf("quota of %s for %s: %w", it.Write.Resource,
			store.Quote(it.Write.Entity), it.err))
	default:
		it.Done = true
		for i, to := range it.to {
			it.book.Limits[i].Written = to
		}
		it.noteGrants(it.grants)
		it.Wrote, it.Raising, it.book.rev, it.stored, it.doubt, it.tried = it.at, false, it.rev, !it.tombstone,
			false, 0
	}
}
