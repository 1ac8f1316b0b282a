package bucketstore

import (
	"context"

	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/runtime/store"
)

// maxReason is the most bytes of --reason, all of which a record has.
const maxReason = 200

// Reason is the flag of a command whose changes are recorded.
type Reason struct {
	Reason string `placeholder:"TEXT" help:"Reason for the change. Its record has it: see sluice audit."`
}

// Recorded returns a context for changes in at. Their records say who changes something, as far as at knows
// it, and why.
func (r Reason) Recorded(ctx context.Context, at Store) (context.Context, error) {
	if len(r.Reason) > maxReason {
		return nil, program.Usagef("--reason has %d bytes: shorten it to %d", len(r.Reason), maxReason)
	}
	by := "" // a Redis knows the user of the connection
	if table, ok := at.(*Table); ok {
		by = connect.Caller(ctx, table.Client)
	}
	return store.ChangedBy(ctx, by, r.Reason), nil
}
