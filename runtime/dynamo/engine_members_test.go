package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// members are the entities as an operator reaches them. Pauses take no time.
func (e *engine) members(api wire.API) *operator.Members {
	return operator.MembersWith(api, e.retrier(), time.Now, func(string) {})
}

// session is a process that looks entities up, and what its observer was told.
func (e *engine) session(
	t testing.TB,
	api wire.API,
	clock store.Clock,
	opts ...storeChange,
) (*session, *events) {
	t.Helper()
	seen := &events{}
	opened, err := newStore(api, e.table, opts...).Open(&store.Env{
		Clock: clock, Observer: seen.Observer(), SettleTimeout: 20 * time.Second, CacheTTL: time.Minute,
		Answered: func() {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return opened.(*session), seen
}

// child is user-1 in project-a.
func child() store.Member {
	return store.Member{Entity: "user-1", Parent: "project-a", Cascade: true}
}

func putMember(t testing.TB, backend store.MemberStore, m store.Member) {
	t.Helper()
	if err := backend.Put(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// memberItem is an entity item by attributevalue's hand, with more or other attributes.
func memberItem(m store.Member) codec.Item {
	item := codec.Item{
		"PK": codec.S("ENTITY#" + m.Entity), "SK": codec.S("#META"), "entity_id": codec.S(m.Entity),
		"cascade": &types.AttributeValueMemberBOOL{Value: m.Cascade},
	}
	if m.Parent != "" {
		item["parent_id"] = codec.S(m.Parent)
		item["GSI1PK"], item["GSI1SK"] = codec.S("PARENT#"+m.Parent), codec.S("CHILD#"+m.Entity)
	}
	return item
}

// TestMemberItems holds entity items attribute by attribute, and reads them back.
func TestMemberItems(t *testing.T) {
	e := newEngine(t)
	members := e.members(e.client)
	for _, m := range []store.Member{
		child(),
		{Entity: "user-1", Parent: "project-b"}, // in place of the first
		{Entity: "user-1", Cascade: true},
		{Entity: "project-a"},
	} {
		putMember(t, members, m)
		if diff := cmp.Diff(memberItem(m), e.get(t, item.EntityKey(m.Entity)), cmp.AllowUnexported(
			types.AttributeValueMemberS{}, types.AttributeValueMemberBOOL{})); diff != "" {
			t.Errorf("the item, - wanted, + stored:\n%s", diff)
		}
		if got, found, err := members.Get(t.Context(), m.Entity); got != m || !found || err != nil {
			t.Errorf("read %v, %v, %v; want %v", got, found, err, m)
		}
	}
	for range 2 { // what is not there can be deleted as well
		if err := members.Delete(t.Context(), "user-1"); err != nil {
			t.Fatal(err)
		}
		if got, found, err := members.Get(t.Context(), "user-1"); got != (store.Member{}) || found || err != nil {
			t.Errorf("read %v, %v, %v of what was deleted", got, found, err)
		}
	}
	// By hand, as bulk loaders do: the cascade is the rule.
	item := memberItem(child())
	delete(item, "cascade")
	e.put(t, item)
	if got, found, err := members.Get(t.Context(), "user-1"); got != child() || !found || err != nil {
		t.Errorf("read %v, %v, %v; want %v", got, found, err, child())
	}
}

// TestReadsAreConsistent has replicas that are behind: what was just written is read.
func TestReadsAreConsistent(t *testing.T) {
	e, memory := newFaulty(t)
	memory.Faults().StaleReads(time.Minute)
	putMember(t, e.members(e.client), child())
	if got, found, err := e.members(e.client).Get(t.Context(), "user-1"); got != child() || !found ||
		err != nil {
		t.Errorf("read %v, %v, %v", got, found, err)
	}
	process, _ := e.session(t, e.client, &e.clock)
	lookUp(t, process, "user-1", child())
	o := e.operator(e.client, 0)
	says(t, o, stored("user-1", set(t, o, stored("user-1", "", 5)), 5))
}

// children collects Children.
func children(ctx context.Context, members *operator.Members, of string) (all []string, err error) {
	for child, err := range members.Children(ctx, of) {
		if err != nil {
			return all, err
		}
		all = append(all, child)
	}
	return all, nil
}

// TestChildren lists more children than a page has, sorted, and no one else's; it stops when its caller does.
func TestChildren(t *testing.T) {
	const count = 1200
	e := newEngine(t)
	members := e.members(e.client)
	var want []string
	for i := range count {
		id := fmt.Sprintf("user-%04d", (i*7)%count)
		want = append(want, id)
		putMember(t, members, store.Member{Entity: id, Parent: "project-a", Cascade: i%2 == 0})
	}
	slices.Sort(want)
	putMember(t, members, store.Member{Entity: "user-other", Parent: "project-ab"})
	putMember(t, members, store.Member{Entity: "user-moved", Parent: "project-a"})
	putMember(t, members, store.Member{Entity: "user-moved", Parent: "project-b"})
	p := &pages{API: e.client, most: 500}
	got, err := children(t.Context(), e.members(p), "project-a")
	if !slices.Equal(got, want) || err != nil {
		t.Errorf("%d children, %v; want %d, sorted", len(got), err, count)
	}
	if p.queries != 3 {
		t.Errorf("%d pages, want 3", p.queries)
	}
	p.queries = 0
	for first, err := range e.members(p).Children(t.Context(), "project-a") {
		if first != want[0] || err != nil {
			t.Errorf("first comes %v, %v", first, err)
		}
		break
	}
	if p.queries != 1 {
		t.Errorf("%d pages read for one child", p.queries)
	}
	if got, err := children(t.Context(), members, "project-nobody's"); len(got) > 0 || err != nil {
		t.Errorf("got %v, %v of a parent without children", got, err)
	}
}

// TestMalformedMembers meets entity items that nobody of us wrote.
func TestMalformedMembers(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(codec.Item)
		err   string
	}{
		"a parent that is a number": {func(item codec.Item) {
			item["parent_id"] = codec.N(7)
		}, "attribute parent_id N"},
		"a cascade that is text": {func(item codec.Item) {
			item["cascade"] = codec.S("yes")
		}, "attribute cascade S"},
		"both": {func(item codec.Item) {
			item["parent_id"], item["cascade"] = codec.N(7), codec.N(1)
		}, "attribute parent_id N"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			item := memberItem(child())
			test.spoil(item)
			e.put(t, item)
			process, _ := e.session(t, e.client, &e.clock)
			_, _, errGet := e.members(e.client).Get(t.Context(), "user-1")
			_, _, errLookup := process.Member(t.Context(), "user-1")
			for _, err := range []error{errGet, errLookup} {
				wantErr(t, err, "setup: what is stored of user-1 is malformed | "+test.err+
					" | fix or delete the item ENTITY#user-1 / #META")
			}
		})
	}
}

// TestMembersAgain: a put and a delete go again whatever became of them, and end as they should.
func TestMembersAgain(t *testing.T) {
	throttle := reject("ProvisionedThroughputExceededException", "slow down")
	for name, mishaps := range map[string][]mishap{
		"lost reply": {loseReply}, "lost request": {loseRequest}, "500": {fail500}, "502": {proxy502},
		"duplicate": {duplicate},
		"throttled": {throttle, throttle}, "until the end": slices.Repeat([]mishap{loseRequest},
			wire.OperatorAttempts-1),
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			client, w := e.withNetwork(mishaps...)
			putMember(t, e.members(client), child())
			if got, found, err := e.members(e.client).Get(t.Context(), "user-1"); got != child() || !found ||
				err != nil {
				t.Errorf("read %v, %v, %v", got, found, err)
			}
			if len(w.mishaps) > 0 {
				t.Error("a mishap did not happen")
			}
		})
	}
	e, memory := newFaulty(t)
	putMember(t, e.members(e.client), child())
	faults := []memdynamo.Fault{memdynamo.LoseRequest, memdynamo.Throttle, memdynamo.LoseReply, memdynamo.None}
	memory.Faults().Script(func(memdynamo.Request) memdynamo.Fault {
		fault := faults[0]
		faults = faults[1:]
		return fault
	})
	if err := e.members(e.client).Delete(t.Context(), "user-1"); err != nil {
		t.Error(err)
	}
	memory.Faults().Clear()
	if len(faults) > 0 {
		t.Errorf("%d attempts of the deletion were not made", len(faults))
	}
	if got, want := e.get(t, item.EntityKey("user-1")), item.EntityKey("user-1"); len(got) != len(want) {
		t.Errorf("%v is still there", got)
	}
}

// TestMembersKeepOthers: Put and Delete change the attributes of the link, and leave what else is stored in
// its item. A deletion creates no item.
func TestMembersKeepOthers(t *testing.T) {
	e := newEngine(t)
	members, key := e.members(e.client), item.EntityKey("user-1")
	if err := members.Delete(t.Context(), "user-1"); err != nil {
		t.Fatal(err)
	}
	if got := e.get(t, key); got != nil {
		t.Errorf("the deletion of nothing has stored %v", got)
	}
	key["since"] = codec.N(7)
	e.put(t, key)
	if _, found, err := members.Get(t.Context(), "user-1"); found || err != nil {
		t.Errorf("found %v, %v without a link", found, err)
	}
	for _, m := range []store.Member{child(), {Entity: "user-1"}} {
		putMember(t, members, m)
		want := memberItem(m)
		want["since"] = codec.N(7)
		if diff := cmp.Diff(want, e.get(t, item.EntityKey("user-1")), anyAttribute); diff != "" {
			t.Errorf("the item, - wanted, + stored:\n%s", diff)
		}
	}
	if err := members.Delete(t.Context(), "user-1"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(key, e.get(t, item.EntityKey("user-1")), anyAttribute); diff != "" {
		t.Errorf("what the deletion leaves, - wanted, + stored:\n%s", diff)
	}
}

// anyAttribute compares attributes of items.
var anyAttribute = cmp.AllowUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{},
	types.AttributeValueMemberBOOL{})

// TestMembersUnavailable holds what an operator is told when DynamoDB does not answer.
func TestMembersUnavailable(t *testing.T) {
	e, memory := newFaulty(t)
	members := e.members(e.client)
	memory.Faults().InternalErrors(1)
	_, _, errGet := members.Get(t.Context(), "user-1")
	for name, err := range map[string]error{
		"put": members.Put(t.Context(), child()), "get": errGet, "delete": members.Delete(t.Context(), "user-1"),
		"children": second(children(t.Context(), members, "project-a")),
	} {
		if !isA[*store.UnavailableError](err) {
			t.Errorf("%s: got a %T", name, err)
		}
		wantErr(t, err, "unavailable table "+e.table+" 10: InternalServerError: Internal server error")
	}
	memory.Faults().Clear()
}

// lookUp is a look-up that succeeds.
func lookUp(t testing.TB, s *session, entity string, want store.Member) {
	t.Helper()
	got, found, err := s.Member(t.Context(), entity)
	if got != want || found != (want != store.Member{}) || err != nil {
		t.Errorf("looked up %s: %v, %v, %v; want %v", entity, got, found, err, want)
	}
}

// TestLookUps counts reads: an answer, that there is none too, is remembered for a minute of the injected
// clock.
func TestLookUps(t *testing.T) {
	e := newEngine(t)
	putMember(t, e.members(e.client), child())
	process, seen := e.session(t, e.client, &e.clock)
	none := store.Member{}
	for range 3 {
		lookUp(t, process, "user-1", child())
		lookUp(t, process, "user-2", none)
	}
	seen.calls(t, "member found", "member missing")

	moved := store.Member{Entity: "user-1", Parent: "project-b", Cascade: true}
	born := store.Member{Entity: "user-2", Parent: "project-a"}
	putMember(t, e.members(e.client), moved) // by somebody else
	putMember(t, e.members(e.client), born)
	e.clock.set(59_999)
	lookUp(t, process, "user-1", child())
	lookUp(t, process, "user-2", none)
	seen.calls(t)
	e.clock.set(60_000)
	lookUp(t, process, "user-1", moved)
	lookUp(t, process, "user-2", born)
	seen.calls(t, "member found", "member found")
	e.clock.set(59_000) // a clock that was set back makes nothing last longer
	lookUp(t, process, "user-1", moved)
	seen.calls(t, "member found")

	// This process sees its own changes at once.
	putMember(t, process.Members(), child())
	lookUp(t, process, "user-1", child())
	if err := process.Members().Delete(t.Context(), "user-1"); err != nil {
		t.Fatal(err)
	}
	lookUp(t, process, "user-1", none)
	seen.calls(t, "member found", "member missing")
}

// TestLookUpsBounded: of more entities than are remembered, those last asked for are.
func TestLookUpsBounded(t *testing.T) {
	e := newEngine(t)
	process, seen := e.session(t, e.client, &e.clock, option(ImageCache(2)))
	for _, entity := range []string{"user-1", "user-2", "user-1", "user-3", "user-1", "user-2"} {
		lookUp(t, process, entity, store.Member{})
	}
	seen.calls(t, slices.Repeat([]string{"member missing"}, 4)...)
	if n := process.lookups.Len(); n != 2 {
		t.Errorf("%d are remembered, want 2", n)
	}
}

// held is an API whose reads of single items are answered when a test lets them.
type held struct {
	wire.API
	reads chan struct{} // each lets one be answered
}

func (h *held) GetItem(
	ctx context.Context,
	in *dynamodb.GetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	out, err := h.API.GetItem(ctx, in, opts...)
	select {
	case <-h.reads:
		return out, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bubbled is a process in a bubble of testing/synctest, on an engine of its own, whose look-ups are held.
func bubbled(t *testing.T) (*engine, *session, *events, *held) {
	t.Helper()
	e := &engine{client: memdynamo.New().Client()}
	e.table = dynamotest.Table(t, e.client, dynamotest.Streamless(operator.Table))
	h := &held{e.client, make(chan struct{})}
	process, seen := e.session(t, h, &e.clock)
	return e, process, seen, h
}

// readCounter is an API that counts reads of single items, and answers them once opened.
type readCounter struct {
	wire.API
	opened       chan struct{}
	running, all atomic.Int64
}

func (c *readCounter) GetItem(
	ctx context.Context,
	in *dynamodb.GetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	c.all.Add(1)
	c.running.Add(1)
	defer c.running.Add(-1)
	select {
	case <-c.opened:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return c.API.GetItem(ctx, in, opts...)
}

// TestLookUpsInFlight: of 1,000 entities only as many as InFlight are read at a time. A call whose read has
// no turn is not sent. A read that others wait for goes on when the first call leaves before it has a turn,
// and one that nobody waits for is not sent.
func TestLookUpsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{client: memdynamo.New().Client()}
		e.table = dynamotest.Table(t, e.client, dynamotest.Streamless(operator.Table))
		putMember(t, e.members(e.client), child())
		c := &readCounter{API: e.client, opened: make(chan struct{})}
		process, _ := e.session(t, c, &e.clock, option(InFlight(8)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ended := make(chan error, 1002)
		ask := func(ctx context.Context, entity string) {
			_, _, err := process.Member(ctx, entity)
			ended <- err
		}
		for i := range 1000 {
			go ask(ctx, fmt.Sprint("user-", 1000+i))
		}
		synctest.Wait()
		first, leave := context.WithCancel(t.Context())
		go ask(first, "user-1")
		synctest.Wait()
		served := make(chan struct{})
		go func() {
			lookUp(t, process, "user-1", child())
			close(served)
		}()
		synctest.Wait()
		leave()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up got %v", err)
		}
		if running := c.running.Load(); running != 8 {
			t.Errorf("%d reads at a time, want 8", running)
		}
		sent := 0
		for range 1000 {
			err := <-ended
			if !errors.Is(err, context.DeadlineExceeded) || !isA[*store.UnavailableError](err) {
				t.Fatalf("%v", err)
			}
			if !errors.Is(err, store.ErrNotSent) {
				sent++
			}
		}
		if sent != 8 {
			t.Errorf("%d calls count as sent, want 8", sent)
		}
		close(c.opened)
		<-served
		if err := process.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if all := c.all.Load(); all != 9 {
			t.Errorf("%d reads, want 8 and that of user-1", all)
		}
	})
}

// TestLookUpsShared has many ask for the same entity at once: one read serves them all, also if who caused it
// gives up.
func TestLookUpsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, process, seen, h := bubbled(t)
		putMember(t, e.members(e.client), child())
		first, giveUp := context.WithCancel(t.Context())
		gaveUp := make(chan error)
		go func() { _, _, err := process.Member(first, "user-1"); gaveUp <- err }()
		synctest.Wait() // the read is under way
		rest := make(chan struct{})
		for range 20 {
			go func() {
				lookUp(t, process, "user-1", child())
				rest <- struct{}{}
			}()
		}
		synctest.Wait()
		giveUp()
		err := <-gaveUp
		if !errors.Is(err, context.Canceled) || isA[*store.UnavailableError](err) {
			t.Errorf("who gave up got %v", err)
		}
		wantErr(t, err, "context canceled look-up user-1")
		h.reads <- struct{}{}
		for range 20 {
			<-rest
		}
		lookUp(t, process, "user-1", child())
		seen.calls(t, "member found")
	})
}

