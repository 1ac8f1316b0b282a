package redisstore

import (
	"context"
	"time"
)

// Inspect reads the named limits of one bucket, without a SCAN: the bucket of entity, as stored, on
// resource, in a chain that ends with root. It returns nil if none of the limits is stored. It fails as
// Buckets does, with a *runtime.SetupError for a key that is not a bucket.
func (s *Store) Inspect(ctx context.Context, resource, root, entity string, limits ...string) (*StoredBucket,
	error) {
	page, err := s.page(ctx, []storedKeys{{entity, root, s.db.Keys.BucketKeys(resource, root, entity, limits)}})
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

// Delete deletes the named limits of the bucket that Inspect reads. They are full for the next call, by the
// limits that the caller has. It fails as Buckets does. It is safe while other processes acquire.
func (s *Store) Delete(ctx context.Context, resource, root, entity string, limits ...string) error {
	for _, key := range s.db.Keys.BucketKeys(resource, root, entity, limits) {
		if err := s.db.Client.Del(ctx, key).Err(); err != nil {
			return s.db.OperationError(ctx, err)
		}
	}
	return nil
}

// Time returns Redis's time, by which buckets refill; on a cluster, that of one of its nodes. It fails as
// Buckets does.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	now, err := s.db.Client.Time(ctx).Result()
	return now, s.db.OperationError(ctx, err)
}
