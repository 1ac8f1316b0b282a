package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/remedy"
	"github.com/sluice-go/sluice/runtime/store"
)

// Outcome is what is known of a script call after its reply, or without one.
type Outcome uint8

// The outcomes.
const (
	Applied        Outcome = iota // it has charged one of its requests at least
	Refused                       // it has denied all its requests
	Unapplied                     // Redis did not run it, or was not reached
	Unknown                       // it may have been applied: there was no reply
	Failed                        // not applied, and another attempt does not help
	UnloadedScript                // Redis does not have the script
	Misdated                      // it opens a window, but not with the boundaries that it was sent
)

// String returns the outcome as observers see it.
func (o Outcome) String() string {
	return [...]string{"applied", "refused", "unapplied", "unknown", "failed", "unloaded", "misdated"}[o]
}

// Classify returns the outcome of a script call that ended with err.
func (d *DB) Classify(err error) Outcome {
	if err == nil {
		return Applied
	}
	if d.needsClusterClient(err) {
		return Failed
	}
	if answer, ok := errors.AsType[redis.Error](err); ok {
		text := strings.TrimPrefix(answer.Error(), "ERR ")
		if strings.HasPrefix(text, "NOSCRIPT") {
			return UnloadedScript
		}
		if remedy.Passes(text) {
			return Unapplied
		}
		return Failed
	}
	op, isOp := errors.AsType[*net.OpError](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, redis.ErrClosed):
		return Failed
	case isDNS, isOp && op.Op == "dial", errors.Is(err, redis.ErrPoolTimeout),
		errors.Is(err, redis.ErrPoolExhausted):
		return Unapplied
	}
	return Unknown
}

// needsClusterClient reports whether err is the reply of a cluster to a client made for a single node.
func (d *DB) needsClusterClient(err error) bool {
	return !d.Keys.HashTags && slices.ContainsFunc([]string{"MOVED ", "ASK ", "CROSSSLOT "},
		func(code string) bool {
			return redis.HasErrorPrefix(err, code)
		})
}

// NotClusterClient returns the error for a client made for a single node that is connected to a cluster.
func (d *DB) NotClusterClient(err error) *store.SetupError {
	return &store.SetupError{
		What: fmt.Sprintf("Redis is a cluster, and the client, a %T, is not one of a cluster: "+
			"keys of a call would lie in different slots", d.Client),
		Do:  "pass redisstore.New what redis.NewClusterClient returns",
		Err: err,
	}
}

// SetupError returns the error for err, which an operator has to fix: it says how.
func (d *DB) SetupError(err error) error {
	wrong, isWrongType := errors.AsType[wrongTypeError](err)
	switch {
	case d.needsClusterClient(err):
		return d.NotClusterClient(err)
	case isWrongType:
		return &store.SetupError{
			What: fmt.Sprintf("the key %s is not what the store keeps there", store.Quote(wrong.key)),
			Do:   "delete it, or use another Prefix",
			Err:  err,
		}
	}
	what, do := remedy.Of(err, d.Keys.Prefix, d.Keys.HashTags)
	return &store.SetupError{What: what, Do: do, Err: err}
}

// wrongTypeError is Redis's error for a command on a key that holds another type.
type wrongTypeError struct {
	key string
	error
}

// Unwrap returns Redis's error.
func (e wrongTypeError) Unwrap() error { return e.error }

// OnKey returns err, of a command on key, with the key added where the key's type is wrong.
func OnKey(key string, err error) error {
	// in a script's error of Redis 6 it is not at the start
	if err != nil && strings.Contains(err.Error(), WrongType) {
		return wrongTypeError{key, err}
	}
	return err
}

// OperationError returns the error to report for err, which ended a read or an operator's write: nil, the
// caller's cancellation, a *store.SetupError or a *store.UnavailableError.
func (d *DB) OperationError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("sluice: Redis: %w", context.Canceled)
	case d.Classify(err) == Failed:
		return d.SetupError(err)
	}
	return &store.UnavailableError{Resource: "Redis", Attempts: 1, Err: err}
}
