package redisstore

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

// outcome is what is known of a script call after its reply, or without one.
type outcome uint8

const (
	applied        outcome = iota
	refused                // it has denied all its requests
	unapplied              // Redis did not run it, or was not reached
	unknown                // it may have been applied: there was no reply
	failed                 // not applied, and another attempt does not help
	unloadedScript         // Redis does not have the script
)

// String returns the outcome as observers see it.
func (o outcome) String() string {
	return [...]string{"applied", "refused", "unapplied", "unknown", "failed", "unloaded"}[o]
}

// classify returns the outcome of a script call that ended with err.
func (s *Store) classify(err error) outcome {
	if err == nil {
		return applied
	}
	if s.needsClusterClient(err) {
		return failed
	}
	if answer, ok := errors.AsType[redis.Error](err); ok {
		text := strings.TrimPrefix(answer.Error(), "ERR ")
		if strings.HasPrefix(text, "NOSCRIPT") {
			return unloadedScript
		}
		if remedy.Passes(text) {
			return unapplied
		}
		return failed
	}
	op, isOp := errors.AsType[*net.OpError](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, redis.ErrClosed):
		return failed
	case isDNS, isOp && op.Op == "dial", errors.Is(err, redis.ErrPoolTimeout),
		errors.Is(err, redis.ErrPoolExhausted):
		return unapplied
	}
	return unknown
}

// needsClusterClient reports whether err is the reply of a cluster to a client made for a single node.
func (s *Store) needsClusterClient(err error) bool {
	return !s.keys.hashTags && slices.ContainsFunc([]string{"MOVED ", "ASK ", "CROSSSLOT "},
		func(code string) bool {
			return redis.HasErrorPrefix(err, code)
		})
}

// notClusterClient returns the error for a client made for a single node that is connected to a cluster.
func (s *Store) notClusterClient(err error) *store.SetupError {
	return &store.SetupError{
		What: fmt.Sprintf("Redis is a cluster, and the client, a %T, is not one of a cluster: "+
			"keys of a call would lie in different slots", s.client),
		Do:  "pass redisstore.New what redis.NewClusterClient returns",
		Err: err,
	}
}

// setupError returns the error for err, which an operator has to fix: it says how.
func (s *Store) setupError(err error) error {
	wrong, isWrongType := errors.AsType[wrongTypeError](err)
	switch {
	case s.needsClusterClient(err):
		return s.notClusterClient(err)
	case isWrongType:
		return &store.SetupError{
			What: fmt.Sprintf("the key %s is not what the store keeps there", store.Quote(wrong.key)),
			Do:   "delete it, or use another Prefix",
			Err:  err,
		}
	}
	what, do := remedy.Of(err, s.keys.prefix, s.keys.hashTags)
	return &store.SetupError{What: what, Do: do, Err: err}
}

// wrongTypeError is Redis's error for a command on a key that holds another type.
type wrongTypeError struct {
	key string
	error
}

// Unwrap returns Redis's error.
func (e wrongTypeError) Unwrap() error { return e.error }

// onKey returns err, of a command on key, with the key added where the key's type is wrong.
func onKey(key string, err error) error {
	// in a script's error of Redis 6 it is not at the start
	if err != nil && strings.Contains(err.Error(), wrongType) {
		return wrongTypeError{key, err}
	}
	return err
}

// exec runs pipe, whose commands have one key each, and returns the first error.
func exec(ctx context.Context, pipe redis.Pipeliner) error {
	commands, err := pipe.Exec(ctx)
	for _, c := range commands {
		if args := c.Args(); c.Err() != nil && len(args) > 1 {
			return onKey(fmt.Sprint(args[1]), c.Err())
		}
	}
	return err
}

// operationError returns the error to report for err, which ended a read or an operator's write: nil, the
// caller's cancellation, a *store.SetupError or a *store.UnavailableError.
func (s *Store) operationError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("sluice: Redis: %w", context.Canceled)
	case s.classify(err) == failed:
		return s.setupError(err)
	}
	return &store.UnavailableError{Resource: "Redis", Attempts: 1, Err: err}
}
