package lua

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/gen/internal/model"
)

// server is a Redis whose clock the test sets.
type server struct {
	redis  *miniredis.Miniredis
	client *redis.Client
	any    string // redisstore's script for any number of keys
}

func newServer(t *testing.T) *server {
	t.Helper()
	script, err := os.ReadFile("../../../runtime/redisstore/any.lua")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{redis: miniredis.RunT(t), any: string(script)}
	s.client = redis.NewClient(&redis.Options{Addr: s.redis.Addr()})
	t.Cleanup(func() { _ = s.client.Close() })
	return s
}

// bucket is one key of a script: what is stored of it, and its numbers.
type bucket struct {
	key           string
	missing       bool
	tokens        float64
	since         int64
	burst, refill float64 // refill in tokens per ms
}

// call is one call of a script.
type call struct {
	fit   bool
	costs []float64 // of each key
}

func number(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }

// store puts buckets as they are at a key of this prefix.
func (s *server) store(prefix string, buckets []bucket) {
	for _, b := range buckets {
		if s.redis.Del(prefix + b.key); !b.missing {
			s.redis.HSet(prefix+b.key, "tokens", number(b.tokens), "lastRefill", strconv.FormatInt(b.since, 10))
		}
	}
}

// run runs a script at an instant. It returns the reply.
func (s *server) run(t testing.TB, script, prefix string, now int64, buckets []bucket, calls ...call) []int64 {
	t.Helper()
	s.redis.SetTime(time.UnixMilli(now))
	keys, args := make([]string, len(buckets)), []any(nil)
	if script == s.any {
		args = append(args, len(buckets))
	}
	for i, b := range buckets {
		keys[i] = prefix + b.key
		args = append(args, number(b.burst), number(b.refill))
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
	reply, err := s.client.Eval(t.Context(), script, keys, args...).Int64Slice()
	if err != nil {
		t.Fatalf("%v of\n%s", err, script)
	}
	return reply
}

// left is what there is at buckets' keys: hashes and how long they live.
func (s *server) left(prefix string, buckets []bucket) string {
	var b strings.Builder
	for _, k := range buckets {
		fields, _ := s.redis.HKeys(prefix + k.key)
		for _, f := range fields {
			fmt.Fprintf(&b, "%s %s=%s ", k.key, f, s.redis.HGet(prefix+k.key, f))
		}
		fmt.Fprintf(&b, "for %v\n", s.redis.TTL(prefix+k.key))
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
