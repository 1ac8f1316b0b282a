package redisstore

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/fill"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/members"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

// rpm is an override of one of slow's limits.
func rpm(tokens int64) []*bucket.Limit {
	l := bucket.Per(tokens, 366*24*time.Hour)
	return []*bucket.Limit{&l, nil}
}

// TestOverrides: the entity's override wins over its kind's, at once in this process and after the cache
// expires in another. A write based on an older revision is a conflict.
func TestOverrides(t *testing.T) {
	s := newServer(t)
	def := slow()
	clock := &handClock{}
	d := s.process(t, s.client(t), def)
	other := s.process(t, s.client(t), def, runtime.WithClock(clock))
	ctx, backend := t.Context(), d.session.Overrides()
	other.left(t, alice, tokens2{60, 6000})
	set := func(at string, limits []*bucket.Limit, revision store.Revision) store.Revision {
		t.Helper()
		next, err := backend.Set(ctx, def.spec, store.Stored{At: at, Limits: limits, Revision: revision})
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	set("user", rpm(90), "")
	d.left(t, alice, tokens2{90, 6000})
	own := set("user-alice", rpm(120), "")
	d.left(t, alice, tokens2{120, 6000})
	d.left(t, bob, tokens2{90, 6000})
	other.left(t, alice, tokens2{60, 6000})
	clock.pass(time.Minute)
	other.left(t, alice, tokens2{120, 6000})
	if _, err := d.Acquire(ctx, alice, tokens2{121, 0}); !isA[*store.CostTooLargeError](err) {
		t.Errorf("%v, want that it is above the burst", err)
	}
	for _, stale := range []store.Revision{"", "1", "x"} {
		_, err := backend.Set(ctx, def.spec, store.Stored{At: "user-alice", Limits: rpm(1), Revision: stale})
		if !isA[*store.ConflictError](err) {
			t.Errorf("%q: %v, want a conflict", stale, err)
		}
	}
	list := func() (at []string) {
		t.Helper()
		for stored, err := range backend.List(ctx, def.spec) {
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, stored.At)
		}
		return at
	}
	if got := list(); !slices.Equal(got, []string{"user", "user-alice"}) {
		t.Errorf("listed %q", got)
	}
	removed := set("user-alice", []*bucket.Limit{nil, nil}, own)
	if removed <= own {
		t.Errorf("revision %s after %s", removed, own)
	}
	d.left(t, alice, tokens2{90, 6000})
	if got := list(); !slices.Equal(got, []string{"user"}) {
		t.Errorf("listed %q", got)
	}
	if again := set("user-alice", rpm(70), ""); again <= removed {
		t.Errorf("revision %s after %s", again, removed)
	}
	if all, err := backend.Get(ctx, def.spec, "user-alice", "user-bob"); err != nil ||
		*all[0].Limits[0] != *rpm(70)[0] || all[1].Revision != "" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestFillOfOverrides: a raised limit admits once the bucket is filled, in this process at once.
func TestFillOfOverrides(t *testing.T) {
	s := newServer(t)
	def := slow()
	d := s.process(t, s.client(t), def)
	ctx, backend := t.Context(), d.session.Overrides()
	if _, err := d.Acquire(ctx, alice, tokens2{60, 0}); err != nil {
		t.Fatal(err)
	}
	_, err := backend.Set(ctx, def.spec, store.Stored{At: "user-alice", Limits: rpm(600)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Acquire(ctx, alice, tokens2{1, 0}); !isA[*store.DeniedError](err) {
		t.Fatalf("%v, want a denial: a raised limit alone brings no tokens", err)
	}
	if err := backend.Fill(ctx, def.spec, 0, "user-alice", "user-alice"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Acquire(ctx, alice, tokens2{599, 0}); err != nil {
		t.Error(err)
	}
	d.left(t, alice, tokens2{1, 6000})
}

// TestFillForOthers: a process that has cached older limits leaves the tokens of a bucket that newer ones
// have filled, and has them once its cache expires. Limits that are newer yet cut them off.
func TestFillForOthers(t *testing.T) {
	s := newServer(t)
	def, clock := slow(), &handClock{}
	old := s.process(t, s.client(t), def, runtime.WithClock(clock))
	d := s.process(t, s.client(t), def)
	ctx, backend := t.Context(), d.session.Overrides()
	set := func(tokens int64, prev store.Revision) store.Revision {
		t.Helper()
		to := store.Stored{At: "user-alice", Limits: rpm(tokens), Revision: prev}
		next, err := backend.Set(ctx, def.spec, to)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	acquire := func(cost int64) {
		t.Helper()
		if _, err := old.Acquire(ctx, alice, tokens2{cost, 0}); err != nil {
			t.Error(err)
		}
	}
	old.left(t, alice, tokens2{60, 6000}) // there is no bucket yet: it would be full by the cached limits
	raised := set(600, "")
	if err := backend.Fill(ctx, def.spec, 0, "user-alice", "user-alice"); err != nil {
		t.Fatal(err)
	}
	acquire(1)
	d.left(t, alice, tokens2{599, 6000})
	clock.pass(time.Minute)
	acquire(598)
	d.left(t, alice, tokens2{1, 6000})
	if err := backend.Fill(ctx, def.spec, 0, "user-alice", "user-alice"); err != nil {
		t.Fatal(err)
	}
	set(60, set(70, raised))
	if _, err := d.Acquire(ctx, alice, tokens2{1, 0}); err != nil {
		t.Error(err)
	}
	d.left(t, alice, tokens2{59, 6000})
}

// TestFillByOlder: who fills by older overrides than the bucket was filled by changes nothing, and learns of
// it, unless it knew of that fill before it read its overrides.
func TestFillByOlder(t *testing.T) {
	s := newServer(t)
	client := s.client(t)
	d := s.process(t, client, slow())
	key := database.Keys{Prefix: s.prefix}.Bucket("gpt-4", "rpm", "", "user-alice")
	for _, one := range []struct {
		tokens, version int64
		known           string
		reply           string
		left            int64
	}{
		{50, 2, "", "", 50},
		{40, 1, "", "2", 50},
		{40, 1, "3", "2", 50},
		{30, 2, "", "", 30},
		{20, 1, "2", "", 20},
		{45, 3, "", "", 45},
	} {
		args := append(text.Params(*rpm(one.tokens)[0], one.version), one.known)
		reply, err := redis.NewScript(fill.Script).Run(t.Context(), client, []string{key}, args...).Text()
		if reply != one.reply || err != nil {
			t.Fatalf("%+v: %q, %v", one, reply, err)
		}
		d.left(t, alice, tokens2{one.left, 6000})
	}
}

// TestFillOfKind: a fill stores only the limits that the kind has.
func TestFillOfKind(t *testing.T) {
	s := newServer(t)
	client := s.client(t)
	def := slow()
	def.spec.Kinds[0].Limits[1] = bucket.Limit{}
	d := s.process(t, client, def)
	if err := d.session.Overrides().Fill(t.Context(), def.spec, 0, "user-alice", "user-alice"); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{1, 0} {
		key := database.Keys{Prefix: s.prefix}.Bucket("gpt-4", def.spec.Limits[i], "", "user-alice")
		if n, err := client.Exists(t.Context(), key).Result(); n != want || err != nil {
			t.Errorf("%d of %s, %v, want %d", n, key, err, want)
		}
	}
}

// TestFillForgets: a fill drops the image of the bucket that calls have cached.
func TestFillForgets(t *testing.T) {
	s := newServer(t)
	def := slow()
	d := s.process(t, s.client(t), def)
	with := caller{"alice", "1"} // its chain has another root
	if _, err := d.Acquire(t.Context(), with, tokens2{10, 0}); err != nil {
		t.Fatal(err)
	}
	if all := d.Lookup(with); len(all) != 4 {
		t.Fatalf("%+v is cached, want two buckets of two limits", all)
	}
	if err := d.session.Overrides().Fill(t.Context(), def.spec, 0, "user-alice", "project-1"); err != nil {
		t.Fatal(err)
	}
	for _, b := range d.Lookup(with) {
		if b.Entity == "user-alice" {
			t.Errorf("%+v is still cached", b)
		}
	}
}

// TestUpdateInOrder: an older reply that comes late does not replace a newer image, unless it is so late that
// Redis's clock must have been set back.
func TestUpdateInOrder(t *testing.T) {
	b := &cachedBucket{}
	at := func(now int64) *bucket.Image { return &bucket.Image{Refilled: now} }
	newer, late, back := at(1000), at(1000+mostLate-1), at(1000+mostLate)
	b.update(newer, 500, 0)
	for _, step := range []struct {
		img    *bucket.Image
		seenAt int64
		want   *bucket.Image
	}{{late, 499, newer}, {back, 499, back}, {newer, 499, newer}} {
		b.update(step.img, step.seenAt, 0)
		if _, got := b.snapshot(); got != step.want {
			t.Errorf("after a reply of %d: %+v, want %+v", step.seenAt, got, step.want)
		}
	}
	b.invalidate(2)
	b.update(newer, 501, 1)
	if _, got := b.snapshot(); got != nil {
		t.Errorf("%+v after a fill, want no image by a command that was sent before it", got)
	}
	b.update(late, 1, 2)
	if _, got := b.snapshot(); got != late {
		t.Errorf("%+v, want the first image by a command that was sent after it, whenever it is from", got)
	}
	b.invalidate(1) // of two fills, the last one's call may come first
	b.update(newer, 501, 1)
	if _, got := b.snapshot(); got != nil {
		t.Errorf("%+v after two fills, want no image from between them", got)
	}
}

// TestMalformedOverride is named, with the cure.
func TestMalformedOverride(t *testing.T) {
	s := newServer(t)
	client := s.client(t)
	d := s.process(t, client, slow())
	key := database.Keys{Prefix: s.prefix}.Config("gpt-4", "user-alice")
	if err := client.HSet(t.Context(), key, "ver", "1", "l_rpm", "5 5 5").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := d.Acquire(t.Context(), alice, tokens2{1, 0})
	want := `setup: the override of gpt-4 at user-alice is malformed | ` +
		`limit rpm: "5 5 5": want capacity, burst, refill and period | ` +
		"fix the hash " + key + " and raise its ver"
	if errtext.Of(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// noReads answers HGETALL with an error while there is one.
type noReads struct{ failure error }

func (n *noReads) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn,
		error) {
		return next(ctx, network, addr)
	}
}
func (n *noReads) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (n *noReads) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if n.failure != nil && strings.EqualFold(cmds[0].Name(), "hgetall") {
			return n.failure
		}
		return next(ctx, cmds)
	}
}

// TestOverridesUnread: if a refresh fails, the cached overrides serve, and are read again a second later.
func TestOverridesUnread(t *testing.T) {
	s := newServer(t)
	def, clock, n := slow(), &handClock{}, &noReads{}
	client := s.client(t)
	client.AddHook(n)
	d := s.process(t, client, def, runtime.WithClock(clock))
	d.left(t, alice, tokens2{60, 6000})
	n.failure = redisError("LOADING")
	if _, err := d.Acquire(t.Context(), bob, tokens2{1, 0}); !isA[*store.UnavailableError](err) {
		t.Errorf("%v, want that bob's are not known", err)
	}
	clock.pass(time.Minute)
	for range 2 {
		if _, err := d.Acquire(t.Context(), alice, tokens2{1, 0}); err != nil {
			t.Error(err)
		}
	}
	clock.pass(time.Second)
	n.failure = nil
	d.left(t, alice, tokens2{58, 6000})
	d.calls(t, "levels missing", "peek missing", "levels failed", "levels failed", "acquire applied",
		"acquire applied",
		"levels missing", "peek found")

	n.failure = redisError("NOPERM this user has no permissions to run the 'hgetall' command")
	clock.pass(time.Minute)
	if _, err := d.Acquire(t.Context(), alice, tokens2{1, 0}); !isA[*store.SetupError](err) {
		t.Errorf("%v, want a SetupError: what may not be read does not serve", err)
	}
}

// TestExpiredOfKind: a bucket that serves by expired overrides does not bring back a kind's override that
// another bucket has replaced.
func TestExpiredOfKind(t *testing.T) {
	s := newServer(t)
	def, clock, n := slow(), &handClock{}, &noReads{}
	client := s.client(t)
	client.AddHook(n)
	d := s.process(t, client, def, runtime.WithClock(clock))
	d.left(t, alice, tokens2{60, 6000})
	d.left(t, bob, tokens2{60, 6000})
	others := s.process(t, s.client(t), def).session.Overrides()
	if _, err := others.Set(t.Context(), def.spec, store.Stored{At: "user", Limits: rpm(30)}); err != nil {
		t.Fatal(err)
	}
	clock.pass(time.Minute)
	d.left(t, bob, tokens2{30, 6000})
	n.failure = redisError("LOADING")
	if _, err := d.Acquire(t.Context(), alice, tokens2{1, 0}); err != nil {
		t.Fatal(err)
	}
	d.left(t, alice, tokens2{29, 6000})
	d.left(t, bob, tokens2{30, 6000})
}

// heldRead holds the reply to the next HGETALL.
type heldRead struct {
	noReads
	replied, deliver chan struct{}
	once             sync.Once
}

func (h *heldRead) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if strings.EqualFold(cmds[0].Name(), "hgetall") {
			h.once.Do(func() {
				close(h.replied)
				<-h.deliver
			})
		}
		return err
	}
}

// TestLateRead: overrides that were read before a Set of this process, and whose reply comes after it, serve
// the calls that waited for them and no later ones.
func TestLateRead(t *testing.T) {
	s := newServer(t)
	def, h := slow(), &heldRead{replied: make(chan struct{}), deliver: make(chan struct{})}
	client := s.client(t)
	client.AddHook(h)
	d := s.process(t, client, def)
	first := d.ask(t.Context(), alice, tokens2{1, 0})
	<-h.replied
	_, err := d.session.Overrides().Set(t.Context(), def.spec, store.Stored{At: "user-alice", Limits: rpm(30)})
	if err != nil {
		t.Fatal(err)
	}
	close(h.deliver)
	if err := first.end(); err != nil {
		t.Fatal(err)
	}
	d.left(t, alice, tokens2{30, 6000})
}

// TestMembers: an entity's parent is stored, looked up and cached, and Children omits entities that have
// moved.
func TestMembers(t *testing.T) {
	s := newServer(t)
	clock := &handClock{}
	d := s.process(t, s.client(t), slow())
	other := s.process(t, s.client(t), slow(), runtime.WithClock(clock))
	ctx, backend := t.Context(), d.session.Members()
	put := func(entity, parent string, cascade bool) {
		t.Helper()
		if err := backend.Put(ctx, store.Member{Entity: entity, Parent: parent,
			Cascade: cascade}); err != nil {
			t.Fatal(err)
		}
	}
	children := func(of string, want ...string) {
		t.Helper()
		var got []string
		for child, err := range backend.Children(ctx, of) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, child)
		}
		if !slices.Equal(got, want) {
			t.Errorf("children of %s are %q, want %q", of, got, want)
		}
	}
	known := caller{"1", "?"}
	if _, err := d.Acquire(ctx, known, tokens2{1, 0}); !isA[*store.InvalidError](err) {
		t.Errorf("%v, want that nobody knows user-1", err)
	}
	put("user-1", "project-1", true)
	put("user-2", "project-1", true)
	put("user-3", "project-1", false)
	if _, err := d.Acquire(ctx, known, tokens2{10, 0}); err != nil {
		t.Fatal(err)
	}
	d.left(t, caller{"2", "?"}, tokens2{50, 6000})
	d.left(t, caller{"3", "?"}, tokens2{60, 6000})
	other.left(t, known, tokens2{50, 6000})
	children("project-1", "user-1", "user-2", "user-3")
	if _, err := d.Acquire(ctx, caller{"2", "?"}, tokens2{15, 0}); err != nil {
		t.Fatal(err)
	}
	put("user-1", "project-2", true)
	if err := backend.Delete(ctx, "user-3"); err != nil {
		t.Fatal(err)
	}
	children("project-1", "user-2")
	children("project-2", "user-1")
	d.left(t, known, tokens2{50, 6000}) // its own; the other project is full
	other.left(t, known, tokens2{35, 6000})
	clock.pass(time.Minute)
	other.left(t, known, tokens2{50, 6000})
	// An entity in the set that has another parent, as after a crash between two writes.
	if err := s.client(t).SAdd(ctx, database.Keys{Prefix: s.prefix}.Children("project-2"),
		"user-2").Err(); err != nil {
		t.Fatal(err)
	}
	children("project-2", "user-1")
	if m, found, err := backend.Get(ctx, "user-1"); m != (store.Member{Entity: "user-1", Parent: "project-2",
		Cascade: true}) || !found || err != nil {
		t.Errorf("%+v, %t, %v", m, found, err)
	}
}

