package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime"
)

// oldest is the first version of Redis that lets a script write by the clock that it has read.
const oldest = 5

// tolerated is how far a host's clock may be off before somebody is told. Nothing depends on it but how long what is remembered
// serves.
const tolerated = time.Second

// probe does to a key that is not there what calls do to theirs: it reads, writes nothing, and is refused where they would be. It
// writes ahead of TIME, as a Redis that is too old takes it.
const probe = "redis.call('EXPIRE', KEYS[1], 1) redis.call('HGETALL', KEYS[1]) redis.call('HMGET', KEYS[1], 'tokens') return redis.call('TIME')"

// Check implements runtime.Session: Redis answers, is not too old, no replica, lets the user do what calls do, and a chain's keys
// share a slot if it is a cluster. It changes nothing, and ends with ctx, which the client does not look at while it waits.
func (s *session) Check(ctx context.Context) error {
	checked := make(chan error, 1)
	s.background.Start(func() { checked <- s.check(ctx) })
	select {
	case err := <-checked:
		return err
	case <-ctx.Done():
		return s.told(ctx, ctx.Err())
	}
}

func (s *session) check(ctx context.Context) error {
	info, err := s.client.Info(ctx).Result()         // all of it: before 7 Redis takes one section, and answers two with an error
	if err != nil && !redis.IsPermissionError(err) { // a user may be kept from it: then it is the calls that say
		if s.classify(err) != failed {
			return s.told(ctx, err)
		}
	}
	version := field(info, "redis_version")
	if major, _, _ := strings.Cut(version, "."); major != "" {
		if n, err := strconv.Atoi(major); err == nil && n < oldest {
			return &runtime.SetupError{What: "this is Redis " + version, Do: fmt.Sprintf("use Redis %d or newer", oldest)}
		}
	}
	switch {
	case s.keys.rooted:
		if err := s.checkSlots(); err != nil {
			return err
		}
	case field(info, "cluster_enabled") == "1":
		return s.noCluster(nil)
	case field(info, "role") == "slave": // calls would meet READONLY, which a fail-over answers too
		return &runtime.SetupError{What: "this Redis is a replica, which takes no writes", Do: "pass redisstore.New a client of its master"}
	}
	began := s.env.Clock.Now()
	clock, err := redis.NewScript(probe).Run(ctx, s.client, []string{s.keys.prefix + "#check"}).StringSlice()
	if err != nil {
		return s.told(ctx, err)
	}
	s.watchSkew(began, s.env.Clock.Now(), clock)
	s.warnOfEviction(ctx)
	return nil
}

// field returns one of what INFO says.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// watchSkew tells the observer if this host's clock is off, the server's having been read between began and ended.
func (s *session) watchSkew(began, ended time.Time, clock []string) {
	if s.env.Observer.Skew == nil || len(clock) != 2 {
		return
	}
	seconds, errS := strconv.ParseInt(clock[0], 10, 64)
	micros, errM := strconv.ParseInt(clock[1], 10, 64)
	if errS != nil || errM != nil {
		return
	}
	theirs := time.Unix(seconds, micros*1000)
	switch {
	case began.Sub(theirs) > tolerated:
		s.env.Observer.Skew(began.Sub(theirs))
	case theirs.Sub(ended) > tolerated:
		s.env.Observer.Skew(ended.Sub(theirs))
	}
}

// checkSlots says for which resource the keys of a call do not share a slot, which is the fault of the prefix.
func (s *session) checkSlots() error {
	for _, r := range s.resources {
		spec := r.spec
		first := ""
		for _, kind := range spec.Kinds {
			if kind.Limits == nil {
				continue
			}
			for _, limit := range spec.Limits {
				at := tag(s.keys.bucket(spec.Resource, limit, "root-1", kind.Prefix+"1"))
				if first == "" {
					first = at
				}
				if at != first {
					return &runtime.SetupError{
						What: fmt.Sprintf("Redis is a cluster, and the keys of a call of %s would lie in different slots, since the prefix %q has a '{'",
							spec.Resource, s.keys.prefix),
						Do: "use a Prefix without '{'",
					}
				}
			}
		}
	}
	return nil
}

// warnOfEviction logs that Redis may forget buckets that are not full, and with them what was charged. A user who may not ask is
// told nothing.
func (s *session) warnOfEviction(ctx context.Context) {
	config, err := s.client.ConfigGet(ctx, "maxmemory*").Result()
	if err != nil || config["maxmemory"] == "0" {
		return
	}
	if policy := config["maxmemory-policy"]; policy != "" && policy != "noeviction" {
		s.env.Logger.LogAttrs(ctx, slog.LevelWarn,
			"sluice: Redis may evict buckets when its memory is full, and a bucket that is gone is a full one: set maxmemory-policy to noeviction",
			slog.String("maxmemory-policy", policy), slog.String("maxmemory", config["maxmemory"]))
	}
}
