package operator

import (
	"context"
	"iter"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/audit"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// Changes yields the records of changes that people have made since an instant of what is audited, in the
// order of their versions. It ends with the first error. It reads consistently.
func Changes(
	ctx context.Context, client wire.API, table string, of store.Audited, since time.Time,
) iter.Seq2[store.Change, error] {
	retrier := wire.NewRetrier(table)
	return audit.List(ctx, client, &retrier, of, since)
}
