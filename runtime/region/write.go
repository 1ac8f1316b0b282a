package region

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// item is one write of a cycle.
type item struct {
	Write

	*book
	to     []int64 // by limit
	raises bool
	forget bool // it leaves a tombstone

	rev store.Revision
	at  int64 // when it was answered, ms
	err error
}

// write writes those items that raise something, or those that do not, while there is time in this cycle's window: what is left is
// decided anew by the next.
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
			it.note(r)
		}
	}
}

// send writes it.
func (it *item) send(ctx context.Context, s *Sync) {
	share := store.Stored{At: it.Write.Entity, Epoch: s.epoch, Revision: it.book.rev}
	if !it.forget {
		for i, tokens := range it.to {
			limit := it.whole[i].Share(tokens)
			share.Limits = append(share.Limits, &limit)
		}
	}
	it.rev, it.err = s.Table.Share(ctx, it.spec, share)
	it.at = s.Clock.Now().UnixMilli()
}

// note takes note of how it ended.
func (it *item) note(r *Report) {
	_, operators := errors.AsType[*store.ConflictError](it.err)
	switch {
	case operators:
		it.tried = it.at
		r.Operated++
	case it.err != nil:
		it.doubt = true
		r.Failed = append(r.Failed, fmt.Errorf("share of %s for %s: %w", it.Write.Resource, it.Write.Entity, it.err))
	default:
		it.Done = true
		for i, to := range it.to {
			it.book.Limits[i].Written = to
		}
		it.Wrote, it.Raising, it.book.rev, it.stored, it.doubt, it.tried = it.at, false, it.rev, !it.forget, false, 0
	}
}
