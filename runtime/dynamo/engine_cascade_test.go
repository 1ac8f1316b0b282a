package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/scheduler"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// member is a user of a project, or, without a user, the project.
type member struct{ user, project string }

func (m member) Chain(dst []store.Link) []store.Link {
	if m.user != "" {
		dst = append(dst, store.Link{Kind: 1, ID: m.user})
	}
	return append(dst, store.Link{Kind: 0, ID: m.project})
}

// house is a process with resources of families.
type house struct {
	*runtime.Limiter
	*events
	at []*runtime.Resource[member, tokens]
}

func (e *engine) house(t testing.TB, api wire.API, defs ...store.Definition) *house {
	t.Helper()
	return e.houseWith(t, api, nil, defs...)
}

// houseWith is a house with other options than all have.
func (e *engine) houseWith(
	t testing.TB,
	api wire.API,
	opts []runtime.Option,
	defs ...store.Definition,
) *house {
	t.Helper()
	h := &house{events: &events{}}
	h.Limiter, h.at = storetest.Open[member](t, New(api, e.table), append(e.options(h.events), opts...), defs...)
	return h
}

// acquire takes cost on the first resource.
func (h *house) acquire(t testing.TB, m member, cost ...int64) *runtime.Lease[tokens] {
	t.Helper()
	lease, err := h.at[0].Acquire(t.Context(), m, cost)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

var alicesHome = member{"1", "1"}

// TestCascadePaths: each bucket of a chain takes the path that it needs.
func TestCascadePaths(t *testing.T) {
	_, embeddings := generated(t)
	e := newEngine(t)
	h := e.house(t, e.client, family(embeddings, store.CascadeAtomic, minute(1000), minute(100)))
	h.acquire(t, member{project: "1"}, 500)
	h.acquire(t, alicesHome, 60) // create, and retry
	e.holding(t, "user-1 40 60", "project-1 440 560")
	e.clock.set(30_000)
	h.acquire(t, alicesHome, 70) // normal, and retry
	e.holding(t, "user-1 20 130", "project-1 370 630")
	user, project := e.get(
		t,
		item.BucketKey("user-1", "embeddings"),
	), e.get(
		t,
		item.BucketKey("project-1", "embeddings"),
	)
	if number(user["rf"]) != t0+30_000 || number(project["rf"]) != t0 {
		t.Errorf(
			"rf of user %d, of project %d: want one by normal and one by retry",
			number(user["rf"]),
			number(project["rf"]),
		)
	}
	h.calls(t, "read missing", "create applied", "read missing", "transact applied", "transact applied")
}

// TestCascadeDenied: a denial names all who refuse, and nobody is charged.
func TestCascadeDenied(t *testing.T) {
	_, embeddings := generated(t)
	for name, cascade := range map[string]store.Cascade{"atomic": store.CascadeAtomic,
		"compensated": store.CascadeCompensated} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			def := family(embeddings, cascade, minute(100), minute(60))
			h, other := e.house(t, e.client, def), e.house(t, e.client, def)
			h.acquire(t, alicesHome, 50)
			other.acquire(t, member{"2", "1"}, 40) // of which h does not know
			e.holding(t, "user-1 10 50", "user-2 20 40", "project-1 10 90")
			e.clock.set(1200) // 1.2 more for a user, 2 for the project; and what h remembers may no longer refuse

			for who, test := range map[*house]struct {
				m    member
				cost int64
				want []store.Refusal
			}{
				h: {alicesHome, 20, []store.Refusal{
					{Resource: "embeddings", Entity: "user-1", Limit: "rps", Requested: 20, Available: 11,
						RetryAfter: 8800 * time.Millisecond},
					{Resource: "embeddings", Entity: "project-1", Limit: "rps", Requested: 20, Available: 12,
						RetryAfter: 4800 * time.Millisecond},
				}},
				other: {member{"3", "1"}, 20, []store.Refusal{ // its own bucket would be created
					{Resource: "embeddings", Entity: "project-1", Limit: "rps", Requested: 20, Available: 12,
						RetryAfter: 4800 * time.Millisecond},
				}},
			} {
				_, err := who.at[0].Acquire(t.Context(), test.m, tokens{test.cost})
				denied, ok := errors.AsType[*store.DeniedError](err)
				if !ok {
					t.Fatalf("%v, want a denial", err)
				}
				if diff := cmp.Diff(test.want, denied.Refusals); diff != "" {
					t.Error(diff)
				}
				if longest := test.want[0]; denied.Entity != longest.Entity || denied.RetryAfter != longest.RetryAfter {
					t.Errorf(
						"%s after %v, want %s after %v",
						denied.Entity,
						denied.RetryAfter,
						longest.Entity,
						longest.RetryAfter,
					)
				}
			}
			e.holding(t, "user-1 10 50", "user-2 20 40", "project-1 10 90")
			if tk, tc := e.held(t, "user-3"); tc != 0 {
				t.Errorf("user-3 holds %d and was charged %d", tk, tc)
			}

			_, err := h.at[0].Acquire(t.Context(), alicesHome, tokens{61})
			if exceeds, ok := errors.AsType[*store.CostTooLargeError](err); !ok || exceeds.Entity != "user-1" {
				t.Errorf("%v, want that the user can never have so many", err)
			}
		})
	}
}