// TestLookUpTimesOut: a caller's deadline is its own, and the read itself ends at the settle time-out.
func TestLookUpTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, process, seen, _ := bubbled(t)
		began := time.Now()
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := process.Member(soon, "user-1")
		if !isA[*store.UnavailableError](err) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got a %T", err)
		}
		wantErr(t, err, "unavailable look-up user-1 1: context deadline exceeded")
		_, _, err = process.Member(t.Context(), "user-1") // the same read
		if !isA[*store.UnavailableError](err) {
			t.Errorf("got a %T", err)
		}
		wantErr(t, err, "unavailable table "+process.conn.Table+" 1: context deadline exceeded")
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("the read took %v, want the settle time-out", took)
		}
		seen.calls(t, "member failed")
		if err := process.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLookUpDuringChange has a read under way while this process changes the entity: what it says may be of
// before, and is not remembered.
func TestLookUpDuringChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, process, seen, h := bubbled(t)
		before := make(chan struct{})
		go func() {
			lookUp(t, process, "user-1", store.Member{})
			close(before)
		}()
		synctest.Wait()
		putMember(t, process.Members(), child())
		after := make(chan struct{})
		go func() {
			lookUp(t, process, "user-1", child())
			close(after)
		}()
		synctest.Wait()
		h.reads <- struct{}{}
		<-before
		h.reads <- struct{}{}
		<-after
		lookUp(t, process, "user-1", child())
		seen.calls(t, "member missing", "member found")

		// Nobody asks again until the read has ended.
		before = make(chan struct{})
		go func() {
			lookUp(t, process, "user-2", store.Member{})
			close(before)
		}()
		synctest.Wait()
		born := store.Member{Entity: "user-2", Parent: "project-a"}
		putMember(t, process.Members(), born)
		h.reads <- struct{}{}
		<-before
		go func() { h.reads <- struct{}{} }()
		lookUp(t, process, "user-2", born)
		seen.calls(t, "member missing", "member found")
	})
}

