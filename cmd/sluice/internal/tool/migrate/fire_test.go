package migrate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
)

// fire is a migration of users and projects on gpt-4, under acquires, and killed again and again. A tenth of
// its transactions have somebody come between what they are made of and themselves: who writes per-limit
// items still, or who acquires.
type fire struct {
	users, projects int
	calls           int // acquires beside it
	kills           int // calls after which a run is killed, at most
	seed            uint64
	broken          func(any) // a broken migration: changes its requests before they are sent
}

// seed draws the per-limit items: most with the schema's numbers, of others some are raised and some lowered.
// Some are in debt, and some were last written by a clock that was ahead.
func (f *fire) seedItems(rng *rand.Rand) (*books, []codec.Item) {
	b := &books{accounts: map[string]*[2]account{}, interrupted: map[string]bool{}}
	var items []codec.Item
	add := func(entity string) {
		b.accounts[entity] = &[2]account{}
		for i, own := range specs()[0].Kinds[kindOfEntity(entity)].Limits {
			switch rng.IntN(20) {
			case 0:
				own.Capacity, own.Burst, own.Refill = 2*own.Capacity, 2*own.Burst, 2*own.Refill
			case 1:
				own.Burst = own.Capacity / 2
			}
			a := &b.accounts[entity][i]
			a.item = bucket.Balance{Limit: own, Tokens: own.Burst - rng.Int64N(own.Burst*6/5),
				Consumed: rng.Int64N(1e12)}
			a.ahead = time.Duration(rng.IntN(12_000)-2_000) * time.Millisecond
			items = append(items, old(entity, "gpt-4", names[i], a.item, a.ahead))
		}
	}
	for i := range f.users {
		add(fmt.Sprint("user-", i))
	}
	for i := range f.projects {
		add(fmt.Sprint("project-", i))
	}
	return b, items
}