// TestMembersKeepOthers: Put and Delete change the fields of the link, and leave what else is stored with the
// entity.
func TestMembersKeepOthers(t *testing.T) {
	s := newServer(t)
	client, key := s.client(t), database.Keys{Prefix: s.prefix}.Entity("user-1")
	ctx, backend := t.Context(), New(client, Prefix(s.prefix)).Members()
	err := client.HSet(ctx, key, "since", "7").Err()
	if err != nil {
		t.Fatal(err)
	}
	if _, found, err := backend.Get(ctx, "user-1"); found || err != nil {
		t.Errorf("found %t, %v without a link", found, err)
	}
	if err := backend.Put(ctx, store.Member{Entity: "user-1", Parent: "project-1", Cascade: true}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"since": "7", members.ParentField: "project-1", members.CascadeField: "1"}
	if got := client.HGetAll(ctx, key).Val(); !maps.Equal(got, want) {
		t.Errorf("%v after Put, want %v", got, want)
	}
	if err := backend.Delete(ctx, "user-1"); err != nil {
		t.Fatal(err)
	}
	want = map[string]string{"since": "7"}
	if got := client.HGetAll(ctx, key).Val(); !maps.Equal(got, want) {
		t.Errorf("%v after Delete, want %v", got, want)
	}
}

