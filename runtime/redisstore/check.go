package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

// minVersion is the first major version of Redis in which a script may write after it has read the time.
const minVersion = 5

// maxSkew is how far a host's clock may be off before it is reported. The clock only decides how long
// cached values serve.
const maxSkew = time.Second

// probe runs the commands of calls on a key that does not exist, so it changes nothing and is rejected
// where calls would be. EXPIRE comes before TIME, since a Redis that is too old rejects writes after TIME.
// Calls on resources with windows or holds run windowProbe too.
const (
	probe = "redis.call('EXPIRE', KEYS[1], 1) redis.call('HGETALL', KEYS[1]) " +
		"redis.call('HMGET', KEYS[1], 'tokens') return redis.call('TIME')"
	windowProbe = "redis.call('PEXPIREAT', KEYS[1], 1) "
)

// Check implements store.Session. It verifies the following. If nothing is recorded, it records the owner
// under the Prefix; it changes nothing else:
//
//   - Redis answers, is not too old and is not a replica.
//   - The user has the rights that calls need.
//   - No other owner is recorded under the Prefix.
//   - On a cluster, the keys of a chain are in one slot.
//
// It returns when ctx ends, which the client does not watch while it waits, or after checkTime.
func (s *session) Check(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	checked := make(chan error, 1)
	s.background.Start(func() { checked <- checker{s}.check(bounded) })
	select {
	case err := <-checked:
		if err == nil || ctx.Err() != nil || bounded.Err() == nil { // else the client has noticed it first
			return err
		}
	case <-bounded.Done():
	}
	if ctx.Err() != nil {
		return s.db.OperationError(ctx, ctx.Err())
	}
	return s.db.OperationError(ctx, fmt.Errorf("%w: no answer within %v: check the address and the network",
		context.DeadlineExceeded, checkTime))
}

// checkTime is how long Check waits for Redis, in all attempts of the client.
const checkTime = 10 * time.Second

// checker performs the steps of Check.
type checker struct{ *session }

func (c checker) check(ctx context.Context) error {
	info, err := c.db.Client.Info(ctx).Result() // all sections: before 7 Redis rejects INFO with two sections
	// A user may not have the right to INFO: then probe decides.
	if err != nil && !redis.IsPermissionError(err) && c.db.Classify(err) != database.Failed {
		return c.db.OperationError(ctx, err)
	}
	version := text.InfoField(info, "redis_version")
	if major, _, _ := strings.Cut(version, "."); major != "" {
		if n, err := strconv.Atoi(major); err == nil && n < minVersion {
			return &store.SetupError{
				What: "this is Redis " + version, Do: fmt.Sprintf("use Redis %d or newer", minVersion),
			}
		}
	}
	switch {
	case c.db.Keys.HashTags:
		if err := c.checkSlots(); err != nil {
			return err
		}
	case text.InfoField(info, "cluster_enabled") == "1":
		return c.db.NotClusterClient(nil)
	case text.InfoField(info, "role") == "slave": // calls would fail with READONLY, which a failover causes too
		return &store.SetupError{
			What: "this Redis is a replica, which takes no writes",
			Do:   "pass redisstore.New a client of its master",
		}
	}
	began := c.env.Clock.Now()
	key := c.db.Keys.Prefix + "#check"
	script := probe
	if slices.ContainsFunc(c.resources, func(r *resource) bool { return r.needs > plain }) {
		script = windowProbe + probe
	}
	clock, err := redis.NewScript(script).Run(ctx, c.db.Client, []string{key}).StringSlice()
	if err != nil {
		return c.db.OperationError(ctx, err)
	}
	c.reportSkew(began, c.env.Clock.Now(), clock)
	c.warnOfEviction(ctx, info)
	return c.claim(ctx, c.resources[0].spec.Owner)
}

// reportSkew tells the observer if this host's clock is off. clock is the server's time, read between began
// and ended.
func (c checker) reportSkew(began, ended time.Time, clock []string) {
	if c.env.Observer.Skew == nil || len(clock) != 2 {
		return
	}
	seconds, errS := strconv.ParseInt(clock[0], 10, 64)
	micros, errM := strconv.ParseInt(clock[1], 10, 64)
	if errS != nil || errM != nil {
		return
	}
	server := time.Unix(seconds, micros*1000)
	switch {
	case began.Sub(server) > maxSkew:
		c.env.Observer.Skew(began.Sub(server))
	case server.Sub(ended) > maxSkew:
		c.env.Observer.Skew(ended.Sub(server))
	}
}

// checkSlots returns an error for the first resource whose calls have keys in different slots. The cause is a
// prefix with a '{'.
func (c checker) checkSlots() error {
	for _, r := range c.resources {
		spec := r.spec
		first := ""
		for _, kind := range spec.Kinds {
			if kind.Limits == nil {
				continue
			}
			for _, limit := range spec.Limits {
				at := text.Tag(c.db.Keys.Bucket(spec.Resource, limit, "root-1", kind.Prefix+"1"))
				if first == "" {
					first = at
				}
				if at != first {
					return &store.SetupError{
						What: fmt.Sprintf("Redis is a cluster, and the keys of a call of %s would lie in "+
							"different slots, "+
							"since the prefix %q has a '{'", spec.Resource, c.db.Keys.Prefix),
						Do: "use a Prefix without '{'",
					}
				}
			}
		}
	}
	return nil
}

// warnOfEviction logs a warning if Redis may evict buckets that are not full, and so lose charges. INFO has
// the policy, and CONFIG GET on services whose INFO has less. If the user may read neither, it logs that the
// policy is unknown: no call needs these rights.
func (c checker) warnOfEviction(ctx context.Context, info string) {
	most, policy := text.InfoField(info, "maxmemory"), text.InfoField(info, "maxmemory_policy")
	if policy == "" {
		config, err := c.db.Client.ConfigGet(ctx, "maxmemory*").Result()
		if redis.IsPermissionError(err) {
			c.env.Logger.LogAttrs(ctx, slog.LevelWarn,
				"sluice: whether Redis may evict buckets is unknown, since the user may read neither INFO "+
					"nor CONFIG: see to it that maxmemory-policy is noeviction", slog.Any("error", err))
			return
		}
		most, policy = config["maxmemory"], config["maxmemory-policy"]
	}
	if most == "0" || policy == "" || policy == "noeviction" {
		return
	}
	c.env.Logger.LogAttrs(ctx, slog.LevelWarn,
		"sluice: Redis may evict buckets when its memory is full, and an evicted bucket counts as full: "+
			"set maxmemory-policy to noeviction",
		slog.String("maxmemory-policy", policy), slog.String("maxmemory", most))
}
