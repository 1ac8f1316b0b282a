package runtime

import (
	"context"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/internal/seal"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// Store keeps buckets. Only this module's stores implement it, so that it can grow; to test a handler, mock Acquirer.
type Store interface {
	// Open prepares definitions for use under env, without I/O. An error names what to add to limits.yaml.
	Open(env *Env, defs ...Definition) (Session, error)
	// Sealed keeps the interface to this module.
	Sealed(seal.Sealed)
}

// Session is a Store opened for one Limiter. Its methods are safe for concurrent use and return this package's errors.
type Session interface {
	// Acquire charges every bucket of call, or none. It fills in After and Dropped of each Bucket; on a *DeniedError,
	// After holds what the refusal was computed from.
	Acquire(ctx context.Context, call *Call) error
	// Settle turns each part's Cost, taken before, into its Actual. ctx bounds it.
	Settle(ctx context.Context, call *Call) error
	// Peek fills in After of each Bucket from a consistent read and changes nothing; After is nil where there is no
	// bucket yet.
	Peek(ctx context.Context, call *Call) error
	// Check verifies what serving needs: the table, its indexes, its layout, the clock. An error is a *SetupError.
	Check(ctx context.Context) error
	// Close waits until background work is done, or ctx is.
	Close(ctx context.Context) error
}

// Env is what a Limiter lends its store. All fields are set.
type Env struct {
	Clock         Clock
	Observer      *Observer
	Logger        *slog.Logger
	SettleTimeout time.Duration // bounds what outlives a caller
}

// Call is one request to a store, in vectors: a chain of buckets for each part.
type Call struct {
	Parts  []Part
	Called time.Time // when the acquire, settle or release was called
}

// Part is one resource's share of a Call.
type Part struct {
	Def     Definition
	Buckets []Bucket // the chain, nearest first
	Cost    []int64  // what each bucket is charged, or was, in millitokens and schema order
	Actual  []int64  // what Settle makes of it
}

// Bucket is one bucket of a chain.
type Bucket struct {
	Entity  string // as stored: user-123
	Kind    int
	After   *bucket.Image // as the call left it, found it or refused it
	Dropped []bool        // limits that this bucket lacked, so that they were not charged; nil when it had all
}