// TestCascadeDeniedOutdated: a bucket that is to be reshaped, and cannot admit then, is among those who
// refuse.
func TestCascadeDeniedOutdated(t *testing.T) {
	_, embeddings := generated(t)
	for name, cascade := range map[string]store.Cascade{"atomic": store.CascadeAtomic,
		"compensated": store.CascadeCompensated} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			h := e.house(t, e.client, family(embeddings, cascade, minute(1000), minute(100)))
			h.acquire(t, alicesHome, 100)
			h.acquire(t, member{project: "1"}, 895) // 5 are left
			lower := family(embeddings, cascade, minute(60), minute(100))
			lower.Numbers.Revision = 2
			_, err := e.house(t, e.client, lower).at[0].Acquire(t.Context(), alicesHome, tokens{20})
			denied, ok := errors.AsType[*store.DeniedError](err)
			if !ok {
				t.Fatal(err)
			}
			want := []store.Refusal{
				{Resource: "embeddings", Entity: "user-1", Limit: "rps", Requested: 20, RetryAfter: 12 * time.Second},
				{
					Resource:   "embeddings",
					Entity:     "project-1",
					Limit:      "rps",
					Requested:  20,
					Available:  5,
					RetryAfter: 15 * time.Second,
				},
			}
			if diff := cmp.Diff(want, denied.Refusals); diff != "" || denied.RetryAfter != 15*time.Second {
				t.Errorf("retry after %v; %s", denied.RetryAfter, diff)
			}
		})
	}
}

// TestCascadeDeniedWithoutTheRest: a bucket that refuses decides, though the others cannot be read. No policy
// may admit then.
func TestCascadeDeniedWithoutTheRest(t *testing.T) {
	_, embeddings := generated(t)
	e := newEngine(t)
	down, parent := false, item.BucketKey("project-1", "embeddings")
	api := &batches{
		API: e.client,
		answer: func(in *dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
			if !down {
				return nil, nil
			}
			keys := in.RequestItems[e.table].Keys
			i := slices.IndexFunc(keys, func(key codec.Item) bool { return item.KeyOf(key) == item.KeyOf(parent) })
			if i < 0 || len(keys) == 1 {
				return nil, errWire
			}
			out, err := e.client.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{
				RequestItems: map[string]types.KeysAndAttributes{
					e.table: {Keys: slices.Delete(slices.Clone(keys), i, i+1)},
				},
			})
			if err == nil {
				out.UnprocessedKeys = map[string]types.KeysAndAttributes{e.table: {Keys: []codec.Item{parent}}}
			}
			return out, err
		},
	}
	h := e.house(t, api, family(embeddings, store.CascadeAtomic, minute(1000), minute(100)))
	h.acquire(t, alicesHome, 100)
	down = true
	_, err := h.at[0].Acquire(t.Context(), alicesHome, tokens{10}, runtime.OnUnavailable(store.Allow))
	denied, ok := errors.AsType[*store.DeniedError](err)
	if !ok || len(denied.Refusals) != 1 || denied.Entity != "user-1" {
		t.Errorf("%v, want a denial by the user", err)
	}
	if n := api.calls.Load(); n != 3 {
		t.Errorf("%d reads, want one of each of the two, and none that goes on asking", n)
	}
}