// TestLookUpsInAnOutage: a failure is not remembered; an answer that is due serves for another second, and is
// then asked for again. A *store.SetupError is returned at once.
func TestLookUpsInAnOutage(t *testing.T) {
	e, memory := newFaulty(t)
	putMember(t, e.members(e.client), child())
	process, seen := e.session(t, e.client, &e.clock)
	failed := slices.Repeat([]string{"member failed"}, 3)
	memory.Faults().InternalErrors(1)
	_, _, err := process.Member(t.Context(), "user-1")
	if !isA[*store.UnavailableError](err) {
		t.Errorf("got a %T", err)
	}
	wantErr(t, err, "unavailable table "+e.table+" 3: InternalServerError: Internal server error")
	seen.calls(t, failed...)
	memory.Faults().Clear()
	lookUp(t, process, "user-1", child())
	lookUp(t, process, "user-2", store.Member{})
	seen.calls(t, "member found", "member missing")

	memory.Faults().InternalErrors(1)
	for _, at := range []int64{60_000, 61_000} {
		e.clock.set(at)
		for range 3 {
			lookUp(t, process, "user-1", child())
		}
		e.clock.set(at + 999)
		lookUp(t, process, "user-1", child())
		seen.calls(t, failed...)
	}
	lookUp(t, process, "user-2", store.Member{})
	seen.calls(t, failed...)
	memory.Faults().Clear()
	if err := e.members(e.client).Delete(t.Context(), "user-1"); err != nil {
		t.Fatal(err)
	}
	lookUp(t, process, "user-1", child())
	seen.calls(t)
	e.clock.set(62_000)
	lookUp(t, process, "user-1", store.Member{})
	seen.calls(t, "member missing")

	process.conn.Table = "nobody-made-this"
	e.clock.set(180_000)
	_, _, err = process.Member(t.Context(), "user-1")
	wantSetup(t, err, "table nobody-made-this", "ResourceNotFoundException")
	seen.calls(t, "member failed")
}

