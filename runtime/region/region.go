// Package region keeps one limit for regions whose tables know nothing of each other. Each region publishes a Snapshot of what it
// holds and consumes, reads the others', and stores its share of every limit in its own table: never more in all than the limit.
//
// Shares move by escrow: who gives lowers its own first, and says that it has given once no cache in its region can hold the old
// one; who is given raises its own by that. Shares count for as long as the region's heartbeat is fresh, else as the floor. So a
// region that has not been heard of for long enough holds no more than the floor, and what it held can be shared out.
package region

import (
	"context"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Table is a region's own. dynamo.Regional is one.
type Table interface {
	// Each calls f for every bucket of resource. Images hold their balances by name, as Extra.
	Each(ctx context.Context, resource string, f func(entity string, img *bucket.Image)) error
	// Get returns what each level stores for spec's resource, as store.OverrideStore does.
	Get(ctx context.Context, spec *store.Spec, at ...string) ([]store.Stored, error)
	// Share stores s, with its Epoch, unless an operator has stored something there: then it fails with a *store.ConflictError.
	// Without limits it leaves a tombstone. Its version is above s.Revision's and above that of what it replaces.
	Share(ctx context.Context, spec *store.Spec, s store.Stored) (store.Revision, error)
	// Heartbeat returns what is stored, read consistently.
	Heartbeat(ctx context.Context) (store.Heartbeat, error)
	// Beat stores h, but for its Since, unless one of a higher epoch is stored, or one of the same that expires later or is another
	// region's: then it fails with a *store.ConflictError, and with a *store.SetupError if another region's is alive. Since stays as
	// it is stored as long as that one's epoch is h's and it is alive; else it is now.
	Beat(ctx context.Context, h store.Heartbeat) error
}

// Snapshots is where regions publish: an S3 bucket, or a directory. A reader sees what was last put.
type Snapshots interface {
	// Get returns the object of that name, an error that is fs.ErrNotExist where there is none.
	Get(ctx context.Context, name string) ([]byte, error)
	// Put replaces the object of that name, as a whole.
	Put(ctx context.Context, name string, object []byte) error
}

// Prober is a Snapshots that can tell beforehand why Put would fail. It is asked before an epoch begins.
type Prober interface {
	// Probe returns why Put under a name would fail, nil where it sees no reason. It leaves what is there as it is.
	Probe(ctx context.Context, name string) error
}