// TestCascadeStale: a transaction from stale images is refused, learns what failed, and goes again.
func TestCascadeStale(t *testing.T) {
	_, embeddings := generated(t)
	e := newEngine(t)
	def := family(embeddings, store.CascadeAtomic, minute(100), minute(60))
	h, other := e.house(t, e.client, def), e.house(t, e.client, def)
	h.acquire(t, alicesHome, 5)
	other.acquire(t, member{"2", "1"}, 60)
	h.calls(t, "read missing", "transact applied")
	h.acquire(t, alicesHome, 20)   // 95 by its image, 35 in truth
	h.calls(t, "transact applied") // a retry holds, however stale
	other.acquire(t, member{"3", "1"}, 10)
	h.acquire(t, member{project: "1"}, 1)
	h.calls(t, "retry applied") // and saw the 5 that are left
	other.acquire(t, member{"3", "1"}, 4)
	_, err := h.at[0].Acquire(t.Context(), alicesHome, tokens{3})
	if denied, ok := errors.AsType[*store.DeniedError](err); !ok || denied.Entity != "project-1" ||
		len(denied.Refusals) != 1 {
		t.Errorf("%v, want a denial by the project alone", err)
	}
	h.calls(t, "transact refused") // whose image denies: no read
	e.holding(t, "user-1 35 25", "project-1 0 100")
}

// TestCascadeSettles: a lease settles and releases over the whole chain.
func TestCascadeSettles(t *testing.T) {
	_, embeddings := generated(t)
	for name, cascade := range map[string]store.Cascade{"atomic": store.CascadeAtomic,
		"compensated": store.CascadeCompensated} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			h := e.house(t, e.client, family(embeddings, cascade, minute(1000), minute(100)))
			up, down, back := h.acquire(t, alicesHome, 10), h.acquire(t, alicesHome, 10), h.acquire(t, alicesHome, 10)
			e.holding(t, "user-1 70 30", "project-1 970 30")
			if err := up.Settle(t.Context(), tokens{95}); err != nil { // into debt
				t.Fatal(err)
			}
			e.holding(t, "user-1 -15 115", "project-1 885 115")
			if err := down.Settle(t.Context(), tokens{1}); err != nil {
				t.Fatal(err)
			}
			e.holding(t, "user-1 -6 106", "project-1 894 106")
			back.Release(t.Context())
			e.holding(t, "user-1 4 96", "project-1 904 96")
			if left := back.Remaining(); left[0] != 4 {
				t.Errorf("%v remain, want the user's 4", left)
			}
		})
	}
}

// TestEqualRefusals: a compensated denial names the nearest of the refusals that last equally long. The
// parent, which has a smaller part of its burst left, refused first.
func TestEqualRefusals(t *testing.T) {
	_, embeddings := generated(t)
	e := newEngine(t)
	def := family(embeddings, store.CascadeCompensated, minute(140_000), minute(7))
	h, stranger := e.house(t, e.client, def), e.house(t, e.client, def)
	h.acquire(t, alicesHome, 7)
	lease := h.acquire(t, member{"2", "1"}, 1)
	if err := lease.Settle(t.Context(), tokens{140_000 - 7 + 20_000}); err != nil {
		t.Fatal(err)
	}
	// 1 of 7 is missing, and 20,001 of 140,000: 8,571.4 and 8,571.9 ms.
	_, err := stranger.at[0].Acquire(t.Context(), alicesHome, tokens{1})
	denied, ok := errors.AsType[*store.DeniedError](err)
	if !ok {
		t.Fatalf("got %v, want a denial", err)
	}
	type named struct {
		entity    string
		available int64
		after     time.Duration
	}
	var got []named
	for _, r := range denied.Refusals {
		got = append(got, named{r.Entity, r.Available, r.RetryAfter})
	}
	want := []named{{"user-1", 0, 8572 * time.Millisecond}, {"project-1", 0, 8572 * time.Millisecond}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(named{})); diff != "" {
		t.Error(diff)
	}
	if said := (named{denied.Entity, denied.Available, denied.RetryAfter}); said != want[0] {
		t.Errorf("the denial names %v, want %v", said, want[0])
	}
}

