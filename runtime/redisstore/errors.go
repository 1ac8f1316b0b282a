package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime"
)

// outcome is what is known of a script call once its reply is there, or is not.
type outcome uint8

const (
	applied        outcome = iota
	refused                // it has charged nobody
	unapplied              // Redis did not run it, or was not reached
	unknown                // it may have been applied: no reply
	failed                 // not applied, and trying again will not help
	unloadedScript         // Redis does not have the script
)

// String returns the outcome as observers see it.
func (o outcome) String() string {
	return [...]string{"applied", "refused", "unapplied", "unknown", "failed", "unloaded"}[o]
}

// passing are the codes of errors with which Redis has run nothing, or nothing that writes: all of them mend by themselves, or
// by an operator of Redis. A script reads all it needs before it writes, and Redis refuses its first write or none.
var passing = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "OOM", "MISCONF", "BUSY", "MOVED", "ASK",
	"max number of clients reached",
}

// classify sorts an error of a script call.
func (s *Store) classify(err error) outcome {
	if err == nil {
		return applied
	}
	if s.ofNode(err) {
		return failed
	}
	if answer, ok := errors.AsType[redis.Error](err); ok {
		text := strings.TrimPrefix(answer.Error(), "ERR ")
		if strings.HasPrefix(text, "NOSCRIPT") {
			return unloadedScript
		}
		for _, code := range passing {
			// Redis before 7 wraps what a script's command met: "Error running script ...: -OOM command not allowed ...".
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
	case isDNS, isOp && op.Op == "dial", errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return unapplied
	}
	return unknown
}

// ofNode reports that err is what a cluster answers to a client that takes it for one node, whatever it asks.
func (s *Store) ofNode(err error) bool {
	return !s.keys.rooted && slices.ContainsFunc([]string{"MOVED ", "ASK ", "CROSSSLOT "}, func(code string) bool {
		return redis.HasErrorPrefix(err, code)
	})
}

// noCluster is the error for a client that knows no cluster, and is a cluster's.
func (s *Store) noCluster(err error) *runtime.SetupError {
	return &runtime.SetupError{
		What: fmt.Sprintf("Redis is a cluster, and the client, a %T, is not one of a cluster: keys of a call would lie in different slots", s.client),
		Do:   "pass redisstore.New what redis.NewClusterClient returns",
		Err:  err,
	}
}

// setupError is an error of Redis that somebody has to mend.
func (s *Store) setupError(err error) error {
	setup := &runtime.SetupError{What: "Redis refused the call", Err: err, Do: "check the client's configuration"}
	at, isMisplaced := errors.AsType[misplaced](err)
	switch text := err.Error(); {
	case s.ofNode(err):
		return s.noCluster(err)
	case isMisplaced:
		setup.What, setup.Do = fmt.Sprintf("the key %s is not what the store keeps there", at.key), "delete it, or use another Prefix"
	case errors.Is(err, redis.ErrClosed):
		setup.What, setup.Do = "the Redis client is closed", "close it after the Limiter, once no calls are made any more"
	case redis.IsAuthError(err):
		setup.What, setup.Do = "Redis does not accept the credentials", "set the client's Username and Password"
	case redis.IsPermissionError(err), strings.Contains(text, "executing the script can't run"), strings.Contains(text, "ACL failure in script"):
		setup.What = "Redis denies the user what the store needs" // the others are what Redis says of a script, to 7.0 and since
		setup.Do = fmt.Sprintf("grant it: ACL SETUSER <user> ~%s* +@read +@write +@scripting +@connection +info +time", s.keys.prefix)
		if s.keys.rooted {
			setup.Do += " +cluster|slots"
		}
	case strings.Contains(text, "all sentinels specified"): // go-redis's words, ahead of what each has said
		setup.What, setup.Do = "no Sentinel knows the master", "set MasterName, in a URL ?master_name=, as in their `sentinel monitor`, and the addresses to those of Sentinels"
	case strings.Contains(text, "unknown command"):
		setup.What = "this Redis lacks a command that the store needs"
		setup.Do = "use Redis 5 or newer, with scripts; of a Sentinel, which is none, the client is redis.NewFailoverClient's, in a URL ?master_name=NAME"
	case strings.Contains(text, "cluster support disabled"):
		setup.What, setup.Do = "the client is one of a cluster, which this Redis is not", "pass redisstore.New what redis.NewClient returns, or leave ?addr= out of the URL"
	case strings.Contains(text, "DB index is out of range"), strings.Contains(text, "SELECT is not allowed"):
		setup.What, setup.Do = "Redis has no database of the client's number", "set the client's DB, in a URL the number behind the host, to one that it has: 0, on a cluster the only one"
	case strings.HasPrefix(text, "CROSSSLOT"):
		setup.What = "the keys of the call lie in different slots of the cluster"
		setup.Do = "acquire what has different roots one by one, and use a Prefix without '{'"
	}
	return setup
}

// misplaced is what Redis says of a command on a key that holds something else than the command is for.
type misplaced struct {
	key string
	error
}

// Unwrap returns what Redis says.
func (m misplaced) Unwrap() error { return m.error }

// onKey returns err, of a command on key.
func onKey(key string, err error) error {
	if err != nil && strings.Contains(err.Error(), wrongType) { // of a script not ahead of all, to Redis 6
		return misplaced{key, err}
	}
	return err
}

// exec runs pipe, of commands on one key each.
func exec(ctx context.Context, pipe redis.Pipeliner) error {
	commands, err := pipe.Exec(ctx)
	for _, c := range commands {
		if args := c.Args(); c.Err() != nil && len(args) > 1 {
			return onKey(fmt.Sprint(args[1]), c.Err())
		}
	}
	return err
}

// told is what an error of a read, or of an operator's write, means to who asked for it.
func (s *Store) told(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("sluice: Redis: %w", context.Canceled)
	case s.classify(err) == failed:
		return s.setupError(err)
	}
	return &runtime.UnavailableError{Resource: "Redis", Attempts: 1, Err: err}
}
