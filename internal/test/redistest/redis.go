package redistest

import (
	"context"
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Redis is what a test has of an engine: nobody else uses the keys that start with Prefix.
type Redis struct {
	Client redis.UniversalClient
	Prefix string

	t      testing.TB
	memory *miniredis.Miniredis  // nil on a server
	server redis.UniversalClient // without hooks; nil in miniredis
	outage *outage

	mu  sync.Mutex
	now time.Time
}

// start is what time it is at first: a whole minute, so that no limit has a remainder of before.
var start = time.UnixMilli(1_800_000_000_000)

// New returns a Redis with no keys for this test alone: miniredis, or the server of this test binary. Its
// time stands still but for Advance. The test's end deletes the keys and closes Client.
func New(t testing.TB) *Redis {
	t.Helper()
	if OnServer(t) {
		r := newRedis(t, shared.address(t))
		t.Cleanup(r.deleteKeys) // before the client is closed
		return r
	}
	memory := miniredis.RunT(t)
	memory.ClockTTL(true)
	memory.SetTime(start)
	r := newRedis(t, memory.Addr())
	r.memory = memory
	return r
}

// newRedis returns a Redis at addrs, with hooks on its Client.
func newRedis(t testing.TB, addrs ...string) *Redis {
	t.Helper()
	r := &Redis{
		t: t, Client: dial(t, addrs...), Prefix: "test-" + rand.Text() + ":", outage: &outage{}, now: start,
	}
	r.Client.AddHook(r.outage)
	if OnServer(t) {
		r.Client.AddHook(&moved{now: r.Now, texts: map[string]string{}})
		r.server = dial(t, addrs...)
	}
	return r
}

// Addr returns where the server of this test binary listens, for tests that make clients of their own; they
// use keys that nobody else uses. Without SLUICE_REDIS=server the test skips.
func Addr(t testing.TB) string {
	t.Helper()
	RequireServer(t)
	return shared.address(t)
}

// Client returns the client of a Redis for this test alone.
func Client(t testing.TB) redis.UniversalClient {
	t.Helper()
	return New(t).Client
}

// dial returns a client of the server at addr, or of the cluster at several, which the test's end closes.
func dial(t testing.TB, addrs ...string) redis.UniversalClient {
	t.Helper()
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addrs})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close the client of %s: %v", addrs, err)
		}
	})
	return client
}

// Now returns the time that Advance moves, which scripts of Client see. With After, a Redis is a clock for
// Limiters.
func (r *Redis) Now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// After returns a channel that is closed: a pause takes no time.
func (*Redis) After(time.Duration) <-chan time.Time {
	over := make(chan time.Time)
	close(over)
	return over
}

// Advance lets d pass, in whole milliseconds. It may be called concurrently.
func (r *Redis) Advance(d time.Duration) {
	if d == 0 {
		return
	}
	r.mu.Lock()
	r.now = r.now.Add(d)
	if r.memory != nil {
		r.memory.SetTime(r.now)
	}
	r.mu.Unlock()
	if r.memory == nil {
		r.age(d)
	}
}

// age has the server's keys below Prefix expire by d earlier.
func (r *Redis) age(d time.Duration) {
	older := func(ctx context.Context, node redis.Scripter) error {
		return shorten.Run(ctx, node, nil, r.Prefix+"*", d.Milliseconds()).Err()
	}
	var err error
	if cluster, ok := r.server.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(r.context(), func(ctx context.Context,
			node *redis.Client) error {
			return older(ctx, node)
		})
	} else {
		err = older(r.context(), r.server)
	}
	if err != nil {
		r.t.Errorf("let %v pass for %s: %v", d, r.Prefix, err)
	}
}

// shorten makes a node's keys expire as if ARGV[2] ms had passed.
var shorten = redis.NewScript(`
local cursor = '0'
repeat
  local found = redis.call('SCAN', cursor, 'MATCH', ARGV[1], 'COUNT', 1000)
  cursor = found[1]
  for _, key in ipairs(found[2]) do
    local left = redis.call('PTTL', key)
    if left >= 0 then
      redis.call('PEXPIRE', key, left - ARGV[2])
    end
  end
until cursor == '0'
return 'OK'`)

// context is the test's, which cleanups outlive.
func (r *Redis) context() context.Context { return context.WithoutCancel(r.t.Context()) }

func (r *Redis) deleteKeys() {
	r.Repair()
	keys := r.Client.Scan(r.context(), 0, r.Prefix+"*", 1000).Iterator()
	for keys.Next(r.context()) {
		r.Client.Del(r.context(), keys.Val())
	}
	if err := keys.Err(); err != nil {
		r.t.Errorf("delete the keys below %s: %v", r.Prefix, err)
	}
}