// TestLookUpsBudget has a long outage of many look-ups: in the end each makes one read.
func TestLookUpsBudget(t *testing.T) {
	const lookups = 200
	e, memory := newFaulty(t)
	process, seen := e.session(t, e.client, &e.clock)
	memory.Faults().InternalErrors(1)
	for i := range lookups {
		if _, _, err := process.Member(t.Context(), fmt.Sprint("user-", i)); !isA[*store.UnavailableError](err) {
			t.Errorf("got %v", err)
		}
	}
	if got := seen.count("member failed"); got != lookups+wire.BudgetTokens/wire.RetryCost {
		t.Errorf("%d reads, want %d and the budget of %d", got, lookups, wire.BudgetTokens/wire.RetryCost)
	}
	memory.Faults().Clear()
}

// TestLookUpDueAtDeadline has an answer that is due and a table that is silent: the answer serves who cannot
// wait.
func TestLookUpDueAtDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, process, _, h := bubbled(t)
		putMember(t, e.members(e.client), child())
		go func() { h.reads <- struct{}{} }()
		lookUp(t, process, "user-1", child())
		e.clock.set(60_000)
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, found, err := process.Member(soon, "user-1"); got != child() || !found || err != nil {
			t.Errorf("got %v, %v, %v", got, found, err)
		}
		if err := process.Close(t.Context()); err != nil { // once the read has ended
			t.Error(err)
		}
	})
}
