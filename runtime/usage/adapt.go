package usage

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// AddStreams adds records of one shard in the form of GetRecords of DynamoDB Streams, in their order. Records
// that cannot be adapted are put aside; the rest is added as by Add, with its errors.
func (a *Aggregator) AddStreams(ctx context.Context, shard string, records []types.Record) (Added, error) {
	return addAdapted(ctx, a, shard, records, FromStreams)
}

// Added counts what became of records.
type Added struct {
	// Counted is the number of records that consumed something and are in all their windows, now or since an
	// earlier delivery. Records from UncountedError.Sequence on are not included.
	Counted  int
	PutAside int // records that Poisoned took
}

// addAdapted adds records of any source. If a record can neither be adapted nor put aside, the records before
// it are added.
func addAdapted[R any](ctx context.Context, a *Aggregator, shard string, records []R,
	adapt func(R) (codec.Record, error)) (Added, error) {
	adapted := make([]codec.Record, 0, len(records))
	aside := 0
	for _, r := range records {
		rec, err := adapt(r)
		if err == nil {
			adapted = append(adapted, rec)
			continue
		}
		if err = a.putAside(ctx, Poison{shard, rec, err}); err != nil {
			added, failed := a.add(ctx, shard, adapted)
			added.PutAside += aside
			if failed == nil {
				failed = &UncountedError{Sequence: rec.Sequence, Err: err}
			}
			return added, failed
		}
		aside++
	}
	added, err := a.add(ctx, shard, adapted)
	added.PutAside += aside
	return added, err
}

// SinkError says that Poisoned failed: a record that cannot be read could not be put aside either.
type SinkError struct{ Err error }

// Error says what failed.
func (e *SinkError) Error() string { return fmt.Sprintf("the record cannot be put aside: %v", e.Err) }

// Unwrap returns what Poisoned returned.
func (e *SinkError) Unwrap() error { return e.Err }

// putAside passes a record to Poisoned.
func (a *Aggregator) putAside(ctx context.Context, p Poison) error {
	if err := a.config.Poisoned(ctx, p); err != nil {
		return &SinkError{err}
	}
	return nil
}
