package redistest_test

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// TestAdvance: a bucket is as much older, a TTL as much shorter, and what was to expire is gone.
func TestAdvance(t *testing.T) {
	r := redistest.New(t)
	ctx, bucket, brief := t.Context(), r.Prefix+"bucket", r.Prefix+"brief"
	before := r.Now()
	r.Client.HSet(ctx, bucket, "tokens", "1.5", "lastRefill", before.UnixMilli(), "filledAt", before.UnixMilli())
	r.Client.Expire(ctx, bucket, time.Hour)
	r.Client.Set(ctx, brief, "x", 10*time.Minute)
	r.Client.Set(ctx, r.Prefix+"lasting", "x", 0)
	const passed = 10 * time.Minute
	r.Advance(passed)
	if now := r.Now(); now.Sub(before) < passed || now.Sub(before) > passed+time.Minute {
		t.Errorf("it is %v later, want %v", now.Sub(before), passed)
	}
	for _, field := range []string{"lastRefill", "filledAt"} {
		instant, err := r.Client.HGet(ctx, bucket, field).Int64()
		if err != nil {
			t.Fatal(err)
		}
		if age := r.Now().Add(-r.Aged()).UnixMilli() - instant; age < passed.Milliseconds() ||
			age > (passed+time.Minute).Milliseconds() {
			t.Errorf("%s is %d ms old, want %v", field, age, passed)
		}
	}
	if tokens := r.Client.HGet(ctx, bucket, "tokens").Val(); tokens != "1.5" {
		t.Errorf("the bucket has %s tokens, want 1.5", tokens)
	}
	if left := r.Client.TTL(ctx, bucket).Val(); left > 50*time.Minute || left < 49*time.Minute {
		t.Errorf("the bucket expires in %v, want 50m", left)
	}
	if n := r.Client.Exists(ctx, brief).Val(); n != 0 {
		t.Error("what was to expire is there")
	}
	if left := r.Client.TTL(ctx, r.Prefix+"lasting").Val(); left != -1 {
		t.Errorf("what has no TTL expires in %v", left)
	}
}

func TestKeysLiveAsLongAsTheirTest(t *testing.T) {
	one := redistest.New(t)
	var other *redistest.Redis
	t.Run("another", func(t *testing.T) {
		other = redistest.New(t)
		if err := other.Client.Set(t.Context(), other.Prefix+"key", "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if one.Prefix == other.Prefix {
			t.Errorf("two tests have prefix %s", one.Prefix)
		}
	})
	if n := one.Client.Exists(t.Context(), other.Prefix+"key").Val(); n != 0 {
		t.Error("a key outlived its test")
	}
}

// TestBreak: commands and pipelines find no listener until it is repaired.
func TestBreak(t *testing.T) {
	r := redistest.New(t)
	r.Break()
	if err := r.Client.Get(t.Context(), r.Prefix).Err(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a command: %v", err)
	}
	_, err := r.Client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		return p.Get(t.Context(),
			r.Prefix).Err()
	})
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a pipeline: %v", err)
	}
	r.Repair()
	if err := r.Client.Get(t.Context(), r.Prefix).Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("repaired: %v", err)
	}
}

// TestRestart: a server that is stopped refuses connections, and the one after it has neither keys nor
// scripts.
func TestRestart(t *testing.T) {
	s := redistest.StartServer(t)
	client := s.Client()
	script := redis.NewScript(`return 7`)
	client.Set(t.Context(), "key", "x", 0)
	if err := script.Load(t.Context(), client).Err(); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := client.Ping(t.Context()).Err(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("stopped: %v", err)
	}
	s.Restart()
	if n, err := client.Exists(t.Context(), "key").Result(); n != 0 || err != nil {
		t.Errorf("restarted: %d keys, %v", n, err)
	}
	if err := script.EvalSha(t.Context(), client, nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("restarted: %v, want NOSCRIPT", err)
	}
}

// TestCluster: every slot is served, and keys of two slots in one command are refused.
func TestCluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	client := cluster.Client(t)
	for i := range 50 {
		if err := client.Set(t.Context(), fmt.Sprint("key", i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.MSet(t.Context(), "a{1}", 1, "b{1}", 2).Err(); err != nil {
		t.Errorf("two keys of one slot: %v", err)
	}
	if err := client.Do(t.Context(), "MSET", "a", 1, "b", 2).Err(); !redis.HasErrorPrefix(err, "CROSSSLOT") {
		t.Errorf("two keys of two slots: %v", err)
	}
	r := cluster.New(t)
	for i := range 10 {
		r.Client.HSet(t.Context(), fmt.Sprint(r.Prefix, i), "lastRefill", 100_000)
	}
	r.Advance(time.Second)
	for i := range 10 {
		if refilled := r.Client.HGet(t.Context(), fmt.Sprint(r.Prefix, i),
			"lastRefill").Val(); refilled != "99000" {
			t.Errorf("bucket %d was refilled at %s, want 99000", i, refilled)
		}
	}
}

// recorder is a testing.TB that notes how a test ended.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) { r.end("failed: ", format, args) }

func (r *recorder) Skipf(format string, args ...any) { r.end("skipped: ", format, args) }

func (r *recorder) end(how, format string, args []any) {
	r.ended = how + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// TestWhichEngine: a run for miniredis skips what is about redis-server; one for redis-server fails where
// there is none, and so does one for nothing that exists.
func TestWhichEngine(t *testing.T) {
	for _, test := range []struct{ engine, program, path, want string }{
		{"", "", "",
			"skipped: this test needs redis-server: run `make test-redis`, which sets SLUICE_REDIS=server"},
		{"server", "", "/nowhere", "failed: no redis-server, which SLUICE_REDIS=server asks for: " +
			"redis-server is not on PATH: apt-get install redis-server"},
		{"server", "valkey-server", "/nowhere", "failed: no redis-server, which SLUICE_REDIS=server asks for: " +
			"valkey-server is not on PATH: apt-get install valkey-server"},
		{"sever", "", "", "failed: SLUICE_REDIS=sever: want server, or nothing for miniredis"},
	} {
		t.Run(test.engine+test.program, func(t *testing.T) {
			t.Setenv("SLUICE_REDIS", test.engine)
			t.Setenv("SLUICE_REDIS_SERVER", test.program)
			if test.path != "" {
				t.Setenv("PATH", test.path)
			}
			r := &recorder{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				redistest.StartServer(r)
			}()
			<-done
			if r.ended != test.want {
				t.Errorf("the test %s\nwant it %s", r.ended, test.want)
			}
		})
	}
}
