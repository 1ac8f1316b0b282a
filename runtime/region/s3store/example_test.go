package s3store_test

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/region/s3store"
)

// publish puts a region's snapshot in S3. A service passes s3.NewFromConfig(cfg), and a region.Sync with
// these Snapshots publishes by itself.
func publish(ctx context.Context, client s3store.API, place string) (region.Snapshots, error) {
	bucket, prefix, err := s3store.Parse(place) // s3://bucket/prefix, the same in all regions
	if err != nil {
		return nil, err
	}
	snapshots, err := s3store.New(client, bucket, prefix) // no I/O
	if err != nil {
		return nil, err
	}
	return snapshots, snapshots.Put(ctx, "eu-central-1/snapshot.json", []byte("{}"))
}

// Objects are compressed, below the prefix.
func Example() {
	ctx, memory := context.Background(), objects{}
	snapshots, err := publish(ctx, memory, "s3://quotas/limits")
	if err != nil {
		fmt.Println(err)
		return
	}
	for key := range memory {
		fmt.Println(key)
	}
	object, err := snapshots.Get(ctx, "eu-central-1/snapshot.json")
	fmt.Println(string(object), err)
	// Output:
	// limits/eu-central-1/snapshot.json
	// {} <nil>
}

// objects stands for S3.
type objects map[string][]byte

func (o objects) PutObject(
	_ context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options),
) (*s3.PutObjectOutput, error) {
	object, err := io.ReadAll(in.Body)
	o[*in.Key] = object
	return &s3.PutObjectOutput{}, err
}

func (o objects) GetObject(
	_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options),
) (*s3.GetObjectOutput, error) {
	return &s3.GetObjectOutput{Body: io.NopCloser(bytes.NewReader(o[*in.Key]))}, nil
}
