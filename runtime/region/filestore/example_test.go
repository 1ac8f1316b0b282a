package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/region/filestore"
)

// publish puts a region's snapshot where the others read it. A region.Sync with these Snapshots does so by
// itself.
func publish(ctx context.Context, dir string) (region.Snapshots, error) {
	snapshots, err := filestore.New(dir) // the directory must exist
	if err != nil {
		return nil, err
	}
	return snapshots, snapshots.Put(ctx, "eu-central-1/snapshot.json", []byte("{}"))
}

// An object is replaced as a whole; one that nobody put does not exist.
func Example() {
	dir, err := os.MkdirTemp("", "snapshots")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	snapshots, err := publish(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	object, err := snapshots.Get(ctx, "eu-central-1/snapshot.json")
	fmt.Println(string(object), err)
	_, err = snapshots.Get(ctx, "us-east-1/snapshot.json")
	fmt.Println("missing:", errors.Is(err, fs.ErrNotExist))
	// Output:
	// {} <nil>
	// missing: true
}
