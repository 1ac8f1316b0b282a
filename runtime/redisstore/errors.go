package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

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

// transient is the codes of errors after which Redis has written nothing, and which pass by themselves or
// are fixed by an operator of Redis. A script reads all it needs before it writes, and Redis rejects its
// first write or none.
var transient = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "OOM", "MISCONF", "BUSY",
	"MOVED", "ASK", "max number of clients reached",
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
		for _, code := range transient {
			// Redis before 7 wraps the error of a script's command: "Error running script ...: -OOM command
			// not allowed ...".
			if strings.HasPrefix(text, code) || strings.Contains(text, ": -"+code+" ") {
				return unapplied
			}
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
	what, do := s.remedy(err)
	return &store.SetupError{What: what, Do: do, Err: err}
}

// remedy returns what is wrong where Redis has failed with err, and what to do.
func (s *Store) remedy(err error) (what, do string) {
	text := err.Error()
	switch {
	case errors.Is(err, redis.ErrClosed):
		return "the Redis client is closed", "close it after the Limiter, once no calls are made any more"
	case redis.IsAuthError(err):
		return "Redis does not accept the credentials", "set the client's Username and Password"
	case isDenied(err):
		do = "grant it: ACL SETUSER <user> ~" + s.keys.prefix +
			"* +@read +@write +@scripting +@connection +info +time"
		if s.keys.hashTags {
			do += " +cluster|slots"
		}
		return "Redis denies the user what the store needs", do
	case strings.Contains(text, "all sentinels specified"): // go-redis's own words
		return "no Sentinel knows the master", "set MasterName, in a URL ?master_name=, " +
			"as in their `sentinel monitor`, and the addresses to those of Sentinels"
	case strings.Contains(text, "unknown command"):
		return "this Redis does not have a command that the store needs",
			"use Redis 5 or newer, with scripts; " +
				"for a Sentinel, create the client with redis.NewFailoverClient, in a URL ?master_name=NAME"
	case strings.Contains(text, "cluster support disabled"):
		return "the client is one of a cluster, which this Redis is not",
			"pass redisstore.New what redis.NewClient returns, or leave ?addr= out of the URL"
	case strings.Contains(text, "DB index is out of range"), strings.Contains(text, "SELECT is not allowed"):
		return "Redis has no database of the client's number",
			"set the client's DB, in a URL the number behind the host, to one that it has: 0, on a " +
				"cluster the only one"
	case strings.HasPrefix(text, "CROSSSLOT"):
		return "the keys of the call lie in different slots of the cluster",
			"acquire buckets with different roots one by one, and use a Prefix without '{'"
	}
	return "Redis refused the call", "check the client's configuration"
}

// isDenied reports whether err says that the user does not have a right. For a command within a script the
// text depends on the version: the first of the two is that of Redis up to 7.0.
func isDenied(err error) bool {
	text := err.Error()
	return redis.IsPermissionError(err) || strings.Contains(text, "executing the script can't run") ||
		strings.Contains(text, "ACL failure in script")
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
