package redisstore

import (
	"context"
	"time"
)

// Inspect reads the named limits of one bucket, without a SCAN: that of entity, as stored, on resource, in a chain that ends with
// root. It returns nil where none of them is stored, and fails as Buckets does, with a *runtime.SetupError for a key that is no
// bucket.
func (s *Store) Inspect(ctx context.Context, resource, root, entity string, limits ...string) (*StoredBucket, error) {
	page, err := s.page(ctx, []found{{entity, root, s.bucketKeys(resource, root, entity, limits)}})
	switch {
	case err != nil:
		return nil, err
	case len(page.Malformed) > 0:
		return nil, page.Malformed[0]
	case len(page.Buckets) == 0:
		return nil, nil
	}
	return &page.Buckets[0], nil
}

// Fill fills the named limits of the bucket that Inspect reads. It fails as Buckets does, and may run beside acquires.
func (s *Store) Fill(ctx context.Context, resource, root, entity string, limits ...string) error {
	for _, key := range s.bucketKeys(resource, root, entity, limits) { // a missing bucket is a full one
		if err := s.client.Del(ctx, key).Err(); err != nil {
			return s.told(ctx, err)
		}
	}
	return nil
}

// Time is Redis's own, by which buckets refill; of one of its nodes, if it is a cluster.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	now, err := s.client.Time(ctx).Result()
	return now, s.told(ctx, err)
}

// bucketKeys returns the keys of a bucket's limits.
func (s *Store) bucketKeys(resource, root, entity string, limits []string) []string {
	all := make([]string, len(limits))
	for i, limit := range limits {
		all[i] = s.keys.bucket(resource, limit, root, entity)
	}
	return all
}
