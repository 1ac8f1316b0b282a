package lua

import (
	"crypto/rand"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// server is a Redis whose clock the test sets: miniredis, or, in `make test-redis`, a redis-server, which has
// the Lua that users have.
type server struct {
	memory *miniredis.Miniredis // nil on a redis-server
	client *redis.Client
	prefix string // of all keys
	any    string // redisstore's script for any number of keys
	dated  string // that for limits with windows
	held   string // that for limits with holds
}

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{prefix: "lua-" + rand.Text() + ":", any: looping(t, "any"), dated: looping(t, "windows"),
		held: looping(t, "holds")}
	var addr string
	if redistest.OnServer(t) {
		addr = redistest.Addr(t)
	} else {
		s.memory = miniredis.RunT(t)
		addr = s.memory.Addr()
	}
	s.client = redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = s.client.Close() })
	return s
}

// looping returns a script of redisstore's for any number of keys.
func looping(t testing.TB, name string) string {
	t.Helper()
	script, err := os.ReadFile("../../../runtime/redisstore/" + name + ".lua")
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// bucket is one key of a script: what is stored of it, and its numbers.
type bucket struct {
	key           string
	missing       bool
	half          bool // but for lastRefill
	tokens        float64
	since         int64
	filledBy      int64   // the version of the overrides that filled it; 0 if none has
	filledTo      float64 // the burst of that fill
	filledAt      int64   // when that was
	version       int64   // of the overrides that the call has
	burst, refill float64 // refill in tokens per ms
}

// call is one call of a script.
type call struct {
	fit   bool
	costs []float64 // of each key
}

func number(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }

// store puts buckets as they are at a key of this prefix.
func (s *server) store(t testing.TB, prefix string, buckets []bucket) {
	t.Helper()
	pipe := s.client.Pipeline()
	for _, b := range buckets {
		key := s.prefix + prefix + b.key
		pipe.Del(t.Context(), key)
		if !b.missing {
			pipe.HSet(t.Context(), key, "tokens", number(b.tokens))
		}
		if b.filledBy > 0 {
			pipe.HSet(t.Context(), key, "filledBy", b.filledBy, "filledTo", number(b.filledTo), "filledAt", b.filledAt)
		}
		if !b.missing || b.half {
			pipe.HSet(t.Context(), key, "lastRefill", b.since)
		}
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The uses of the clock in a script. No test can set the clock of a redis-server.
var (
	telling  = regexp.MustCompile(`(redis\.)?call\('TIME'\)`)
	expiring = regexp.MustCompile(`'EXPIRE', (KEYS\[\w+\]),`)
)

// at returns script as it runs at an instant. On a redis-server that stands in it, and how long a hash is to
// live stands in the hash.
func (s *server) at(now int64, script string) string {
	if s.memory != nil {
		s.memory.SetTime(time.UnixMilli(now))
		return script
	}
	script = telling.ReplaceAllString(script, fmt.Sprintf("{'%d', '%d'}", now/1000, now%1000*1000))
	return expiring.ReplaceAllString(script, "'HSET', $1, 'expires',")
}

// age is how old the overrides of a call may be, in ms.
const age = 60_000

// run runs a script at an instant. It returns the reply.
func (s *server) run(t testing.TB, script, prefix string, now int64, buckets []bucket,
	calls ...call) []int64 {
	t.Helper()
	keys, args := make([]string, len(buckets)), []any(nil)
	if script == s.any || script == s.dated || script == s.held {
		args = append(args, len(buckets))
	}
	args = append(args, age)
	for i, b := range buckets {
		keys[i] = s.prefix + prefix + b.key
		args = append(args, number(b.burst), number(b.refill), b.version)
	}
	for _, c := range calls {
		fit := 0
		if c.fit {
			fit = 1
		}
		args = append(args, fit)
		for _, cost := range c.costs {
			args = append(args, number(cost))
		}
	}
	reply, err := s.client.Eval(t.Context(), s.at(now, script), keys, args...).Int64Slice()
	if err != nil {
		t.Fatalf("%v of\n%s", err, script)
	}
	return reply
}

// left is what there is at buckets' keys: hashes and how long they live.
func (s *server) left(t testing.TB, prefix string, buckets []bucket) string {
	t.Helper()
	pipe := s.client.Pipeline()
	for _, k := range buckets {
		pipe.HGetAll(t.Context(), s.prefix+prefix+k.key)
		pipe.TTL(t.Context(), s.prefix+prefix+k.key)
	}
	replies, err := pipe.Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i, k := range buckets {
		fmt.Fprintln(&b, k.key, replies[2*i].(*redis.MapStringStringCmd).Val(),
			replies[2*i+1].(*redis.DurationCmd).Val())
	}
	return b.String()
}

// scriptOf returns the script for a resource with limits of these names and chains of so many buckets.
func scriptOf(chain int, limits ...string) string {
	r := &model.Resource{Name: "api", Scripts: slices.Repeat([]string{"script"}, chain)}
	for _, name := range limits {
		r.Limits = append(r.Limits, &model.Limit{Name: name})
	}
	return Scripts(r)[chain-1].Text
}
