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

// tell is a script that tells the time, and has a key expire a minute later.
var tell = redis.NewScript(`
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('SET', KEYS[1], 'x')
redis.call('PEXPIREAT', KEYS[1], now + 60000)
return now`)

// TestAdvance: scripts see the time, which stands still but for Advance, by their text and by their hash.
// TTLs are as much shorter, and what was to expire is gone.
func TestAdvance(t *testing.T) {
	r := redistest.New(t)
	ctx, lasts, brief, dated := t.Context(), r.Prefix+"lasts", r.Prefix+"brief", r.Prefix+"dated"
	r.Client.Set(ctx, lasts, "x", time.Hour)
	r.Client.Set(ctx, brief, "x", 10*time.Minute)
	r.Client.Set(ctx, r.Prefix+"lasting", "x", 0)
	start := r.Now()
	const passed = 10*time.Minute + time.Millisecond
	for n := range 3 {
		want := start.Add(time.Duration(n) * passed)
		now, err := tell.Run(ctx, r.Client, []string{dated}).Int64()
		if err != nil || now != want.UnixMilli() || !r.Now().Equal(want) {
			t.Errorf("a script sees %d and the clock %v, want %v: %v", now, r.Now(), want, err)
		}
		pipe := r.Client.Pipeline()
		one, two := tell.EvalSha(ctx, pipe, []string{dated}), tell.Eval(ctx, pipe, []string{dated})
		if _, err := pipe.Exec(ctx); err != nil || one.Val() != now || two.Val() != now {
			t.Errorf("in a pipeline, scripts see %v and %v, want %v: %v", one.Val(), two.Val(), now, err)
		}
		if clock := r.Client.Time(ctx).Val(); !clock.Equal(want) {
			t.Errorf("it is %v, want %v", clock, want)
		}
		if left := r.Client.PTTL(ctx, dated).Val(); left > time.Minute || left < 59*time.Second {
			t.Errorf("the script's key expires in %v, want a minute", left)
		}
		r.Advance(passed)
	}
	if left := r.Client.TTL(ctx, lasts).Val(); left > 30*time.Minute || left < 29*time.Minute {
		t.Errorf("a key expires in %v, want half an hour", left)
	}
	if n := r.Client.Exists(ctx, brief, dated).Val(); n != 0 {
		t.Error("what was to expire is there")
	}
	if left := r.Client.TTL(ctx, r.Prefix+"lasting").Val(); left != -1 {
		t.Errorf("what has no TTL expires in %v", left)
	}
	r.Client.ScriptFlush(ctx)
	if err := tell.EvalSha(ctx, r.Client, []string{dated}).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("after a flush, %v, want that there is no such script", err)
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
		r.Client.Set(t.Context(), fmt.Sprint(r.Prefix, i), "x", time.Hour)
	}
	r.Advance(time.Minute)
	for i := range 10 {
		left := r.Client.TTL(t.Context(), fmt.Sprint(r.Prefix, i)).Val()
		if left > 59*time.Minute || left < 58*time.Minute {
			t.Errorf("key %d expires in %v, want 59m", i, left)
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
