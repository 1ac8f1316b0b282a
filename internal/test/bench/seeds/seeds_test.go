package seeds_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/bench/seeds"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// clock is set by the test.
type clock struct{ time.Time }

func (c *clock) Now() time.Time { return c.Time }

// start is when each test starts.
var start = time.UnixMilli(1_700_000_000_000)

// limiter returns one of 100 a minute on a new table, its clock at start.
func limiter(t *testing.T, lost seeds.Lost) (*seeds.Limiter, *memdynamo.Engine, *clock) {
	t.Helper()
	engine := memdynamo.New()
	client := engine.Client()
	if _, err := operator.CreateTable(t.Context(), client, "bench"); err != nil {
		t.Fatal(err)
	}
	now := &clock{start}
	limits := []seeds.Limit{{Name: "rpm", Burst: 100_000, Refill: 100_000, Period: 60_000}}
	return seeds.New(client, "bench", "api", limits, lost, now.Now), engine, now
}

// TestSequential: one caller gets the burst and then the refill, and no more.
func TestSequential(t *testing.T) {
	for name, lost := range map[string]seeds.Lost{"take stored": seeds.TakeStored,
		"read again": seeds.ReadAgain} {
		t.Run(name, func(t *testing.T) { sequential(t, lost) })
	}
}

func sequential(t *testing.T, lost seeds.Lost) {
	t.Helper()
	l, engine, now := limiter(t, lost)
	take := func(tokens int64, want error) {
		t.Helper()
		if err := l.Acquire(t.Context(), "user-1", []int64{tokens * 1000}); !errors.Is(err, want) {
			t.Errorf("%d tokens: %v, want %v", tokens, err, want)
		}
	}
	take(101, seeds.ErrDenied) // with no bucket there
	take(60, nil)
	take(40, nil)
	take(1, seeds.ErrDenied)
	now.Time = start.Add(3 * time.Second) // 5 tokens
	take(6, seeds.ErrDenied)
	take(5, nil)
	take(1, seeds.ErrDenied)
	now.Time = start.Add(time.Hour)
	take(101, seeds.ErrDenied)
	engine.ResetConsumed()
	take(100, nil)
	take(1, seeds.ErrDenied)
	if used := engine.Consumed().Table("bench"); used.Total().Read != 2 || used.Applied.Write != 1 ||
		used.Refused.Write != 0 {
		t.Errorf("an acquire and a denial consumed %+v, want a read each and a write", used)
	}
}

// TestLostRace is the trace of the protocol's authors: of two writers that read the same, the second finds
// the refill claimed.
func TestLostRace(t *testing.T) {
	for _, test := range []struct {
		name          string
		lost          seeds.Lost
		reads, writes float64
	}{
		{"take stored", seeds.TakeStored, 2, 2},
		{"read again", seeds.ReadAgain, 3, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, engine, now := limiter(t, test.lost)
			acquire(t, l, 10_000)
			now.Time = start.Add(time.Second)
			overtake(t, engine, l, 3_000)
			engine.ResetConsumed()
			acquire(t, l, 7_000)
			used := engine.Consumed().Table("bench")
			if used.Total().Read != test.reads || used.Applied.Write != test.writes || used.Refused.Write != 1 {
				t.Errorf("consumed %+v, want %v reads, %v writes and a refused one", used, test.reads, test.writes)
			}
			if got := stored(t, engine, "b_rpm_tk"); got != "81666" {
				t.Errorf("%s millitokens are left, want 81666", got)
			}
			if got := stored(t, engine, "b_rpm_tc"); got != "20000" {
				t.Errorf("%s millitokens were consumed, want 20000", got)
			}
		})
	}
}

// TestLastTokens: of two who read the same last tokens the second is refused.
func TestLastTokens(t *testing.T) {
	for name, lost := range map[string]seeds.Lost{"take stored": seeds.TakeStored,
		"read again": seeds.ReadAgain} {
		t.Run(name, func(t *testing.T) {
			l, engine, now := limiter(t, lost)
			acquire(t, l, 90_000)
			now.Time = start.Add(time.Second)
			overtake(t, engine, l, 6_000)
			if err := l.Acquire(t.Context(), "user-1", []int64{6_000}); !errors.Is(err, seeds.ErrDenied) {
				t.Errorf("%v, want %v", err, seeds.ErrDenied)
			}
		})
	}
}

func acquire(t *testing.T, l *seeds.Limiter, cost int64) {
	t.Helper()
	if err := l.Acquire(t.Context(), "user-1", []int64{cost}); err != nil {
		t.Fatal(err)
	}
}

// overtake has somebody else take cost just before the next update arrives.
func overtake(t *testing.T, engine *memdynamo.Engine, l *seeds.Limiter, cost int64) {
	t.Helper()
	overtaken := false
	engine.Faults().Script(func(r memdynamo.Request) memdynamo.Fault {
		if r.Operation == "UpdateItem" && !overtaken {
			overtaken = true
			acquire(t, l, cost)
		}
		return memdynamo.None
	})
}

// stored returns an attribute of user-1's bucket, a number.
func stored(t *testing.T, engine *memdynamo.Engine, attr string) string {
	t.Helper()
	out, err := engine.Client().GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("bench"),
		Key: map[string]types.AttributeValue{
			"PK": &types.AttributeValueMemberS{Value: "ENTITY#user-1"},
			"SK": &types.AttributeValueMemberS{Value: "#BUCKET#api"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	n, ok := out.Item[attr].(*types.AttributeValueMemberN)
	if !ok {
		t.Fatalf("%s is %v, want a number", attr, out.Item[attr])
	}
	return n.Value
}
