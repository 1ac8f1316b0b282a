package migrating

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// The contents of each per-limit item of a crossing, in tokens. The sum of both stays the same, whatever is
// written.
const (
	crossedLeft     = 40
	crossedConsumed = 7000
)

// crossing is a chain's buckets being carried over by three processes, while somebody still writes per-limit
// items and DynamoDB has a bad day. The clock stands still.
type crossing struct {
	*engine

	expires bool // the user's bucket is deleted whenever it is there

	mu       sync.Mutex
	admitted int64 // that were not given back, in tokens
	deleted  bool  // a bucket that was carried over was deleted
}

func (c *crossing) who() []string { return []string{"user-1", "project-1"} }

// cross plays it in a bubble, in which pauses take no time. edit changes what carries over.
func cross(
	t *testing.T, cascade store.Cascade, expires bool, edit func([]types.TransactWriteItem),
) (wrong string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { wrong = play(t, cascade, expires, edit) })
	return wrong
}

// play is cross without the bubble.
func play(
	t *testing.T, cascade store.Cascade, expires bool, edit func([]types.TransactWriteItem),
) (wrong string) {
	t.Helper()
	e, memory := newFaulty(t)
	c := &crossing{engine: e, expires: expires}
	for _, who := range c.who() {
		e.Put(t, c.old(who))
	}
	faults := memory.Faults()
	faults.InternalErrors(0.03)
	faults.LateInternalErrors(0.05)
	faults.Throttle(0.05)
	faults.Conflict(0.1)
	faults.Unprocessed(0.1)
	var running sync.WaitGroup
	var processes []*process[alice]
	for range 3 {
		h := startChain(t, e, carriesOtherwise{e.Client, edit}, cascade)
		processes = append(processes, h)
		for range 3 {
			running.Go(func() { c.use(t.Context(), h) })
		}
	}
	for _, who := range c.who() {
		running.Go(func() { c.write(t.Context(), who) })
	}
	if expires {
		running.Go(func() { c.expire(t.Context()) })
	}
	running.Wait()
	faults.Clear()
	for _, h := range processes {
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, who := range c.who() {
		if wrong := c.wrong(t, who); wrong != "" {
			return who + ": " + wrong
		}
	}
	return ""
}

func (c *crossing) old(who string) codec.Item {
	stored := oldItem(who, "rps", bucket.Balance{
		Limit: bucket.Per(100, time.Minute), Tokens: crossedLeft * 1000, Consumed: crossedConsumed * 1000,
	}, 0)
	stored["SK"] = codec.S("#BUCKET#embeddings#rps")
	return stored
}

// use acquires a token at a time, and releases every other one.
func (c *crossing) use(ctx context.Context, h *process[alice]) {
	for i := range 4 {
		lease, err := h.Acquire(ctx, alice{}, tokens{1})
		switch {
		case err != nil: // denied, contended or unavailable
		case i%2 == 0:
			lease.Release(ctx)
		default:
			c.mu.Lock()
			c.admitted++
			c.mu.Unlock()
		}
	}
}

// write is a program of before, which takes token by token. That it stops at the mark is this test's: its
// writes would count nowhere.
func (c *crossing) write(ctx context.Context, who string) {
	stored := c.old(who)
	for range 12 {
		_, _ = c.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &c.Name, Key: codec.Item{"PK": stored["PK"], "SK": stored["SK"]},
			UpdateExpression:          aws.String("ADD tokens_milli :less, total_consumed_milli :more"),
			ConditionExpression:       aws.String("tokens_milli >= :more AND attribute_not_exists(migrated)"),
			ExpressionAttributeValues: codec.Item{":less": codec.N(-1000), ":more": codec.N(1000)},
		}, wire.NoRetry)
	}
}

// expire deletes the user's bucket time and again, full or not.
func (c *crossing) expire(ctx context.Context) {
	for range 40 {
		out, err := c.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: &c.Name, Key: item.BucketKey("user-1", "embeddings"), ReturnValues: types.ReturnValueAllOld,
		}, wire.NoRetry)
		if err == nil && out.Attributes["m_rps"] != nil {
			c.mu.Lock()
			c.deleted = true
			c.mu.Unlock()
		}
	}
}