// TestErase: all keys of an entity go, also of resources and limits that nobody has any more, and none of
// others. A dry run counts them, and an erase that was interrupted goes on.
func TestErase(t *testing.T) {
	s := newServer(t)
	ctx, client, k := t.Context(), s.client(t), database.Keys{Prefix: s.prefix}
	backend := New(client, Prefix(s.prefix)).Members()
	for _, id := range []string{"user-1", "user-12", "user-x:user-1"} {
		if err := backend.Put(ctx, store.Member{Entity: id, Parent: "project-1"}); err != nil {
			t.Fatal(err)
		}
		pipe := client.Pipeline()
		for _, key := range []string{k.Bucket("api", "rpm", "", id), k.Bucket("api", "tpm", "", id),
			k.Bucket("gone:v2", "rpm", "", id)} {
			pipe.HSet(ctx, key, text.TokensField, "1", text.SinceField, "1")
		}
		pipe.HSet(ctx, k.Config("api", id), "ver", "1")
		pipe.SAdd(ctx, k.Configs("api"), id)
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
	}
	client.SAdd(ctx, k.Configs("gone:v2"), "user-1") // what an interrupted erase leaves
	of := func() (all, user1 []string) {
		all, err := New(client).db.Scan(ctx, s.prefix+"*")
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range all {
			if strings.HasSuffix(key, ":user-1") && !strings.Contains(key, "user-x") {
				user1 = append(user1, key)
			}
		}
		return all, user1
	}
	before, _ := of()
	want := store.Erased{Buckets: 2, Overrides: 1, Other: 4} // the link, and three lists
	got, err := backend.Erase(ctx, "user-1", store.Erasing{DryRun: true})
	if after, _ := of(); got != want || err != nil || !slices.Equal(before, after) {
		t.Errorf("dry run: %+v, %v, want %+v; %q", got, err, want, after)
	}
	got, err = backend.Erase(ctx, "user-1", store.Erasing{})
	after, left := of()
	if got != want || err != nil || len(left) > 0 || len(after) != len(before)-6 {
		t.Errorf("%+v, %v, want %+v; left are %q of %q", got, err, want, left, after)
	}
	for list, want := range map[string][]string{
		k.Configs("api"): {"user-12", "user-x:user-1"}, k.Configs("gone:v2"): {},
		k.Children("project-1"): {"user-12", "user-x:user-1"},
	} {
		in := client.SMembers(ctx, list).Val()
		slices.Sort(in)
		if !slices.Equal(in, want) {
			t.Errorf("%s has %q, want %q", list, in, want)
		}
	}
	if got, err := backend.Erase(ctx, "user-1", store.Erasing{}); got != (store.Erased{}) || err != nil {
		t.Errorf("erased again: %+v, %v", got, err)
	}
	if got, err := backend.Erase(ctx, "project-1", store.Erasing{}); !isA[*store.InvalidError](err) ||
		got != (store.Erased{}) {
		t.Errorf("a parent: %+v, %v", got, err)
	}
	if got, err := backend.Erase(ctx, "project-1", store.Erasing{LeaveChildren: true}); err != nil ||
		got != (store.Erased{}) { // nothing but its children is stored of it
		t.Errorf("a parent: %+v, %v", got, err)
	}
}