// TestSharedParent has several processes acquire of 64 children of one parent at once. The parent is charged
// as much as the children, which is what was admitted, and no more.
func TestSharedParent(t *testing.T) {
	const children, processes, rounds = 64, 4, 5
	_, embeddings := generated(t)
	for name, cascade := range map[string]store.Cascade{"atomic": store.CascadeAtomic,
		"compensated": store.CascadeCompensated} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			const burst = children * rounds / 2 * 3 // half of what is asked for
			def := family(embeddings, cascade, minute(burst), minute(1000))
			houses := make([]*house, processes)
			for i := range houses {
				houses[i] = e.house(t, e.client, def)
			}
			var mu sync.Mutex
			var admitted, refused int64
			together(t, children, func(child int) error {
				h := houses[child%processes]
				for range rounds {
					lease, err := h.at[0].Acquire(t.Context(), member{fmt.Sprint(child), "1"}, tokens{3})
					taken := int64(3)
					switch {
					case isA[*store.ContendedError](err):
						continue
					case isA[*store.DeniedError](err):
						taken = 0
					case err != nil:
						return err
					case child%3 == 0:
						if err := lease.Settle(t.Context(), tokens{2}); err != nil {
							return err
						}
						taken = 2
					}
					mu.Lock()
					admitted += taken
					if taken == 0 {
						refused++
					}
					mu.Unlock()
				}
				return nil
			})
			_, parent := e.held(t, "project-1")
			var sum int64
			for child := range children {
				_, tc := e.held(t, fmt.Sprint("user-", child))
				sum += tc
			}
			if parent != sum || parent != admitted {
				t.Errorf("the parent was charged %d, its children %d, and %d was admitted", parent, sum, admitted)
			}
			if refused == 0 || parent > burst {
				t.Errorf(
					"%d denials, %d of %d charged: the test wants some of the first and no more than the last",
					refused,
					parent,
					burst,
				)
			}
		})
	}
}

// TestTransactionOnce: however the reply of a transaction gets lost, all its buckets are charged once.
func TestTransactionOnce(t *testing.T) {
	_, embeddings := generated(t)
	for name, test := range map[string]struct {
		mishap mishap
		calls  []string
	}{
		"lost reply":   {loseReply, []string{"transact unknown", "transact applied"}},
		"cut reply":    {cutReply, []string{"transact unknown", "transact applied"}},
		"lost request": {loseRequest, []string{"transact unknown", "transact applied"}},
		"500":          {fail500, []string{"transact unknown", "transact applied"}},
		"duplicate":    {duplicate, []string{"transact applied"}},
		"conflict": {
			cancel("TransactionConflict", "None"), []string{"transact conflict", "transact applied"},
		},
		"in progress": {
			reject("TransactionInProgressException", "wait"), []string{"transact conflict", "transact applied"},
		},
		"throttled": {cancel("ThrottlingError", "None"), []string{"transact throttled", "transact applied"}},
		"throttled, with provisioned throughput": {
			cancel("ProvisionedThroughputExceeded", "None"), []string{"transact throttled", "transact applied"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			client, w := e.withNetwork()
			def := family(embeddings, store.CascadeAtomic, minute(1000), minute(100))
			h := e.house(t, client, def)
			h.acquire(t, alicesHome, 1)
			h.calls(t, "read missing", "transact applied")
			w.expect(test.mishap)
			h.acquire(t, alicesHome, 10)
			h.calls(t, test.calls...)
			e.holding(t, "user-1 89 11", "project-1 989 11")
			w.expect(then(func() { e.house(t, e.client, def).acquire(t, member{"2", "1"}, 5) }, loseReply))
			h.acquire(t, alicesHome, 10) // others in between
			e.holding(t, "user-1 79 21", "project-1 974 26")
		})
	}
}

// TestMalformedInAChain: a malformed bucket of a chain is named, by a process that knew it when it was sound
// and by one that reads it first. No other bucket stays charged.
func TestMalformedInAChain(t *testing.T) {
	_, embeddings := generated(t)
	for name, cascade := range map[string]store.Cascade{"atomic": store.CascadeAtomic,
		"compensated": store.CascadeCompensated} {
		for _, knows := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/known %t", name, knows), func(t *testing.T) {
				e := newEngine(t)
				def := family(embeddings, cascade, minute(1000), minute(100))
				h := e.house(t, e.client, def)
				h.acquire(t, alicesHome, 1)
				stored := e.get(t, item.BucketKey("user-1", "embeddings"))
				stored["b_rps_tk"] = codec.N(math.MaxInt64)
				e.put(t, stored)
				if !knows {
					h = e.house(t, e.client, def)
				}
				_, err := h.at[0].Acquire(t.Context(), alicesHome, tokens{10})
				wantSetup(t, err, "the bucket of user-1 on embeddings is malformed",
					"attribute b_rps_tk 9223372036854775807")
				if err := h.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if tc := number(e.get(t, item.BucketKey("project-1", "embeddings"))["b_rps_tc"]); tc != 1000 {
					t.Errorf("project-1 has consumed %d, want 1000", tc)
				}
			})
		}
	}
}

