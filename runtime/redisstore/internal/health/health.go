// Package health checks whether a Redis can serve a store.
package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// Checker checks a Redis for a session.
type Checker struct {
	DB      *database.DB
	Env     *store.Env
	Specs   []*store.Spec // of the session's resources
	Windows bool          // a limit has windows or holds
}

// Check verifies what the store's Check says. It may return long after ctx has ended.
func (c Checker) Check(ctx context.Context) error {
	info, err := c.DB.Client.Info(ctx).Result() // all sections: before 7 Redis rejects INFO with two sections
	// A user may not have the right to INFO: then probe decides.
	if err != nil && !redis.IsPermissionError(err) && c.DB.Classify(err) != database.Failed {
		return c.DB.OperationError(ctx, err)
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
	case c.DB.Keys.HashTags:
		if err := c.CheckSlots(); err != nil {
			return err
		}
	case text.InfoField(info, "cluster_enabled") == "1":
		return c.DB.NotClusterClient(nil)
	case text.InfoField(info, "role") == "slave": // calls would fail with READONLY, which a failover causes too
		return &store.SetupError{
			What: "this Redis is a replica, which takes no writes",
			Do:   "pass redisstore.New a client of its master",
		}
	}
	began := c.Env.Clock.Now()
	key := c.DB.Keys.Prefix + "#check"
	script := probe
	if c.Windows {
		script = windowProbe + probe
	}
	clock, err := redis.NewScript(script).Run(ctx, c.DB.Client, []string{key}).StringSlice()
	if err != nil {
		return c.DB.OperationError(ctx, err)
	}
	c.reportSkew(began, c.Env.Clock.Now(), clock)
	c.WarnOfEviction(ctx, info)
	return c.claim(ctx, c.Specs[0].Owner)
}

// reportSkew tells the observer if this host's clock is off. clock is the server's time, read between began
// and ended.
func (c Checker) reportSkew(began, ended time.Time, clock []string) {
	if c.Env.Observer.Skew == nil || len(clock) != 2 {
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
		c.Env.Observer.Skew(began.Sub(server))
	case server.Sub(ended) > maxSkew:
		c.Env.Observer.Skew(ended.Sub(server))
	}
}

// CheckSlots returns an error for the first resource whose calls have keys in different slots. The cause is a
// prefix with a '{'.
func (c Checker) CheckSlots() error {
	for _, spec := range c.Specs {
		first := ""
		for _, kind := range spec.Kinds {
			if kind.Limits == nil {
				continue
			}
			for _, limit := range spec.Limits {
				at := text.Tag(c.DB.Keys.Bucket(spec.Resource, limit, "root-1", kind.Prefix+"1"))
				if first == "" {
					first = at
				}
				if at != first {
					return &store.SetupError{
						What: fmt.Sprintf("Redis is a cluster, and the keys of a call of %s would lie in "+
							"different slots, "+
							"since the prefix %q has a '{'", spec.Resource, c.DB.Keys.Prefix),
						Do: "use a Prefix without '{'",
					}
				}
			}
		}
	}
	return nil
}

// WarnOfEviction logs a warning if Redis may evict buckets that are not full, and so lose charges. INFO has
// the policy, and CONFIG GET on services whose INFO has less. If the user may read neither, it logs that the
// policy is unknown: no call needs these rights.
func (c Checker) WarnOfEviction(ctx context.Context, info string) {
	most, policy := text.InfoField(info, "maxmemory"), text.InfoField(info, "maxmemory_policy")
	if policy == "" {
		config, err := c.DB.Client.ConfigGet(ctx, "maxmemory*").Result()
		if redis.IsPermissionError(err) {
			c.Env.Logger.LogAttrs(ctx, slog.LevelWarn,
				"sluice: whether Redis may evict buckets is unknown, since the user may read neither INFO "+
					"nor CONFIG: see to it that maxmemory-policy is noeviction", slog.Any("error", err))
			return
		}
		most, policy = config["maxmemory"], config["maxmemory-policy"]
	}
	if most == "0" || policy == "" || policy == "noeviction" {
		return
	}
	c.Env.Logger.LogAttrs(ctx, slog.LevelWarn,
		"sluice: Redis may evict buckets when its memory is full, and an evicted bucket counts as full: "+
			"set maxmemory-policy to noeviction",
		slog.String("maxmemory-policy", policy), slog.String("maxmemory", most))
}

// claim compares the owner recorded under the prefix with own, and records own if there is none. An own of ""
// fits every prefix. Another owner is a *store.SetupError that names both.
func (c Checker) claim(ctx context.Context, own string) error {
	if own == "" {
		return nil
	}
	key := c.DB.Keys.Owner()
	recorded, err := c.DB.Client.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		if err = c.DB.Client.SetNX(ctx, key, own, 0).Err(); err == nil {
			recorded, err = c.DB.Client.Get(ctx, key).Result() // another process may have been first
		}
	}
	switch {
	case err != nil:
		return c.DB.OperationError(ctx, err)
	case recorded != own:
		return OtherOwner(c.DB.Keys.Prefix, recorded, own)
	}
	return nil
}

// OtherOwner returns the error for a prefix of keys that records another owner than own.
func OtherOwner(prefix, recorded, own string) error {
	return store.OtherOwner(fmt.Sprintf("Redis under the prefix %q", prefix), recorded, own)
}