// wrong says what is wrong with the bucket of who and its item.
func (c *crossing) wrong(t *testing.T, who string) string {
	t.Helper()
	stored := c.old(who)
	old, err := perlimit.Decode(c.Get(t, codec.Item{"PK": stored["PK"], "SK": stored["SK"]}))
	if err != nil {
		t.Fatal(err)
	}
	got := c.Get(t, item.BucketKey(who, "embeddings"))
	expires := c.expires && who == "user-1"
	if got == nil {
		if expires || old.Counts() {
			return ""
		}
		return "its item is marked, and there is no bucket"
	}
	tk, tc, all := number(got["b_rps_tk"]), number(got["b_rps_tc"]), int64(crossedLeft+crossedConsumed)*1000
	switch from := got["m_rps"]; {
	case from == nil && !expires:
		return "its bucket was made beside its item"
	case from == nil:
		all = map[string]int64{"user-1": 100, "project-1": 1000}[who] * 1000
	case expires && c.deleted:
		return "its bucket was carried over again"
	case number(from) != old.Consumed:
		return fmt.Sprintf("its bucket starts from %d, its item has %d", number(from), old.Consumed)
	case !c.expires && tc-number(from) < c.admitted*1000:
		return fmt.Sprintf("%d admitted, %d charged", c.admitted*1000, tc-number(from))
	}
	// A refund of what was taken from a bucket that expired early goes to the next bucket, and is clamped there.
	if tk+tc > all || tk+tc < all && !expires {
		return fmt.Sprintf("%d left and %d consumed make %d, not %d", tk, tc, tk+tc, all)
	}
	return ""
}

// carriesOtherwise is a client whose carries are changed.
type carriesOtherwise struct {
	wire.API
	edit func([]types.TransactWriteItem)
}

func (c carriesOtherwise) TransactWriteItems(
	ctx context.Context,
	in *dynamodb.TransactWriteItemsInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	last := in.TransactItems[len(in.TransactItems)-1].Update
	if c.edit != nil && last != nil && strings.Contains(*last.UpdateExpression, perlimit.Migrated) {
		c.edit(in.TransactItems)
	}
	return c.API.TransactWriteItems(ctx, in, opts...)
}

// TestCarryOverByChance: each item is carried over once, as it is then, even if calls are slow, throttled or
// unanswered.
func TestCarryOverByChance(t *testing.T) {
	t.Parallel()
	for i := range 16 {
		cascade := []store.Cascade{store.CascadeAtomic, store.CascadeCompensated}[i%2]
		if wrong := cross(t, cascade, i%4 > 1, nil); wrong != "" {
			t.Errorf("%v, expires %t: %s", cascade, i%4 > 1, wrong)
		}
	}
}

// TestCarryOverByChanceSees shows that TestCarryOverByChance sees what each condition of the transaction is
// there for.
func TestCarryOverByChanceSees(t *testing.T) {
	longform.NoRace(t, "controls, whose broken variants ship nowhere")
	t.Parallel()
	marks := func(edit func(*types.Update)) func([]types.TransactWriteItem) {
		return func(items []types.TransactWriteItem) {
			for _, stored := range items[1:] {
				edit(stored.Update)
			}
		}
	}
	for name, test := range map[string]struct {
		expires bool
		edit    func([]types.TransactWriteItem)
		want    []string
	}{
		"marks whatever was written since": {false, marks(func(mark *types.Update) {
			mark.ConditionExpression, _ = cutLast(mark.ConditionExpression)
			mark.ExpressionAttributeValues = codec.Item{":now": mark.ExpressionAttributeValues[":now"]}
		}), []string{"its bucket starts from"}},
		"puts over a bucket": {false, func(items []types.TransactWriteItem) {
			items[0].Put.ConditionExpression = nil
			marks(func(mark *types.Update) {
				mark.ConditionExpression = nil
				mark.ExpressionAttributeValues = codec.Item{":now": mark.ExpressionAttributeValues[":now"]}
			})(items)
		}, []string{"admitted", "its bucket starts from", "left and"}},
		"no marks": {true, marks(func(mark *types.Update) {
			mark.UpdateExpression = aws.String("SET seen_by_" + perlimit.Migrated + " = :now")
		}), []string{"its bucket was carried over again"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 300 { // by chance: on a machine that does much else it takes longer
				wrong := cross(t, store.CascadeAtomic, test.expires, test.edit)
				if slices.ContainsFunc(test.want, func(want string) bool { return strings.Contains(wrong, want) }) {
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}

// cutLast returns the first of conditions that are joined, which no value is in.
func cutLast(all *string) (first *string, ok bool) {
	before, _, ok := strings.Cut(*all, " AND ")
	return &before, ok
}
