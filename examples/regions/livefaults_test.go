package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/region/filestore"
	"github.com/sluice-go/sluice/runtime/store"
)

// faulty is what a region's sync sees: a folder that may be unreadable, and a process that may stand still
// between two calls, as after SIGSTOP.
type faulty struct {
	folder     region.Snapshots
	unreadable atomic.Bool
	stopped    atomic.Int64 // until then, ms
}

// errUnreadable is that of an unreadable folder.
var errUnreadable = errors.New("permission denied")

// pause stands still as long as the process is stopped.
func (f *faulty) pause() {
	if left := time.Until(time.UnixMilli(f.stopped.Load())); left > 0 {
		time.Sleep(left) //nolint:forbidigo // in a bubble
	}
}

// Get implements region.Snapshots.
func (f *faulty) Get(ctx context.Context, name string) ([]byte, error) {
	f.pause()
	if f.unreadable.Load() {
		return nil, errUnreadable
	}
	return f.folder.Get(ctx, name)
}

// Put implements region.Snapshots.
func (f *faulty) Put(ctx context.Context, name string, object []byte) error {
	f.pause()
	if f.unreadable.Load() {
		return errUnreadable
	}
	return f.folder.Put(ctx, name, object)
}

// tables is a region's table, before whose heartbeat the process stands still: others may have evicted the
// region meanwhile.
type tables struct {
	region.Table
	f *faulty
}

// PutHeartbeat implements region.Table.
func (t tables) PutHeartbeat(ctx context.Context, h store.Heartbeat) error {
	t.f.pause()
	return t.Table.PutHeartbeat(ctx, h)
}

// TestLiveFaults: three regions that follow their streams never have more than G together. Their syncs are
// killed and started again, and stopped for up to eight windows, and their folders are unreadable.
func TestLiveFaults(t *testing.T) {
	for seed := range longform.Count[uint64](t, "seeds", 4, 1) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			folder, err := filestore.New(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			all, err := newPlaces(t.Context(), folder, 5*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			faults := make([]*faulty, len(all))
			for i, p := range all {
				faults[i] = &faulty{folder: folder}
				p.config.Snapshots, p.config.Table = faults[i], tables{p.config.Table, faults[i]}
			}
			sees, ended := newLookout(all), make(chan struct{})
			ctx, end := context.WithCancel(t.Context())
			go func() {
				defer close(ended)
				injure(ctx, dice, all, faults)
			}()
			var out strings.Builder
			err = tell(ctx, story{ends: 60 * time.Second, stops: time.Hour, backs: time.Hour}, all, sees, &out)
			end()
			<-ended
			for _, p := range all {
				p.stop()
				err = errors.Join(err, p.close(t.Context()))
			}
			if err = errors.Join(err, sees.check(&out)); err != nil {
				t.Errorf("seed %d: %v\n%s", seed, err, &out)
			}
		})
	}
}

// injure has something happen to one region every few seconds.
func injure(ctx context.Context, dice *rand.Rand, all []*place, faults []*faulty) {
	for {
		select {
		case <-time.After(time.Duration(1+dice.IntN(4)) * time.Second):
		case <-ctx.Done():
			return
		}
		i := dice.IntN(len(all))
		switch dice.IntN(4) {
		case 0:
			all[i].stop()
			if all[i].sync(ctx) != nil {
				return
			}
		case 1:
			faults[i].stopped.Store(time.Now().Add(time.Duration(1+dice.IntN(8)) * time.Second).UnixMilli())
		default:
			faults[i].unreadable.Store(!faults[i].unreadable.Load())
		}
	}
}
