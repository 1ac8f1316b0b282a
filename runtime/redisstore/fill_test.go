package redisstore

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/fill"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

// raise overrides user-alice's rpm, and fills her bucket.
func (d *process) raise(t testing.TB, def *definition, limit bucket.Limit,
	prev store.Revision) store.Revision {
	t.Helper()
	to := store.Stored{At: "user-alice", Limits: []*bucket.Limit{&limit, nil}, Revision: prev}
	next, err := d.session.Overrides().Set(t.Context(), def.spec, to)
	if err != nil {
		t.Fatal(err)
	}
	d.fill(t, def)
	return next
}

// fill fills user-alice's bucket.
func (d *process) fill(t testing.TB, def *definition) {
	t.Helper()
	if err := d.session.Overrides().Fill(t.Context(), def.spec, 0, "user-alice", "user-alice"); err != nil {
		t.Fatal(err)
	}
}

// take acquires cost of rpm for user-alice.
func (d *process) take(t testing.TB, cost int64) *runtime.Lease[tokens2] {
	t.Helper()
	lease, err := d.Acquire(t.Context(), alice, tokens2{cost, 0})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// TestFilledTo: a process with older overrides than those of a fill refills and gives back up to the burst of
// that fill, be it higher or lower than its own.
func TestFilledTo(t *testing.T) {
	s := simulated(t)
	def := gpt4()
	old, d := s.process(t, s.client(t), def, runtime.WithClock(&handClock{})), s.process(t, s.client(t), def)
	old.left(t, alice, tokens2{60, 6000})
	raised := d.raise(t, def, bucket.Per(600, time.Minute), "")
	d.take(t, 100)
	s.at(30_000)
	lease := old.take(t, 50) // 500, 30 refilled by its own limit
	d.left(t, alice, tokens2{480, 6000})
	lease.Release(t.Context())
	d.left(t, alice, tokens2{530, 6000})
	s.at(60_000)
	lease = old.take(t, 50)
	d.take(t, 10)
	lease.Release(t.Context())
	s.at(69_000)
	old.take(t, 1)
	d.left(t, alice, tokens2{558, 6000}) // 550, 9 refilled, 1 taken

	d.raise(t, def, bucket.Per(30, time.Minute), raised)
	lease = old.take(t, 20)
	s.at(79_000) // 10 and 10 by its own limit
	lease.Release(t.Context())
	old.left(t, alice, tokens2{30, 6000})
}

// TestFilledToForTheTime: a process goes by the burst of a fill for as long as its overrides may be older.
func TestFilledToForTheTime(t *testing.T) {
	s := simulated(t)
	def, ttl := slow(), 2*time.Minute
	old := s.process(t, s.client(t), def, runtime.WithClock(&handClock{}), runtime.WithCacheTTL(ttl))
	d := s.process(t, s.client(t), def)
	old.left(t, alice, tokens2{60, 6000})
	d.raise(t, def, *rpm(600)[0], "")
	s.at(ttl.Milliseconds() + mostLate)
	old.take(t, 1)
	d.left(t, alice, tokens2{599, 6000})
	s.at(ttl.Milliseconds() + mostLate + 1)
	old.take(t, 1)
	d.left(t, alice, tokens2{59, 6000})
}

// TestFillEvicted: without the override that filled a bucket, which Redis may evict, a fill still fills, and
// calls no longer go by its burst.
func TestFillEvicted(t *testing.T) {
	s := newServer(t)
	def, client := slow(), s.client(t)
	s.process(t, client, def).raise(t, def, *rpm(600)[0], "")
	evicted := database.Keys{Prefix: s.prefix}.Config("gpt-4", "user-alice")
	if n, err := client.Del(t.Context(), evicted).Result(); n != 1 || err != nil {
		t.Fatalf("%d overrides deleted, %v", n, err)
	}
	d := s.process(t, client, def)
	d.take(t, 60)
	d.fill(t, def)
	d.take(t, 60)
	d.fill(t, def)
	d.take(t, 1)
	d.left(t, alice, tokens2{59, 6000})
}

// newerFills hooks into a client. Before each fill by it, another one fills the bucket by newer overrides.
type newerFills struct {
	noReads
	fills int
	newer func()
}

func (n *newerFills) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" && cmd.Args()[1] == redis.NewScript(fill.Script).Hash() {
			n.fills++
			n.newer()
		}
		return next(ctx, cmd)
	}
}