// TestTransactionGivenBack: a caller who gives up while the outcome of its transaction is unknown has every
// bucket given back to which nobody has written since.
func TestTransactionGivenBack(t *testing.T) {
	_, embeddings := generated(t)
	for name, test := range map[string]struct {
		mishap mishap
		other  bool
		want   []string
	}{
		"lost reply":   {loseReply, false, []string{"user-1 99 1", "project-1 999 1"}},
		"lost request": {loseRequest, false, []string{"user-1 99 1", "project-1 999 1"}},
		"in between":   {loseReply, true, []string{"user-1 99 1", "project-1 984 16"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			client, w := e.withNetwork()
			def := family(embeddings, store.CascadeAtomic, minute(1000), minute(100))
			h := e.house(t, client, def)
			h.acquire(t, alicesHome, 1)
			ctx, cancel := context.WithCancel(t.Context())
			w.expect(then(func() {
				if test.other {
					e.house(t, e.client, def).acquire(t, member{"2", "1"}, 5)
				}
				cancel()
			}, test.mishap))
			_, err := h.at[0].Acquire(ctx, alicesHome, tokens{10})
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if err := h.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			e.holding(t, test.want...)
		})
	}
}

// TestTransactionGivenBackAfterAFailure: a repetition that fails for good says nothing of what it repeats.
func TestTransactionGivenBackAfterAFailure(t *testing.T) {
	_, embeddings := generated(t)
	for name, test := range map[string]struct {
		mishaps []mishap
		calls   []string
	}{
		"unknown": {
			[]mishap{loseReply, reject("ExpiredTokenException", "renew")},
			[]string{"transact unknown", "transact failed", "undo applied", "undo applied"},
		},
		"known": {[]mishap{reject("ExpiredTokenException", "renew")}, []string{"transact failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			client, w := e.withNetwork()
			h := e.house(t, client, family(embeddings, store.CascadeAtomic, minute(1000), minute(100)))
			h.acquire(t, alicesHome, 1)
			h.calls(t, "read missing", "transact applied")
			w.expect(test.mishaps...)
			if _, err := h.at[0].Acquire(t.Context(), alicesHome, tokens{10}); !isA[*store.SetupError](err) {
				t.Fatal(err)
			}
			if err := h.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			h.calls(t, test.calls...)
			e.holding(t, "user-1 99 1", "project-1 999 1")
		})
	}
}

// conflicting is an API whose writes meet transactions: the bucket at an index is in one. Below 0 none is.
type conflicting struct {
	wire.API
	at atomic.Int64
}

func (c *conflicting) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	at := c.at.Load()
	if at < 0 {
		return c.API.TransactWriteItems(ctx, in, opts...)
	}
	reasons := make([]types.CancellationReason, len(in.TransactItems))
	for i := range reasons {
		reasons[i].Code = aws.String("None")
	}
	reasons[at].Code = aws.String("TransactionConflict")
	return nil, &types.TransactionCanceledException{CancellationReasons: reasons}
}

func (c *conflicting) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if c.at.Load() < 0 {
		return c.API.UpdateItem(ctx, in, opts...)
	}
	return nil, &types.TransactionConflictException{}
}

