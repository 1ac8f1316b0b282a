package redisstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	peer "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/internal/test/redistest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestTag compares tags with those that Redis documents.
func TestTag(t *testing.T) {
	for key, want := range map[string]string{
		"foo": "foo", "{foo}bar": "foo", "a{foo}{bar}": "foo", "{}foo": "{}foo", "foo{{bar}}zap": "{bar",
		"foo{bar": "foo{bar",
	} {
		if got := text.Tag(key); got != want {
			t.Errorf("%s lies by %s, want %s", key, got, want)
		}
	}
}

// TestCheck: on a healthy Redis nothing is reported, logged or written.
func TestCheck(t *testing.T) {
	s := newServer(t)
	var log bytes.Buffer
	d := s.process(t, s.client(t), gpt4(), runtime.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log.String())
	}
	if keys, err := s.client(t).Keys(t.Context(), s.prefix+"*").Result(); len(keys) > 0 || err != nil {
		t.Errorf("there are %q, %v", keys, err)
	}
}

// TestCheckDown: a Redis that does not answer is an outage, and one without access is a setup error.
func TestCheckDown(t *testing.T) {
	s := simulated(t)
	d := s.process(t, s.client(t, func(o *redis.Options) { o.MaxRetries = -1 }), gpt4())
	s.mini.RequireAuth("secret")
	if err := d.Check(t.Context()); !isA[*store.SetupError](err) ||
		!strings.Contains(err.Error(), "set the client's Username and Password") {
		t.Errorf("%v, want that the password is missing", err)
	}
	if _, err := d.Acquire(t.Context(), alice, tokens2{1, 0}); !isA[*store.SetupError](err) {
		t.Errorf("%v, want that the password is missing", err)
	}
	s.mini.Close()
	if err := d.Check(t.Context()); !isA[*store.UnavailableError](err) {
		t.Errorf("%v, want an outage", err)
	}
	if _, err := d.Acquire(t.Context(), alice, tokens2{1, 0}); !isA[*store.UnavailableError](err) {
		t.Errorf("%v, want an outage", err)
	}
}

// TestCheckEnds: Check returns when its context ends, though the client waits on for a Redis that hangs.
func TestCheckEnds(t *testing.T) {
	s := simulated(t)
	asked, answer := make(chan struct{}, 1), make(chan struct{})
	defer close(answer) // before the Limiter is closed, since Close waits for it
	s.mini.Server().SetPreHook(func(_ *peer.Peer, cmd string, _ ...string) bool {
		if cmd == "INFO" {
			asked <- struct{}{}
			<-answer
		}
		return false
	})
	d := s.process(t, s.client(t, func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = -1, -1 }), gpt4())
	ctx, cancel := context.WithCancel(t.Context())
	checked := make(chan error)
	go func() { checked <- d.Check(ctx) }()
	<-asked
	cancel()
	if err := <-checked; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
}

// TestCheckRights: Check fails for a user without the rights that calls need. The control is a user with
// them.
func TestCheckRights(t *testing.T) {
	node := redistest.StartServer(t)
	admin := node.Client()
	for removed, refused := range map[string]bool{
		"": false, "-info": false, "-scan": false,
		"-@read": true, "-@write": true, "-@scripting": true, "-evalsha": true, "-eval": true, "-time": true,
		"resetkeys": true,
	} {
		grant := []any{"ACL", "SETUSER", "ann", "reset", "on", ">sesame", "~" + DefaultPrefix + "*"}
		for right := range strings.FieldsSeq("+@read +@write +@scripting +@connection +info +time " +
			removed) {
			grant = append(grant, right)
		}
		if err := errors.Join(admin.ScriptFlush(t.Context()).Err(),
			admin.Do(t.Context(), grant...).Err()); err != nil {
			t.Fatal(err)
		}
		client := redis.NewClient(&redis.Options{Addr: node.Addr(), Username: "ann", Password: "sesame"})
		d := (&server{prefix: DefaultPrefix, slowAfter: time.Hour}).process(t, client, gpt4())
		err := d.Check(t.Context())
		if isA[*store.SetupError](err) != refused || err != nil &&
			!strings.Contains(err.Error(), "grant it: ACL SETUSER <user> ~sluice:*") {
			t.Errorf("%q: %v, want that it is refused: %t", removed, err, refused)
		}
		_ = client.Close()
	}
	if n, err := admin.DBSize(t.Context()).Result(); n != 0 || err != nil {
		t.Errorf("there are %d keys, %v", n, err)
	}
}

