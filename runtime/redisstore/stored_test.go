package redisstore

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	peer "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/store"
)

// ttl is how long user-alice's rpm of gpt-4 lasts yet.
func (s *server) ttl(t testing.TB) time.Duration {
	t.Helper()
	const alice = "user-alice"
	key := database.Keys{Prefix: s.prefix}.Bucket("gpt-4", "rpm", alice, alice)
	ttl, err := s.client(t).TTL(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return ttl
}

// TestExpiry: every write has a bucket last for twice the time that it needs to be full, from its debt too.
func TestExpiry(t *testing.T) {
	s := simulated(t)
	d := s.process(t, s.client(t), gpt4())
	lease, err := d.Acquire(t.Context(), alice, tokens2{10, 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.ttl(t); got != 2*time.Minute {
		t.Errorf("%v, want twice what it takes from empty", got)
	}
	s.mini.FastForward(time.Minute)
	if err := lease.Settle(t.Context(), tokens2{180, 0}); err != nil { // -120
		t.Fatal(err)
	}
	if got := s.ttl(t); got != 6*time.Minute {
		t.Errorf("%v, want twice what it takes from the debt", got)
	}
	s.mini.FastForward(6 * time.Minute)
	s.at(6 * 60_000)
	d.left(t, alice, tokens2{60, 6000})
}

// TestClockBack: if Redis's clock goes back, as after a failover, nothing is refilled, or refilled twice.
func TestClockBack(t *testing.T) {
	s := simulated(t)
	d := s.process(t, s.client(t), gpt4())
	s.at(10_000)
	if _, err := d.Acquire(t.Context(), alice, tokens2{60, 0}); err != nil {
		t.Fatal(err)
	}
	s.at(0)
	_, err := d.Acquire(t.Context(), alice, tokens2{1, 0})
	if denied := denial(t, err); denied.RetryAfter != 11*time.Second {
		t.Errorf("%v, want when the clock is a second past what it was", denied)
	}
	s.at(11_000)
	d.left(t, alice, tokens2{1, 6000})
}

// TestMalformed: a key that holds something else is named, with the cure.
func TestMalformed(t *testing.T) {
	s := newServer(t)
	client := s.client(t)
	d := s.process(t, client, gpt4())
	key := database.Keys{Prefix: s.prefix}.Bucket("gpt-4", "tpm", "user-alice", "user-alice")
	for name, test := range map[string]struct {
		put  func() error
		want string
	}{
		"another type": {func() error { return client.Set(t.Context(), key, "x", 0).Err() },
			"WRONGTYPE Operation against a key holding the wrong kind of value"},
		"no number": {func() error {
			return client.HSet(t.Context(), key, "tokens", "many", "lastRefill",
				1).Err()
		},
			`tokens is "many", which is not a number`},
		"infinite": {func() error {
			return client.HSet(t.Context(), key, "tokens", "-inf", "lastRefill", 1).Err()
		}, `tokens is "-inf", which is not a number`},
		"one field": {func() error { return client.HSet(t.Context(), key, "tokens", "1").Err() },
			`lastRefill is "", which is not a number`},
		"version of its fill": {func() error {
			return client.HSet(t.Context(), key, "tokens", 1, "lastRefill", 1, "filledBy", "x").Err()
		}, `filledBy is "x", which is not a number`},
		"burst of its fill": {func() error {
			return client.HSet(t.Context(), key, "tokens", 1, "lastRefill", 1, "filledBy", 1, "filledTo", "x",
				"filledAt", 1e15).Err()
		}, `filledTo is "x", which is not a number`},
		"time of its fill": {func() error {
			return client.HSet(t.Context(), key, "tokens", 1, "lastRefill", 1, "filledBy", 1, "filledTo",
				1).Err()
		}, `filledAt is "", which is not a number`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := client.Del(t.Context(), key).Err(); err != nil {
				t.Fatal(err)
			}
			if err := test.put(); err != nil {
				t.Fatal(err)
			}
			_, err := d.Acquire(t.Context(), alice, tokens2{1, 1})
			want := fmt.Sprintf("setup: the key %s is not a bucket | %s | delete it, since a missing "+
				"bucket is a full one, or use another Prefix", key, test.want)
			if errtext.Of(err) != want {
				t.Errorf("%v, want %s", err, want)
			}
			if _, err := d.Peek(t.Context(), alice); errtext.Of(err) != want {
				t.Errorf("a peek: %v, want %s", err, want)
			}
			if _, err := d.store.Inspect(t.Context(), "gpt-4", "", "user-alice", "tpm"); errtext.Of(err) != want {
				t.Errorf("an operator's look: %v, want %s", err, want)
			}
		})
	}
}

// TestMisplaced: a key of overrides or entities that holds something else is named, with the cure, by all
// that come upon it.
func TestMisplaced(t *testing.T) {
	s := newServer(t)
	client := s.client(t)
	def := gpt4()
	d := s.process(t, client, def)
	at := database.Keys{Prefix: s.prefix}
	overrides, members := d.session.Overrides(), d.session.Members()
	stored := store.Stored{At: "user-alice", Limits: rpm(1)}
	first := func(all iter.Seq2[string, error]) error {
		for _, err := range all {
			return err
		}
		return nil
	}
	listed := func(yield func(string, error) bool) {
		for l, err := range overrides.List(t.Context(), def.spec) {
			if !yield(l.At, err) {
				return
			}
		}
	}
	acquire := func(entity caller) error {
		_, err := d.Acquire(t.Context(), entity, tokens2{1, 1})
		return err
	}
	for key, all := range map[string]map[string]func() error{
		at.Config("gpt-4", "user-alice"): {
			"acquire": func() error { return acquire(alice) },
			"get": func() error {
				_, err := overrides.Get(t.Context(), def.spec, "user-bob",
					"user-alice")
				return err
			},
			"set": func() error { _, err := overrides.Set(t.Context(), def.spec, stored); return err },
		},
		at.Configs("gpt-4"): {
			"set":  func() error { _, err := overrides.Set(t.Context(), def.spec, stored); return err },
			"list": func() error { return first(listed) },
		},
		at.Entity("user-7"): {
			"acquire": func() error { return acquire(caller{"7", "?"}) },
			"get":     func() error { _, _, err := members.Get(t.Context(), "user-7"); return err },
			"put":     func() error { return members.Put(t.Context(), store.Member{Entity: "user-7"}) },
			"delete":  func() error { return members.Delete(t.Context(), "user-7") },
		},
		at.Children("project-7"): {
			"put": func() error {
				return members.Put(t.Context(),
					store.Member{Entity: "user-8", Parent: "project-7"})
			},
			"list": func() error { return first(members.Children(t.Context(), "project-7")) },
		},
	} {
		if err := client.Set(t.Context(), key, "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
		want := "setup: the key " + key + " is not what the store keeps there | "
		for name, do := range all {
			err := do()
			if got := errtext.Of(err); !strings.HasPrefix(got, want) || !strings.Contains(got, database.WrongType) ||
				!strings.HasSuffix(got, " | delete it, or use another Prefix") {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
		if err := client.Del(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
		for name, do := range all {
			if err := do(); isA[*store.SetupError](err) { // a key that does not exist may be missed
				t.Errorf("%s, the control: %v", name, err)
			}
			if err := client.Del(t.Context(), key).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestBuckets: stored buckets are listed by entity, also among other keys, and can be deleted.
func TestBuckets(t *testing.T) {
	s := newServer(t)
	client := s.client(t)
	d := s.process(t, client, slow())
	for _, entity := range []caller{{"b", "1"}, {"b*", ""}, {"a", "1"}, {"b", ""}} {
		if _, err := d.Acquire(t.Context(), entity, tokens2{10, 100}); err != nil {
			t.Fatal(err)
		}
	}
	malformed := database.Keys{Prefix: s.prefix}.Bucket("gpt-4", "rpm", "user-x", "user-x")
	if err := client.Set(t.Context(), malformed, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	list := func(of string) (got []string, malformed int) {
		t.Helper()
		for page, err := range d.store.Buckets(t.Context(), "gpt-4", of) {
			if err != nil {
				t.Fatal(err)
			}
			malformed += len(page.Malformed)
			for _, b := range page.Buckets {
				text := b.Entity + " of " + b.Root
				for _, l := range b.Limits {
					text += fmt.Sprintf(" %s %d", l.Name, l.Tokens/bucket.Milli)
				}
				got = append(got, text)
			}
		}
		return got, malformed
	}
	const project = "project-1 of project-1 rpm 40 tpm 5800"
	users := []string{
		"user-a of user-a rpm 50 tpm 5900", "user-b of user-b rpm 40 tpm 5800",
		"user-b* of user-b* rpm 50 tpm 5900",
	}
	for of, want := range map[string][]string{
		"": append([]string{project}, users...), "user": users, "project": {project}, "user-b": users[1:2],
		"user-b*": users[2:], "user-z": nil,
	} {
		if got, _ := list(of); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", of, got, want)
		}
	}
	if _, malformed := list(""); malformed != 1 {
		t.Errorf("%d malformed, want 1", malformed)
	}
	if err := d.store.Delete(t.Context(), "gpt-4", "", "user-b", "rpm", "tpm"); err != nil {
		t.Fatal(err)
	}
	d.left(t, caller{"b", ""}, tokens2{60, 6000})
	d.left(t, caller{"b*", ""}, tokens2{50, 5900})
}

// TestBucketsNowhere: on a cluster whose masters have no slots, Buckets fails instead of listing none.
func TestBucketsNowhere(t *testing.T) {
	s := simulated(t)
	s.mini.Server().SetPreHook(func(c *peer.Peer, cmd string, _ ...string) bool {
		if cmd != "CLUSTER" {
			return false
		}
		c.WriteLen(0)
		return true
	})
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.addr}})
	t.Cleanup(func() { _ = client.Close() })
	pages, failed := 0, false
	for _, err := range New(client, Prefix(s.prefix)).Buckets(t.Context(), "gpt-4", "") {
		pages++
		failed = isA[*store.UnavailableError](err) &&
			strings.Contains(err.Error(), "no master of the cluster has a slot")
	}
	if pages != 1 || !failed {
		t.Errorf("%d pages, failed: %t", pages, failed)
	}
}

// slow is gpt4 with limits of which nothing comes back while a test runs.
func slow() *definition {
	def := gpt4()
	for i := range def.spec.Kinds {
		def.spec.Kinds[i].Limits = []bucket.Limit{bucket.Per(60, 366*24*time.Hour),
			bucket.Per(6000, 366*24*time.Hour)}
	}
	return def
}

// denial is the *store.DeniedError that err has to be.
func denial(t testing.TB, err error) *store.DeniedError {
	t.Helper()
	denied, ok := err.(*store.DeniedError) //nolint:errorlint // the store's own
	if !ok {
		t.Fatalf("%v, want a denial", err)
	}
	return denied
}