// TestConflicts: a write that meets transactions is tried again, more often than Attempts says. If each
// attempt does, the call is reported as contended, with how often, and never as a denial.
func TestConflicts(t *testing.T) {
	const budget = time.Second
	inBubble(t, 1, func(t *testing.T, b *bubble) {
		t.Helper()
		api := &conflicting{API: b.client}
		api.at.Store(-1)
		def := lineage(second(generated(t)), store.CascadeAtomic, minute(1000), minute(1000), minute(100))
		p := newPost(t, New(api, "faults", Attempts(2)),
			[]runtime.Option{runtime.WithCallDefaults(runtime.Budget(budget))}, def)
		acquire := func(who kin) error {
			_, err := p.at[0].Acquire(t.Context(), who, tokens{1})
			return err
		}
		if err := acquire(kin{"1", "2"}); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			who    kin
			at     int64
			entity string
		}{
			{kin{"1", "2"}, 0, "project-2"}, {kin{"1", "2"}, 1, "org-1"}, {kin{"1"}, 0, "org-1"},
		} {
			api.at.Store(test.at)
			began := time.Now()
			err := acquire(test.who)
			took := time.Since(began)
			contended, ok := errors.AsType[*store.ContendedError](err)
			if !ok || contended.Entity != test.entity || contended.Conflicts != contended.Attempts {
				t.Errorf("%v at %d: %#v", test.who, test.at, err)
				continue
			}
			if contended.Attempts != 2+scheduler.MostFree || took > budget {
				t.Errorf("%v at %d: %d attempts in %v", test.who, test.at, contended.Attempts, took)
			}
			wantErr(t, err, fmt.Sprintf("contended %s %s %d/%[3]d",
				contended.Resource, contended.Entity, contended.Attempts))
			time.AfterFunc(10*time.Millisecond, func() { api.at.Store(-1) })
			if err := acquire(test.who); err != nil {
				t.Errorf("%v at %d: the conflicts ended soon: %v", test.who, test.at, err)
			}
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestClaims: several resources in one transaction; claims that meet in one bucket are added up.
func TestClaims(t *testing.T) {
	gpt4, embeddings := generated(t)
	e := newEngine(t)
	two := []bucket.Limit{bucket.Per(100, time.Minute), bucket.Per(1000, time.Minute)}
	h := e.house(
		t,
		e.client,
		family(
			embeddings,
			store.CascadeAtomic,
			minute(1000),
			minute(100),
		),
		family(gpt4, store.CascadeCompensated, two, two),
	)
	own, others, chat := h.at[0].Claim(
		alicesHome,
		tokens{10},
	), h.at[0].Claim(
		member{"2", "1"},
		tokens{20},
	), h.at[1].Claim(
		alicesHome,
		tokens{1, 200},
	)
	if err := h.AcquireAll(t.Context(), own, others, chat); err != nil {
		t.Fatal(err)
	}
	h.calls(t, "read missing", "transact applied")
	e.holding(t, "user-1 90 10", "user-2 80 20", "project-1 970 30")
	if _, tc := e.balance(t, "gpt-4", "tpm"); tc != 200*bucket.Milli {
		t.Errorf("%d charged", tc)
	}
	if err := own.Lease().Settle(t.Context(), tokens{4}); err != nil { // of its own part alone
		t.Fatal(err)
	}
	others.Lease().Release(t.Context())
	e.holding(t, "user-1 96 4", "user-2 100 0", "project-1 996 4")

	greedy := h.at[1].Claim(alicesHome, tokens{1, 900})
	modest := h.at[0].Claim(alicesHome, tokens{1})
	err := h.AcquireAll(t.Context(), modest, greedy)
	denied, ok := errors.AsType[*store.DeniedError](err)
	if !ok || denied.Resource != "gpt-4" || denied.Limit != "tpm" || modest.Lease() != nil {
		t.Errorf("%v, want a denial by tpm of gpt-4", err)
	}
	e.holding(t, "user-1 96 4", "project-1 996 4")

	projects := func(n int) (claims []runtime.AnyClaim) {
		for i := range n {
			claims = append(claims, h.at[0].Claim(member{project: fmt.Sprint(i)}, tokens{1}))
		}
		return claims
	}
	if err := h.AcquireAll(t.Context(), projects(100)...); err != nil {
		t.Error(err)
	}
	err = h.AcquireAll(t.Context(), projects(101)...)
	wantErr(t, err, `invalid embeddings claims "101"`)
	if !strings.Contains(errtext.Reason(err), "takes 100") {
		t.Errorf("%v does not say how many buckets a transaction takes", err)
	}
}

// TestTransactionKeepsDebt: a transaction from a stale image must not shorten the ttl of a bucket that is
// deep in debt: deleted, it would come back full.
func TestTransactionKeepsDebt(t *testing.T) {
	gpt4, _ := generated(t)
	two := []bucket.Limit{bucket.Per(100, time.Minute), bucket.Per(1000, time.Minute)}
	def := family(gpt4, store.CascadeAtomic, two, two)
	e := newEngine(t)
	stale, other := e.house(t, e.client, def), e.house(t, e.client, def)
	stale.acquire(t, alicesHome, 1, 10)
	lease := other.acquire(t, member{project: "1"}, 1, 10)
	if err := lease.Settle(t.Context(), tokens{1, 9000}); err != nil {
		t.Fatal(err)
	}
	stale.acquire(t, alicesHome, 1, 0) // knows nothing of the debt of tpm, and does not ask for it
	item := e.get(t, item.BucketKey("project-1", "gpt-4"))
	tk, ttl := number(item["b_tpm_tk"]), number(item["ttl"])
	if full := t0/1000 + (1_000_000-tk)*60/1_000_000; tk > -8_000_000 || ttl < full {
		t.Errorf("%d millitokens, full at %d, but the ttl is %d", tk, full, ttl)
	}
	stale.calls(t, "read missing", "transact applied", "transact refused", "transact applied")
}
