// Package region keeps one limit for regions whose tables know nothing of each other.
//
//	config := region.Config{
//		Region: name, Table: operator.NewRegional(client, "rate_limits", clock.Now),
//		Snapshots: snapshots, Specs: lim.Specs(),
//	}
//
//	sync, err := region.New(config)
//
//	report, err := p.sync.Cycle(ctx)
//	if err != nil {
//		return err
//	}
//	return report.Failures(10)
//
// Each region publishes a [Snapshot] of what it holds and consumes, and reads the snapshots of the others. It
// stores its quota of every limit in its own table. Together, the quotas never exceed the limit.
//
// Quotas move by escrow. The giving region lowers its own quota first. It publishes that it has given once no
// cache in the region can hold the old quota. The receiving region then raises its own by that amount. Quotas
// are in force while the region's heartbeat is valid; otherwise the floor is. So a region that has been
// silent for long enough holds no more than the floor, and what it held can be divided among the others.
package region

import (
	"context"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Table is the region's own table. operator.Regional is one.
type Table interface {
	// Each calls f for every bucket of resource. Images hold the balances by name, in Extra.
	Each(ctx context.Context, resource string, f func(entity string, img *bucket.Image)) error
	// Get returns the overrides of spec's resource at entities or kinds, as store.OverrideStore does.
	Get(ctx context.Context, spec *store.Spec, at ...string) ([]store.Stored, error)
	// PutQuota stores s, with its Epoch, unless an operator's override is stored there: then it fails with a
	// *store.ConflictError. Without limits it leaves a tombstone. The new version is above s.Revision and
	// above that of what it replaces.
	PutQuota(ctx context.Context, spec *store.Spec, s store.Stored) (store.Revision, error)
	// Grant adds tokens, in millitokens by limit, to an entity's bucket if that has these limits in force. It
	// adds them once at the most, and not at all if it reports false. An error may come with either.
	Grant(
		ctx context.Context, spec *store.Spec, entity string, limits []bucket.Limit, tokens []int64,
	) (bool, error)
	// Heartbeat returns the stored heartbeat, read consistently.
	Heartbeat(ctx context.Context) (store.Heartbeat, error)
	// PutHeartbeat stores h, except for its Since, unless one of these is stored:
	//
	//   - A heartbeat of a higher epoch, or one of the same epoch that expires later or is another region's.
	//     Then it fails with a *store.ConflictError.
	//   - A valid heartbeat of another region. Then it fails with a *store.SetupError.
	//
	// The stored Since stays as it is while the stored heartbeat is valid and its epoch is h's; else it becomes
	// now.
	PutHeartbeat(ctx context.Context, h store.Heartbeat) error
}

// Snapshots is the store in which regions publish: an S3 bucket, or a directory. A reader sees the last
// object put.
type Snapshots interface {
	// Get returns the object of that name. Without one, the error is fs.ErrNotExist.
	Get(ctx context.Context, name string) ([]byte, error)
	// Put replaces the object of that name, as a whole.
	Put(ctx context.Context, name string, object []byte) error
}

// Prober is a Snapshots that can check beforehand whether Put would fail. Sync calls it before an epoch
// begins.
type Prober interface {
	// Probe returns the error with which Put under a name would fail, nil if it finds none. It does not change
	// the object.
	Probe(ctx context.Context, name string) error
}
