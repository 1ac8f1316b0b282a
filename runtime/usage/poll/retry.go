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

// The pauses before another attempt have full jitter: the first is up to firstPause, and the maximum doubles
// each time.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 30 * time.Second
)

// retry calls do until it succeeds or fails for good. It returns a setup error, an error that is an answer of
// the service, or ctx's own error.
func (r *run) retry(ctx context.Context, what string, do func() error) error {
	for attempt := 0; ; attempt++ {
		err := do()
		if err == nil || answered(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := r.setupError(err); err != nil {
			return err
		}
		if !r.pause(ctx, attempt, what, err) {
			return ctx.Err()
		}
	}
}

// pause waits before the next attempt. It reports whether ctx is still active.
func (r *run) pause(ctx context.Context, attempt int, what string, err error) bool {
	longest := longestPause
	if attempt < 9 {
		longest = min(longest, firstPause<<attempt)
	}
	d := time.Duration(r.jitter() * float64(longest))
	r.Logger.LogAttrs(ctx, slog.LevelWarn, "sluice: could not "+what+", trying again",
		slog.String("table", r.name), slog.Duration("in", d), slog.Any("error", err))
	r.report(func(p *Progress) { p.Waits++ })
	return r.wait(ctx, d)
}

// answered reports whether an error is an answer: another attempt would get the same one.
func answered(err error) bool {
	_, expired := errors.AsType[*types.ExpiredIteratorException](err)
	_, trimmed := errors.AsType[*types.TrimmedDataAccessException](err)
	_, vanished := errors.AsType[*types.ResourceNotFoundException](err)
	_, refused := errors.AsType[*dynamodbtypes.ConditionalCheckFailedException](err)
	return expired || trimmed || vanished || refused
}

// setupError returns the error that an operator has to fix, or nil if err may pass by itself. A sink that
// fails is not the table's fault: once it is fixed, the Poller goes on without a restart.
func (p *Poller) setupError(err error) error {
	if _, sink := errors.AsType[*usage.SinkError](err); sink {
		return nil
	}
	if _, called := errors.AsType[*smithy.OperationError](err); called {
		if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() == "AccessDeniedException" {
			return &store.SetupError{
				What: fmt.Sprintf("DynamoDB denies access to table %s or its stream", p.name), Err: err,
				Do: fmt.Sprintf("attach the policy that `sluice infra iam --role %s --table %s` prints", p.role(),
					p.Table),
			}
		}
		err = operator.CallError(p.Table, err)
	}
	if setup, ok := errors.AsType[*store.SetupError](err); ok {
		return setup
	}
	return nil
}

// role is the role whose rights p needs.
func (p *Poller) role() string {
	if p.Aggregator == nil {
		return "region-sync"
	}
	return "aggregator"
}

// wait waits for d. It reports whether ctx is still active.
func (p *Poller) wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-p.Clock.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
