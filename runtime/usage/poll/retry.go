package poll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/runtime/usage"
)

// The pauses before a call is made again have full jitter: they are up to the first, and then up to twice as
// long each time.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 30 * time.Second
)

// patiently does it until it was answered. It fails with what somebody has to mend, with what the streams
// answer beside records, or with ctx's own error.
func (r *run) patiently(ctx context.Context, what string, do func() error) error {
	for try := 0; ; try++ {
		err := do()
		if err == nil || answered(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := r.toMend(err); err != nil {
			return err
		}
		if !r.pause(ctx, try, what, err) {
			return ctx.Err()
		}
	}
}

// pause waits before the next try, and reports whether ctx lasted.
func (r *run) pause(ctx context.Context, try int, what string, err error) bool {
	longest := longestPause
	if try < 9 {
		longest = min(longest, firstPause<<try)
	}
	d := time.Duration(r.jitter() * float64(longest))
	r.Logger.LogAttrs(ctx, slog.LevelWarn, "sluice: could not "+what+", trying again",
		slog.String("table", r.name), slog.Duration("in", d), slog.Any("error", err))
	r.tell(func(p *Progress) { p.Waits++ })
	return r.wait(ctx, d)
}

// answered reports that an error is an answer: trying again would bring the same.
func answered(err error) bool {
	_, expired := errors.AsType[*types.ExpiredIteratorException](err)
	_, trimmed := errors.AsType[*types.TrimmedDataAccessException](err)
	_, gone := errors.AsType[*types.ResourceNotFoundException](err)
	_, refused := errors.AsType[*dynamodbtypes.ConditionalCheckFailedException](err)
	return expired || trimmed || gone || refused
}

// toMend returns what somebody has to mend, or nil where err may pass by itself. A sink that fails is nothing
// of the table's: whoever mends it need not start the Poller again.
func (r *run) toMend(err error) error {
	if _, sink := errors.AsType[*usage.SinkError](err); sink {
		return nil
	}
	if _, called := errors.AsType[*smithy.OperationError](err); called {
		if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() == "AccessDeniedException" {
			return &store.SetupError{
				What: fmt.Sprintf("DynamoDB denies access to table %s or its stream", r.name), Err: err,
				Do: fmt.Sprintf("attach the policy that `sluice infra iam --role aggregator --table %s` prints", r.Table),
			}
		}
		err = operator.CallError(r.Table, err)
	}
	if setup, ok := errors.AsType[*store.SetupError](err); ok {
		return setup
	}
	return nil
}

// wait waits for d and reports whether ctx lasted.
func (p *Poller) wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-p.Clock.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