// failing rejects the write at one position, from 0, of those that come.
type failing struct {
	noReads
	writes, at int
}

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if name := cmd.Name(); name == "del" || name == "srem" {
			f.writes++
			if f.writes == f.at+1 {
				cmd.SetErr(redisError("LOADING"))
				return cmd.Err()
			}
		}
		return next(ctx, cmd)
	}
}

// TestEraseResumes: after a failure of any of its writes, Erase says so and what it has erased, and the next
// one erases the rest.
func TestEraseResumes(t *testing.T) {
	s := newServer(t)
	ctx, k := t.Context(), database.Keys{Prefix: s.prefix}
	whole := store.Erased{Buckets: 2, Overrides: 1, Other: 3}
	for at, done := 0, false; !done; at++ {
		client, f := s.client(t), &failing{at: -1}
		client.AddHook(f)
		backend := New(client, Prefix(s.prefix)).Members()
		if err := backend.Put(ctx, store.Member{Entity: "user-1", Parent: "project-1"}); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{k.Bucket("api", "rpm", "", "user-1"), k.Bucket("gone", "rpm", "", "user-1")} {
			client.HSet(ctx, key, text.TokensField, "1", text.SinceField, "1")
		}
		client.HSet(ctx, k.Config("api", "user-1"), "ver", "1")
		client.SAdd(ctx, k.Configs("api"), "user-1")
		f.writes, f.at = 0, at
		first, err := backend.Erase(ctx, "user-1", store.Erasing{})
		if done = f.writes <= at; done {
			if first != whole || err != nil || at < 6 {
				t.Errorf("%d writes: %+v, %v, want %+v after at least 6", at, first, err, whole)
			}
			break
		}
		if !isA[*store.UnavailableError](err) {
			t.Errorf("write %d: %v", at, err)
		}
		second, err := backend.Erase(ctx, "user-1", store.Erasing{})
		sum := store.Erased{Buckets: first.Buckets + second.Buckets, Overrides: first.Overrides + second.Overrides,
			Other: first.Other + second.Other}
		if sum != whole || err != nil {
			t.Errorf("write %d: %+v and then %+v, %v, want %+v in all", at, first, second, err, whole)
		}
		if left, err := New(client).db.Scan(ctx, s.prefix+"*"); len(left) > 0 || err != nil {
			t.Errorf("write %d: left are %q, %v", at, left, err)
		}
	}
}

// TestEraseOfCluster: an entity has a bucket for each root, and one whose key names it as its root is
// another's.
func TestEraseOfCluster(t *testing.T) {
	s := newServer(t)
	ctx, client, k := t.Context(), s.client(t), database.Keys{Prefix: s.prefix, HashTags: true}
	backend := New(client, Prefix(s.prefix))
	backend.db.Keys = k
	others := k.Bucket("api", "rpm", "user-1", "user-2")
	for _, key := range []string{k.Bucket("api", "rpm", "project-1", "user-1"),
		k.Bucket("api", "rpm", "project-2", "user-1"), others} {
		client.HSet(ctx, key, text.TokensField, "1", text.SinceField, "1")
	}
	got, err := backend.Members().Erase(ctx, "user-1", store.Erasing{})
	if want := (store.Erased{Buckets: 2}); got != want || err != nil {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if left, err := backend.db.Scan(ctx, s.prefix+"*"); !slices.Equal(left, []string{others}) || err != nil {
		t.Errorf("left are %q, %v", left, err)
	}
}