// TestWrongClient: for a client that does not match its server, the error names the client to use.
func TestWrongClient(t *testing.T) {
	for what, want := range map[string]string{
		"ERR DB index is out of range": "setup: Redis has no database of the " +
			"client's number | %s | set the client's DB, in a URL the number behind the host, to one that " +
			"it has: 0, on a cluster the only one",
		"ERR SELECT is not allowed in cluster mode": "setup: Redis has no database of the " +
			"client's number | %s | set the client's DB, in a URL the number behind the host, to one that " +
			"it has: 0, on a cluster the only one",
		"ERR This instance has cluster support disabled": "setup: the client is one of a cluster, " +
			"which this Redis is not | %s | pass redisstore.New what redis.NewClient returns, or leave " +
			"?addr= out of the URL",
		"ERR unknown command 'evalsha', with args of some": "setup: this Redis does not have a command " +
			"that the store needs | %s | use Redis 5 or newer, with scripts; for a Sentinel, create the " +
			"client with redis.NewFailoverClient, in a URL ?master_name=NAME",
	} {
		s := simulated(t)
		s.mini.SetError(what)
		d := s.process(t, s.client(t), gpt4())
		want = fmt.Sprintf(want, what)
		if err := d.Check(t.Context()); errtext.Of(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
		if _, err := d.Acquire(t.Context(), alice, tokens2{1, 1}); errtext.Of(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestUnknownMaster: a Sentinel that watches no master of that name is a setup error, not an outage.
func TestUnknownMaster(t *testing.T) {
	sentinel, err := peer.NewServer("127.0.0.1:0")
	if err == nil {
		t.Cleanup(sentinel.Close)
		err = sentinel.Register("SENTINEL", func(c *peer.Peer, _ string, _ []string) { c.WriteNull() })
	}
	if err != nil {
		t.Fatal(err)
	}
	s := simulated(t)
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "none",
		SentinelAddrs: []string{sentinel.Addr().String()}})
	t.Cleanup(func() { _ = client.Close() })
	err = s.process(t, client, gpt4()).Check(t.Context())
	const want = "setup: no Sentinel knows the master | "
	if got := errtext.Of(err); !strings.HasPrefix(got, want) ||
		!strings.Contains(got, " | set MasterName, in a URL ?master_name=, as in their `sentinel monitor`") {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestCheckServer: Check rejects a Redis that is too old, a replica, and a cluster used through a
// single-node client. INFO takes at most one section before Redis 7.
func TestCheckServer(t *testing.T) {
	for info, want := range map[string]string{
		"redis_version:5.0.14\r\n# Cluster\r\ncluster_enabled:0\r\n": "",
		"redis_version:7.0.15\r\n# Replication\r\nrole:slave\r\n": "setup: this Redis is a replica, " +
			"which takes no writes | " +
			"pass redisstore.New a client of its master",
		"redis_version:4.0.14\r\n# Cluster\r\ncluster_enabled:0\r\n": "setup: this is Redis 4.0.14 | use " +
			"Redis 5 or newer",
		"redis_version:6.2.14\r\n# Cluster\r\ncluster_enabled:1\r\n": "setup: Redis is a cluster, and " +
			"the client, a *redis.Client, " +
			"is not one of a cluster: keys of a call would lie in different slots | pass redisstore.New " +
			"what redis.NewClusterClient returns",
	} {
		s := simulated(t)
		s.mini.Server().SetPreHook(func(c *peer.Peer, cmd string, args ...string) bool {
			switch {
			case cmd != "INFO":
				return false
			case len(args) > 1:
				c.WriteError("ERR syntax error")
			default:
				c.WriteBulk("# Server\r\n" + info)
			}
			return true
		})
		if got := errtext.Of(s.process(t, s.client(t), gpt4()).Check(t.Context())); got != want {
			t.Errorf("%q: %s, want %s", info, got, want)
		}
	}
}

// TestSkew: the observer learns that the host's clock is off.
func TestSkew(t *testing.T) {
	s := simulated(t)
	for ahead, want := range map[time.Duration]time.Duration{
		0: 0, time.Second: 0, 2 * time.Second: 2 * time.Second, -time.Minute: -time.Minute,
	} {
		clock := &handClock{}
		clock.pass(ahead)
		got := time.Duration(0)
		d := s.process(t, s.client(t), gpt4(), runtime.WithClock(clock),
			runtime.WithObserver(&store.Observer{Skew: func(off time.Duration) { got = off }}))
		if err := d.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if got != want {
			t.Errorf("%v ahead: the observer got %v", ahead, got)
		}
	}
}

// TestEviction: a Redis that may evict buckets causes a warning.
func TestEviction(t *testing.T) {
	config := func(policy, most string) redis.UniversalClient {
		client := redis.NewClient(&redis.Options{})
		t.Cleanup(func() { _ = client.Close() })
		client.AddHook(answers{config: map[string]string{"maxmemory": most, "maxmemory-policy": policy}})
		return client
	}
	for name, test := range map[string]struct {
		info, policy, most string
		warned             string // "": it is not
	}{
		"it evicts":       {"", "volatile-lru", "100", "maxmemory-policy=volatile-lru maxmemory=100"},
		"it has no bound": {"", "allkeys-lru", "0", ""},
		"it does not":     {"", "noeviction", "100", ""},
		"INFO has it, CONFIG is forbidden": {"# Memory\r\nmaxmemory:7\r\nmaxmemory_policy:allkeys-lfu\r\n", "", "",
			"maxmemory-policy=allkeys-lfu maxmemory=7"},
		"INFO has no bound":   {"maxmemory:0\r\nmaxmemory_policy:allkeys-lfu\r\n", "", "", ""},
		"INFO has noeviction": {"maxmemory:7\r\nmaxmemory_policy:noeviction\r\n", "", "", ""},
		"neither may be read": {"", "", "", "whether Redis may evict buckets is unknown"},
	} {
		var log bytes.Buffer
		s := &session{Store: New(config(test.policy, test.most)),
			env: &store.Env{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
		checkerOf(s).WarnOfEviction(t.Context(), test.info)
		warned := strings.Contains(log.String(), "level=WARN")
		if warned != (test.warned != "") || !strings.Contains(log.String(), test.warned) {
			t.Errorf("%s: logged %q", name, log.String())
		}
	}
}

// TestCheckEviction: Check itself warns, by what INFO says.
func TestCheckEviction(t *testing.T) {
	s := simulated(t)
	var log bytes.Buffer
	client := s.client(t)
	client.AddHook(info{"redis_version:7.0.0\r\nmaxmemory:7\r\nmaxmemory_policy:allkeys-lru\r\n"})
	d := s.process(t, client, gpt4(), runtime.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if err := d.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "maxmemory-policy=allkeys-lru maxmemory=7") {
		t.Errorf("logged %q, want the policy", log.String())
	}
}

// info is a client's hook that answers INFO with its text.
type info struct{ text string }

func (i info) DialHook(next redis.DialHook) redis.DialHook { return next }
func (i info) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (i info) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if answer, ok := cmd.(*redis.StringCmd); ok && cmd.Name() == "info" {
			answer.SetVal(i.text)
			return nil
		}
		return next(ctx, cmd)
	}
}

// answers is a client's hook that answers CONFIG GET itself.
type answers struct {
	redis.Hook
	config map[string]string
}

func (a answers) DialHook(next redis.DialHook) redis.DialHook { return next }
func (a answers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (a answers) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		if a.config["maxmemory-policy"] == "" {
			cmd.SetErr(errors.New("NOPERM this user has no permissions to run the 'config|get' command"))
			return cmd.Err()
		}
		cmd.(*redis.MapStringStringCmd).SetVal(a.config)
		return nil
	}
}

// cluster returns a process on a cluster that does not answer.
func cluster(t *testing.T, prefix string) *process {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, MaxRedirects: -1})
	t.Cleanup(func() { _ = client.Close() })
	return (&server{prefix: prefix}).process(t, client, gpt4())
}

// TestClusterPrefix: CheckSlots rejects a prefix that would spread a chain's keys over slots.
func TestClusterPrefix(t *testing.T) {
	for prefix, fits := range map[string]bool{"sluice:": true, "{shared}:": true, "a{": false, "{}": false} {
		err := checkerOf(cluster(t, prefix).session.(*session)).CheckSlots()
		if fits && err != nil || !fits && !isA[*store.SetupError](err) {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

// TestPrefix: New rejects an empty prefix, such as a variable that is not set.
func TestPrefix(t *testing.T) {
	for prefix, want := range map[string]string{"app:": "",
		"": `setup: redisstore.Prefix(""): want the start of all keys, as in "billing:" | correct the call`} {
		client := redis.NewClient(&redis.Options{})
		_, err := runtime.NewBuilder(New(client, Prefix(prefix))).Limiter()
		if got := errtext.Of(err); got != want {
			t.Errorf("%q: %s, want %s", prefix, got, want)
		}
		_ = client.Close()
	}
}

// TestClusterClaims: on a cluster, claims with different roots cannot be one script call and fail before
// sending.
func TestClusterClaims(t *testing.T) {
	d := cluster(t, "sluice:")
	a, b := d.Claim(caller{"1", "1"}, tokens2{1, 0}), d.Claim(caller{"2", "2"}, tokens2{1, 0})
	err := d.AcquireAll(t.Context(), a, b)
	const want = `invalid gpt-4 claim "user-2" lies on another part of the cluster than gpt-4 for user-1: ` +
		`acquire them one by one, or under one root`
	if errtext.Reason(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	// Two roots may share a slot, but not the shard of a Ring.
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1",
		"b": "127.0.0.1:1"}})
	t.Cleanup(func() { _ = ring.Close() })
	r := (&server{prefix: "sluice:"}).process(t, ring, gpt4())
	a, b = r.Claim(caller{"1", "1772"}, tokens2{1, 0}), r.Claim(caller{"2", "4000"}, tokens2{1, 0})
	if err := r.AcquireAll(t.Context(), a, b); !isA[*store.InvalidError](err) {
		t.Errorf("%v, want that they are not together", err)
	}
	// With one root they can: then the error is that the cluster does not answer.
	a, b = d.Claim(caller{"1", "1"}, tokens2{1, 0}), d.Claim(caller{"2", "1"}, tokens2{1, 0})
	if err := d.AcquireAll(t.Context(), a, b); !isA[*store.UnavailableError](err) {
		t.Errorf("%v, want an outage", err)
	}
}

// TestClaims: the costs of parts that charge the same bucket are added up, and charged all or none.
func TestClaims(t *testing.T) {
	s := newServer(t)
	d := s.process(t, s.client(t), slow())
	one, two, much := d.Claim(caller{"1", "1"}, tokens2{20, 0}), d.Claim(caller{"2", "1"}, tokens2{30, 0}),
		d.Claim(caller{"3", "1"}, tokens2{11, 0})
	if err := d.AcquireAll(t.Context(), one, two); err != nil {
		t.Fatal(err)
	}
	d.left(t, caller{"1", "1"}, tokens2{10, 6000})
	little := d.Claim(alice, tokens2{1, 0})
	denied := denial(t, d.AcquireAll(t.Context(), little, much))
	if len(denied.Refusals) != 1 || denied.Entity != "project-1" || denied.Available != 10 {
		t.Errorf("%+v", denied)
	}
	d.left(t, alice, tokens2{60, 6000})
	if err := one.Lease().Settle(t.Context(), tokens2{5, 0}); err != nil {
		t.Error(err)
	}
	d.left(t, caller{"1", "1"}, tokens2{25, 6000})
	if err := d.AcquireAll(t.Context(), little, much); err != nil {
		t.Error(err)
	}
}

// TestClaimsEvicted: parts charge the same bucket though the cache has dropped it between one part and the
// next.
func TestClaimsEvicted(t *testing.T) {
	s := newServer(t)
	d := s.process(t, s.client(t), slow())
	d.session.(*session).buckets.Resize(1)
	for _, test := range []struct {
		each, left int64
		admitted   bool
	}{{20, 20, true}, {15, 20, false}, {10, 0, true}} {
		err := d.AcquireAll(t.Context(), d.Claim(caller{"1", "1"}, tokens2{test.each, 0}),
			d.Claim(caller{"2", "1"}, tokens2{test.each, 0}))
		if test.admitted && err != nil || !test.admitted && !isA[*store.DeniedError](err) {
			t.Errorf("%d each: %v", test.each, err)
		}
		snap, err := d.Peek(t.Context(), caller{"1", "1"})
		if err != nil {
			t.Fatal(err)
		}
		if got := snap.Buckets[1].Available[0]; got != test.left {
			t.Errorf("%d each: %d left, want %d", test.each, got, test.left)
		}
	}
}

// TestOpen: an error of Open says what to do.
func TestOpen(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = client.Close() })
	behind := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"},
		RouteRandomly: true})
	t.Cleanup(func() { _ = behind.Close() })
	for want, backend := range map[string]*Store{
		"setup: redisstore.New: the client reads from replicas, which lag behind: " +
			"want one without ReadOnly, RouteByLatency and RouteRandomly | correct the call": New(behind),
		"setup: redisstore.New: the client is nil | correct the call": New(nil),
		"setup: redisstore.ImageCache(0): want at least 1 | correct the call": New(client, nil,
			ImageCache(0)),
		"setup: resource gpt-4 was not generated for Redis | " +
			"add `stores: [redis]` to limits.yaml and run `sluice generate`": New(client),
	} {
		_, err := backend.Open(&store.Env{}, scriptless{gpt4()})
		if errtext.Of(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestOpenGlobal: Open rejects a limit divided among regions, beside any other limits, and accepts the
// others.
func TestOpenGlobal(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = client.Close() })
	global := gpt4()
	global.spec.Resource, global.spec.Regions = "batch", &store.Regions{Names: []string{"eu", "us"},
		Floor: 5, Window: time.Second}
	const want = "setup: resource batch is global, and the store on Redis does not divide limits among " +
		"regions | " +
		"leave it out of the limits.yaml that is for Redis, or remove `global` from it"
	_, err := New(client).Open(&store.Env{}, gpt4(), global)
	if errtext.Of(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := New(client).Open(&store.Env{}, gpt4()); err != nil {
		t.Errorf("without it: %v", err)
	}
}

// scriptless is a resource generated for another store.
type scriptless struct{ store.Definition }
