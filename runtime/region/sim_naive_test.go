package region_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/internal/test/regionsim"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/store"
)

// naive is a sync without escrow: each computes the same targets from the same snapshots, lowers its quota
// first, and raises it into what the others show to be free. Two that look at once both take it.
type naive struct {
	region.Config
	quota map[string]int64 // by entity, resource and limit
	taken map[string]int64
	last  time.Time
}

// shown is what a naive sync publishes.
type shown struct {
	At          int64
	Quota, Rate map[string]int64
}

func newNaive(c region.Config) (regionsim.Sync, error) {
	return &naive{Config: c, quota: map[string]int64{}, taken: map[string]int64{}}, nil
}

// Cycle reads, lowers, publishes, beats and raises, as a *region.Sync does.
func (n *naive) Cycle(ctx context.Context) (*region.Report, error) {
	now, names := n.Clock.Now(), n.Specs[0].Regions.Names
	views := make([]*shown, len(names))
	for i, name := range names {
		if name == n.Region {
			continue
		}
		object, err := n.Snapshots.Get(ctx, name+"/snapshot.json")
		if err != nil {
			continue
		}
		views[i] = &shown{}
		if err := json.Unmarshal(object, views[i]); err != nil {
			return nil, err
		}
	}
	beat, err := n.Table.Heartbeat(ctx)
	if err != nil {
		return nil, err
	}
	own := &shown{At: now.UnixMilli(), Quota: n.quota, Rate: map[string]int64{}}
	var raise []func() error
	for _, spec := range n.Specs {
		err := n.Table.Each(ctx, spec.Resource, func(entity string, img *bucket.Image) {
			for i, b := range img.Extra {
				key := fmt.Sprint(entity, " ", spec.Resource, " ", b.Name)
				if ms := now.Sub(n.last).Milliseconds(); !n.last.IsZero() {
					own.Rate[key] = max(0, (b.Consumed-n.taken[key])*1000/ms)
				}
				n.taken[key] = b.Consumed
				whole := spec.Kinds[0].Limits[i]
				floor := spec.Regions.Keeps(whole).Capacity / bucket.Milli
				n.quota[key] = max(n.quota[key], floor)
				demand, free, me := make([]int64, len(names)), whole.Capacity/bucket.Milli, 0
				for r := range names {
					switch v := views[r]; {
					case names[r] == n.Region:
						me, demand[r] = r, own.Rate[key]
					case v == nil || v.Quota[key] == 0:
						free -= floor
					default:
						demand[r], free = v.Rate[key], free-v.Quota[key]
					}
				}
				target := region.Targets(whole.Capacity/bucket.Milli, floor, demand)[me]
				write := func(to int64) error {
					limits := make([]*bucket.Limit, len(spec.Limits))
					for j := range limits {
						l := spec.Kinds[0].Limits[j]
						limits[j] = new(l.Quota(max(spec.Regions.Keeps(l).Capacity/bucket.Milli,
							n.quota[fmt.Sprint(entity, " ", spec.Resource, " ", spec.Limits[j])])))
					}
					limits[i] = new(whole.Quota(to))
					_, err := n.Table.PutQuota(ctx, spec, store.Stored{At: entity, Limits: limits,
						Epoch: max(1, beat.Epoch)})
					return err
				}
				switch to := min(target, free); {
				case target < n.quota[key]:
					n.quota[key] = target
					raise = append([]func() error{func() error { return write(target) }}, raise...)
				case to > n.quota[key]:
					raise = append(raise, func() error { return write(to) })
					n.quota[key] = to
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	n.last = now
	object, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	if err := n.Snapshots.Put(ctx, n.Region+"/snapshot.json", object); err != nil {
		return nil, err
	}
	if err := n.Table.PutHeartbeat(ctx, store.Heartbeat{Epoch: max(1, beat.Epoch),
		Expires: now.Add(3 * n.Specs[0].Regions.Window).UnixMilli()}); err != nil {
		return nil, err
	}
	var failed []error
	for _, f := range raise {
		failed = append(failed, f())
	}
	return &region.Report{Region: n.Region, At: now}, errors.Join(failed...)
}