// TestFillContended: a fill that newer ones overtake each time says so.
func TestFillContended(t *testing.T) {
	s := newServer(t)
	def, client, others := slow(), s.client(t), s.client(t)
	key := database.Keys{Prefix: s.prefix}.Bucket("gpt-4", "rpm", "", "user-alice")
	n := &newerFills{}
	n.newer = func() {
		args := append(text.Params(*rpm(50)[0], int64(n.fills)), "")
		err := redis.NewScript(fill.Script).Run(t.Context(), others, []string{key}, args...).Err()
		if err != nil {
			t.Error(err)
		}
	}
	client.AddHook(n)
	d := s.process(t, client, def)
	err := d.session.Overrides().Fill(t.Context(), def.spec, 0, "user-alice", "user-alice")
	if !isA[*store.ContendedError](err) || n.fills != fill.Attempts {
		t.Errorf("%v after %d fills, want a ContendedError after %d", err, n.fills, fill.Attempts)
	}
}

// TestFillByOlderSchema: a fill by a limits.yaml with a lower burst takes nothing from a bucket that has
// more, and does not let it expire sooner.
func TestFillByOlderSchema(t *testing.T) {
	s := simulated(t)
	older, newer := gpt4(), gpt4()
	newer.spec.Kinds[0].Limits = []bucket.Limit{bucket.Per(600, time.Hour), bucket.Per(6000, time.Minute)}
	d, old := s.process(t, s.client(t), newer), s.process(t, s.client(t), older)
	d.take(t, 100)
	ttl := s.ttl(t)
	old.fill(t, older)
	d.left(t, alice, tokens2{500, 6000})
	if got := s.ttl(t); got != ttl || ttl != 2*time.Hour {
		t.Errorf("%v, want the %v of the last call", got, ttl)
	}
	d.take(t, 500)
	old.fill(t, older)
	d.left(t, alice, tokens2{60, 6000})
	s.at(time.Minute.Milliseconds())
	d.left(t, alice, tokens2{70, 6000})
}

// TestFillRepairs: a fill replaces a malformed bucket.
func TestFillRepairs(t *testing.T) {
	for _, fields := range [][]any{
		{"tokens", "many"}, {"tokens", "inf"}, {"tokens", "nan"}, {"tokens", "1e999"}, {"lastRefill", "late"},
		{"filledBy", "x"}, {"filledBy", "9", "filledTo", "x"}, {"tokens", "600", "filledBy", "9"},
	} {
		s := newServer(t)
		def, client := slow(), s.client(t)
		d := s.process(t, client, def)
		d.take(t, 10)
		key := database.Keys{Prefix: s.prefix}.Bucket("gpt-4", "rpm", "", "user-alice")
		if err := client.HSet(t.Context(), key, fields...).Err(); err != nil {
			t.Fatal(err)
		}
		d.fill(t, def)
		d.left(t, alice, tokens2{60, 6000})
		if _, err := d.store.Inspect(t.Context(), "gpt-4", "", "user-alice", "rpm"); err != nil {
			t.Errorf("%v: %v", fields, err)
		}
	}
}

// heldCharge holds the reply to the first script call that Redis has run.
type heldCharge struct {
	noReads
	replied, deliver chan struct{}
	held             atomic.Bool
}

func (h *heldCharge) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && strings.HasPrefix(cmd.Name(), "eval") && h.held.CompareAndSwap(false, true) {
			close(h.replied)
			<-h.deliver
		}
		return err
	}
}

// TestFillOvertakes: a reply from before a fill, which comes after it, does not bring back the dropped image.
func TestFillOvertakes(t *testing.T) {
	s := newServer(t)
	def, h := slow(), &heldCharge{replied: make(chan struct{}), deliver: make(chan struct{})}
	client := s.client(t)
	client.AddHook(h)
	d := s.process(t, client, def)
	first := d.ask(t.Context(), alice, tokens2{10, 0})
	<-h.replied
	d.fill(t, def)
	close(h.deliver)
	if err := first.end(); err != nil {
		t.Fatal(err)
	}
	if all := d.Lookup(alice); len(all) != 0 {
		t.Errorf("%+v is cached", all)
	}
	d.take(t, 1)
	if all := d.Lookup(alice); len(all) != 2 {
		t.Errorf("%+v is cached after the next call, want two limits", all)
	}
}