// run plays it and returns what the books find wrong.
func (f *fire) run(t *testing.T) (wrong []string, tbl *table) {
	t.Helper()
	tbl = newTable(t)
	rng := rand.New(rand.NewPCG(f.seed, 1))
	b, items := f.seedItems(rng)
	tbl.put(items...)
	lims := []*limits.Limiter{tbl.limiter(), tbl.limiter(), tbl.limiter()}
	var live sync.WaitGroup
	for i := range 3 {
		own := rand.New(rand.NewPCG(f.seed, uint64(i+10)))
		live.Go(func() {
			for range f.calls / 3 {
				b.call(tbl, lims[i], f.entity(own), own)
			}
		})
	}
	runs := 0
	for again := true; again; runs++ {
		kill, late := 1+rng.IntN(f.kills), rng.IntN(2) == 0
		switch {
		case runs < 12: // the first steps too
			kill = 1 + runs
		case runs > 60: // a broken one may never come to the end of a page
			kill = math.MaxInt
		}
		again = tbl.killed(kill, late, func(ctx context.Context, killer *tap) error {
			report, err := Run(ctx, tbl.config(Convert, f.between(tbl, killer, b, lims[runs%3])))
			if err == nil && f.broken == nil && len(report.Wrong)+len(report.Beside)+int(report.Missed) > 0 {
				t.Errorf("a run reports %+v", report)
			}
			return err
		})
	}
	live.Wait()
	t.Logf("%d runs", runs)
	for _, lim := range lims {
		if err := lim.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	return b.check(tbl.all()), tbl
}

// entity draws who calls: half of the calls are by few.
func (f *fire) entity(rng *rand.Rand) limits.GPT4Entity {
	n := rng.IntN(f.users)
	if rng.IntN(2) == 0 {
		n %= 20
	}
	if rng.IntN(10) == 0 {
		return limits.Project{ID: fmt.Sprint(n % f.projects)}
	}
	return limits.User{ID: fmt.Sprint(n), Project: limits.Project{ID: fmt.Sprint(n % f.projects)}}
}

// between has somebody come before a transaction now and then, once for each bucket, and breaks it if it is
// to be.
func (f *fire) between(t *table, to *tap, b *books, lim *limits.Limiter) *tap {
	return &tap{API: to, around: func(_ context.Context, in any, do func() error) error {
		transaction, ok := in.(*dynamodb.TransactWriteItemsInput)
		if !ok || transaction.TransactItems[0].Put == nil {
			if f.broken != nil {
				f.broken(in)
			}
			return do()
		}
		entity := text(transaction.TransactItems[0].Put.Item["entity_id"])
		b.mu.Lock()
		rng := rand.New(rand.NewPCG(f.seed, hash(entity)))
		dice := rng.IntN(20)
		if b.interrupted[entity] {
			dice = -1
		}
		b.interrupted[entity] = true
		b.mu.Unlock()
		switch dice {
		case 0:
			b.write(t, entity)
		case 1:
			if id, ok := strings.CutPrefix(entity, "project-"); ok {
				b.call(t, lim, limits.Project{ID: id}, rng)
			} else if n, ok := strings.CutPrefix(entity, "user-"); ok {
				b.call(t, lim, limits.User{ID: n, Project: limits.Project{ID: "0"}}, rng)
			}
		}
		if f.broken != nil {
			f.broken(in)
		}
		return do()
	}}
}

func hash(s string) (h uint64) {
	for _, c := range []byte(s) {
		h = h*131 + uint64(c)
	}
	return h
}

// size is how many buckets a test of many has: fewer on DynamoDB Local, and in the usual form.
func size(t *testing.T, n int) int {
	t.Helper()
	if dynamotest.OnLocal(t) {
		return n / 40
	}
	return longform.Count(t, "buckets", n, n/10)
}

// TestUnderFire: runs are killed and acquires come between. In the end a bucket has what its items allowed,
// less what was granted: nothing is forged, and nothing lost.
func TestUnderFire(t *testing.T) {
	users, projects := size(t, 9_500), size(t, 500)
	f := &fire{users: users, projects: projects, calls: users / 6, kills: users / 2, seed: 1}
	wrong, tbl := f.run(t)
	if len(wrong) > 0 {
		t.Fatalf("%d are wrong: %s", len(wrong), strings.Join(wrong[:min(10, len(wrong))], "\n"))
	}
	report := tbl.run(tbl.config(Verify, nil))
	if n := int64(users + projects); report.Checked.Buckets != n || report.Checked.Items != 2*n ||
		report.Checked.Expired != 0 ||
		len(report.Left)+len(report.Beside)+len(report.Wrong) != 0 {
		t.Errorf("verify: %+v, %+v", report, report.Checked)
	}
	if got := tbl.layout(); got != 2 {
		t.Errorf("layout %d while items are converted", got)
	}

	// Cleaning up is killed as well.
	tbl.remove(perlimit.BucketKey("user-7", "gpt-4"))
	rng := rand.New(rand.NewPCG(2, 2))
	var deleted atomic.Int64
	for again, runs := true, 0; again; runs++ {
		again = tbl.killed(1+rng.IntN(users/2), rng.IntN(2) == 0, func(ctx context.Context, killer *tap) error {
			report, err := Run(ctx, tbl.config(Cleanup, killer))
			deleted.Add(report.Cleaned.Deleted)
			return err
		})
	}
	var left []string
	for at := range tbl.all() {
		if strings.Count(at, "#") == 4 { // ENTITY#user-7 #BUCKET#gpt-4#rpm
			left = append(left, at)
		}
	}
	if len(left) != 2 || !strings.HasPrefix(left[0], "ENTITY#user-7 ") ||
		!strings.HasPrefix(left[1], "ENTITY#user-7 ") {
		t.Errorf("%d items are left: %v", len(left), left[:min(10, len(left))])
	}
	if got := tbl.layout(); got != 2 {
		t.Errorf("layout %d while there are items", got)
	}
	c := tbl.config(Cleanup, nil)
	c.Expired = true
	if report := tbl.run(c); !report.Cleaned.Done || report.Cleaned.Deleted != 2 {
		t.Errorf("the last cleanup: %+v", report.Cleaned)
	}
	if got := tbl.layout(); got != 1 {
		t.Errorf("layout %d once there is none", got)
	}
}

// TestControls: what is broken in a migration is found by the books.
func TestControls(t *testing.T) {
	longform.Control(t)
	if dynamotest.OnLocal(t) {
		t.Skip("these are about the books, on which the engine has no bearing, and take it two minutes")
	}
	written := func(change func([]types.TransactWriteItem) []types.TransactWriteItem) func(any) {
		return func(in any) {
			if t, ok := in.(*dynamodb.TransactWriteItemsInput); ok && t.TransactItems[0].Put != nil {
				t.TransactItems = change(t.TransactItems)
			}
		}
	}
	const unmarked = "attribute_not_exists(" + perlimit.Migrated + ")"
	for name, test := range map[string]struct {
		broken func(any)
		want   string
	}{
		"none": {nil, ""},
		"marks whatever was read": {written(func(items []types.TransactWriteItem) []types.TransactWriteItem {
			for _, item := range items[1:] {
				item.Update.ConditionExpression = aws.String(unmarked)
				item.Update.ExpressionAttributeValues = codec.Item{":now": item.Update.ExpressionAttributeValues[":now"]}
			}
			return items
		}), "m_rpm"},
		"puts wherever": {written(func(items []types.TransactWriteItem) []types.TransactWriteItem {
			items[0].Put.ConditionExpression = nil
			for _, item := range items[1:] {
				*item.Update.ConditionExpression = strings.TrimPrefix(*item.Update.ConditionExpression, unmarked+" AND ")
			}
			return items
		}), "b_tpm_tk"},
		"does not mark": {written(
			func(items []types.TransactWriteItem) []types.TransactWriteItem { return items[:1] }), "is not marked"},
		"does not convert tc": {written(func(items []types.TransactWriteItem) []types.TransactWriteItem {
			items[0].Put.Item["b_rpm_tc"] = codec.N(0)
			return items
		}), "b_rpm_tc"},
		"is done early": {func(in any) {
			if put, ok := in.(*dynamodb.PutItemInput); ok {
				delete(put.Item, "after_pk")
				delete(put.Item, "after_sk")
				put.Item["done"] = &types.AttributeValueMemberBOOL{Value: true}
			}
		}, "has no bucket"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fire{users: 300, projects: 10, calls: 60, kills: 200, seed: 1, broken: test.broken}
			wrong, _ := f.run(t)
			found := 0
			for _, what := range wrong {
				if test.want != "" && strings.Contains(what, test.want) {
					found++
				}
			}
			if test.want == "" && len(wrong) > 0 || test.want != "" && found == 0 {
				t.Errorf("%d are wrong: %s", len(wrong), strings.Join(wrong[:min(10, len(wrong))], "\n"))
			}
		})
	}
}
