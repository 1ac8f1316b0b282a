package poll_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/runtime/usage"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// TestDrain: what is acquired through the front door is in the windows, and the second time there is nothing
// to do.
func TestDrain(t *testing.T) {
	w := sharedWorld(t)
	lim, err := limits.New(dynamo.New(w.client, w.table))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := lim.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	user := limits.User{ID: "1", Project: limits.Project{ID: "7"}}
	const calls = 12
	for i := range calls {
		lease, err := lim.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{TPM: 100})
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Settle(t.Context(), limits.GPT4Cost{TPM: int64(90 + i)}); err != nil {
			t.Fatal(err)
		}
	}
	p := w.tap()
	w.drain(p)
	var tpm, rpm int64
	for window, err := range usage.Read(t.Context(), w.client, w.table,
		usage.Question{Entity: "user-1", Resource: "gpt-4", Span: usage.Day}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range window.Limits {
			switch l.Limit {
			case "rpm":
				rpm += l.Millitokens
			case "tpm":
				tpm += l.Millitokens
			}
		}
	}
	if want := int64(calls*90+calls*(calls-1)/2) * 1000; rpm != calls*1000 || tpm != want {
		t.Errorf("%d of rpm and %d of tpm, want %d and %d", rpm, tpm, calls*1000, want)
	}
	w.exact()
	got := w.progress()
	if got.Streams != 1 || got.Counted < 2*calls || got.Records <= got.Counted || got.Checkpoints == 0 ||
		got.Lost != 0 || got.Behind != 0 || got.Reading != 0 {
		t.Errorf("got %+v", got)
	}
	before := p.writes()
	w.drain(p)
	if got := w.progress(); p.writes() != before || got.Counted != 0 {
		t.Errorf("%d writes, %d records counted again", p.writes()-before, got.Counted)
	}
}

// TestRests: an idle table is left alone, though its stream tells of the windows and checkpoints too; a day
// costs each shard some 24 checkpoints.
func TestRests(t *testing.T) {
	longform.NoRace(t, "TestKilled runs the same goroutines")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.split()
		w.idle = time.Minute
		p := w.tap()
		stop := w.run(p)
		for n := range 20 {
			w.consume(n%5, 1000)
			later(time.Second)
		}
		later(3 * time.Minute)
		w.exact()
		writes, polls := p.writes(), p.count("GetRecords")
		later(45 * time.Minute)
		if p.writes() != writes || p.count("GetRecords") < polls+83 {
			t.Errorf("%d writes in %d polls of an idle table", p.writes()-writes, p.count("GetRecords")-polls)
		}
		later(24 * time.Hour)
		if n := p.writes() - writes; n < 2*20 || n > 2*26 {
			t.Errorf("%d writes in a day, want one an hour for each of 2 shards", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := w.progress(); got.Lost != 0 || got.Counted != 20 {
			t.Errorf("got %+v", got)
		}
	})
}

// TestRestsControl: who writes a checkpoint for each batch has the stream feed itself.
func TestRestsControl(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.tap()
		p.after = w.eager(p, anyBatch)
		stop := w.run(p)
		w.consume(1, 1000)
		later(time.Minute)
		writes := p.writes()
		later(10 * time.Minute)
		if n := p.writes() - writes; n < 100 {
			t.Errorf("%d writes in ten minutes: the test would not see a stream that feeds itself", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestThrottled: a table that takes no windows for a while delays them, and no more; nor does a stream that
// does not answer.
func TestThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for n := range 40 {
			w.consume(n%8, 100+n)
		}
		p := w.tap()
		var mu sync.Mutex
		dice := rand.New(rand.NewPCG(1, 3))
		p.before = func(_ context.Context, c call) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case c.operation == "UpdateItem" && dice.IntN(2) > 0:
				return refused("DynamoDB", "UpdateItem", "ProvisionedThroughputExceededException")
			case c.operation == "GetRecords" && c.number%2 > 0:
				return refused("DynamoDB Streams", "GetRecords", "LimitExceededException")
			case c.number < 3:
				return refused("DynamoDB", c.operation, "InternalServerError")
			}
			return nil
		}
		began := time.Now()
		w.drain(p)
		w.exact()
		if got := w.progress(); got.Waits < 5 || got.Counted != 40 {
			t.Errorf("got %+v", got)
		}
		if log := w.logged(); !strings.Contains(log, "could not count records of the shard shardId-") ||
			!strings.Contains(log, "ThroughputExceeded") {
			t.Errorf("logged: %s", log)
		}
		if took := time.Since(began); took < 100*time.Millisecond {
			t.Errorf("it waited %v for all of it", took)
		}
	})
}

// TestDrainAfterWrongClock: a checkpoint of a host whose clock was ahead does not end a Drain before it has
// read what there is.
func TestDrainAfterWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.consume(1, 1)
		w.drain(w.tap())
		for shard, item := range w.checkpoints() {
			item["at"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(),
				10)}
			if _, err := w.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &w.table,
				Item: item}); err != nil {
				t.Fatal(shard, err)
			}
		}
		for n := range 30 {
			w.consume(n, 10)
		}
		p := w.tap()
		p.before = func(_ context.Context, c call) error {
			small(c)
			return nil
		}
		w.drain(p)
		w.exact()
	})
}

// TestBehind: records that are read but cannot be counted are what it is behind with.
func TestBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.consume(1, 1)
		later(time.Hour)
		p := w.tap()
		var throttled atomic.Bool
		throttled.Store(true)
		p.before = func(_ context.Context, c call) error {
			if c.operation == "UpdateItem" && throttled.Load() {
				return refused("DynamoDB", "UpdateItem", "ThrottlingException")
			}
			return nil
		}
		stop := w.run(p)
		later(10 * time.Minute)
		synctest.Wait()
		if got := w.progress(); got.Behind < time.Hour || got.Counted != 0 || got.Waits == 0 {
			t.Errorf("while it is throttled: %+v", got)
		}
		throttled.Store(false)
		later(time.Minute)
		synctest.Wait()
		if got := w.progress(); got.Behind != 0 || got.Counted != 1 {
			t.Errorf("later: %+v", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestPoisoned: what cannot be read is put aside, and while it cannot be put aside either, it is tried again
// and nothing else is lost.
func TestPoisoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.consume(1, 1000)
		if _, err := w.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &w.table,
			Item: map[string]types.AttributeValue{
				"PK":        &types.AttributeValueMemberS{Value: "ENTITY#user-9"},
				"SK":        &types.AttributeValueMemberS{Value: "#BUCKET#gpt-4"},
				"entity_id": &types.AttributeValueMemberS{Value: "user-9"},
				"b_rpm_tc":  &types.AttributeValueMemberS{Value: "many"},
			}}); err != nil {
			t.Fatal(err)
		}
		w.consume(1, 500)
		failures := 0
		w.sink = func() error {
			if failures++; failures < 12 {
				return refused("DynamoDB", "PutItem", "AccessDeniedException") // somebody else's table
			}
			return nil
		}
		w.drain(w.tap())
		if failures != 12 || len(w.poison) != 1 {
			t.Errorf("%d failures, put aside: %q", failures, w.poison)
		}
		if _, err := w.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &w.table,
			Key: map[string]types.AttributeValue{
				"PK": &types.AttributeValueMemberS{Value: "ENTITY#user-9"},
				"SK": &types.AttributeValueMemberS{Value: "#BUCKET#gpt-4"},
			}}); err != nil {
			t.Fatal(err)
		}
		w.exact()
	})
}

// TestPoisonedOnce: a record that was put aside is not put aside again after a restart, be it alone.
func TestPoisonedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.consume(1, 1000)
		w.drain(w.tap()) // a first checkpoint comes in any case
		if _, err := w.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &w.table,
			Item: map[string]types.AttributeValue{
				"PK":       &types.AttributeValueMemberS{Value: "ENTITY#user-9"},
				"SK":       &types.AttributeValueMemberS{Value: "#BUCKET#gpt-4"},
				"b_rpm_tc": &types.AttributeValueMemberN{Value: "1"}, // nobody's
			}}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			w.drain(w.tap())
		}
		if len(w.poison) != 1 {
			t.Errorf("put aside: %q", w.poison)
		}
	})
}

// TestExpired: an iterator that expired is replaced, from where the shard is.
func TestExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for n := range 30 {
			w.consume(n%3, 10)
		}
		p := w.tap()
		asked := 0
		p.before = func(_ context.Context, c call) error {
			if c.operation == "GetRecords" {
				if asked++; asked%3 == 1 {
					later(16 * time.Minute)
				}
				small(c)
			}
			return nil
		}
		w.drain(p)
		w.exact()
		if got := w.progress(); got.Counted != 30 || got.Lost != 0 || got.Waits != 0 ||
			p.count("GetShardIterator") < 3 {
			t.Errorf("got %+v and %d iterators", got, p.count("GetShardIterator"))
		}
	})
}

// TestVanished: a shard that is said to be gone is read on where it was if it is still listed.
func TestVanished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for n := range 30 {
			w.consume(n%3, 10)
		}
		p := w.tap()
		asked := 0
		p.before = func(_ context.Context, c call) error {
			small(c)
			if c.operation == "GetRecords" {
				if asked++; asked == 3 {
					return &streamtypes.ResourceNotFoundException{}
				}
			}
			return nil
		}
		w.drain(p)
		w.exact()
		// at first, when it is gone, and in the end
		if got := w.progress(); got.Counted != 30 || got.Lost != 0 || p.count("ListStreams") != 3 {
			t.Errorf("got %+v, and streams were listed %d times", got, p.count("ListStreams"))
		}
	})
}

// TestReenabled: a stream that was switched off is read to its end, beside the one that is on since.
func TestReenabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.tap()
		w.consume(1, 1)
		w.stream(false, "")
		w.stream(true, types.StreamViewTypeNewAndOldImages)
		w.consume(1, 10)
		w.drain(p)
		w.exact()
		if got := w.progress(); got.Streams != 2 || got.Done != 1 {
			t.Errorf("got %+v", got)
		}
		stop := w.run(p)
		later(10 * time.Second)
		w.consume(2, 100)
		w.stream(false, "")
		later(30 * time.Second) // off for a moment
		w.stream(true, types.StreamViewTypeNewAndOldImages)
		w.consume(1, 1000)
		later(2 * time.Minute)
		w.exact()
		w.stream(false, "")
		later(4 * time.Minute)
		want := fmt.Sprintf("setup: table %s has no stream that is on | run `sluice table check --table %[1]s`, "+
			"which says how to fix it: usage is counted from the stream", w.table)
		if err := stop(); errtext.Of(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if err := w.poller(p).Drain(t.Context()); errtext.Of(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

// TestSetupError: an error that a person has to fix ends the Poller, and says what to do.
func TestSetupError(t *testing.T) {
	const check = " | run `sluice table check --table TABLE`, which says how to fix it: usage is counted " +
		"from the stream"
	for name, test := range map[string]struct {
		breaks func(*world, *tap)
		want   string
	}{
		"no table": {
			func(w *world, _ *tap) { w.table = "nowhere" },
			"setup: table TABLE does not exist | operation error DynamoDB: Query, https response error StatusCode: " +
				"400, RequestID: ID, " +
				"ResourceNotFoundException: Requested resource not found | run `sluice table create --table TABLE`, " +
				"or check region and endpoint",
		},
		"table gone": {
			func(_ *world, p *tap) {
				p.before = func(_ context.Context, c call) error {
					if c.operation == "ListStreams" {
						return &streamtypes.ResourceNotFoundException{Message: aws.String("not found")}
					}
					return nil
				}
			},
			"setup: table TABLE does not exist | ResourceNotFoundException: not found | run `sluice table create " +
				"--table TABLE`, or check region and endpoint",
		},
		"no stream": {
			func(_ *world, p *tap) {
				p.after = func(_ context.Context, c call) error {
					if out, ok := c.out.(*dynamodbstreams.ListStreamsOutput); ok {
						out.Streams = nil
					}
					return nil
				}
			},
			"setup: table TABLE has no stream that is on" + check,
		},
		"one image": {
			func(w *world, _ *tap) {
				w.stream(false, "")
				w.stream(true, types.StreamViewTypeNewImage)
			},
			"setup: the stream of table TABLE has NEW_IMAGE, not NEW_AND_OLD_IMAGES" + check,
		},
		"no right to read": {
			func(_ *world, p *tap) {
				p.before = func(_ context.Context, c call) error {
					if c.operation == "GetRecords" {
						return refused("DynamoDB Streams", "GetRecords", "AccessDeniedException")
					}
					return nil
				}
			},
			"setup: DynamoDB denies access to table TABLE or its stream | operation error DynamoDB Streams: " +
				"GetRecords, " +
				"http response error StatusCode: 400, api error AccessDeniedException: not now | " +
				"attach the policy that `sluice infra iam --role aggregator --table TABLE` prints",
		},
		"no right to write": {
			func(_ *world, p *tap) {
				p.before = func(_ context.Context, c call) error {
					if c.operation == "UpdateItem" {
						return refused("DynamoDB", "UpdateItem", "AccessDeniedException")
					}
					return nil
				}
			},
			"setup: DynamoDB denies access to table TABLE or its stream | sluice: stream record SEQUENCE is not " +
				"counted yet: " +
				"write the window of user-1 on gpt-4, hour of HOUR: operation error DynamoDB: UpdateItem, " +
				"http response error StatusCode: 400, api error AccessDeniedException: not now | " +
				"attach the policy that `sluice infra iam --role aggregator --table TABLE` prints",
		},
		"malformed": {
			func(w *world, _ *tap) {
				if _, err := w.client.PutItem(w.Context(), &dynamodb.PutItemInput{TableName: &w.table,
					Item: map[string]types.AttributeValue{
						"PK":       &types.AttributeValueMemberS{Value: "SYSTEM#"},
						"SK":       &types.AttributeValueMemberS{Value: "#CHECKPOINT#shardId-1"},
						"sequence": &types.AttributeValueMemberS{Value: "12"},
						"after":    &types.AttributeValueMemberS{Value: "12"},
					}}); err != nil {
					w.Fatal(err)
				}
			},
			"setup: the checkpoint SYSTEM# / #CHECKPOINT#shardId-1 of table TABLE is malformed | " +
				`attribute sequence "12" | ` +
				"delete it: the shard is read again as far as it goes back, and nothing is counted twice",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.consume(1, 1)
				p := w.tap()
				test.breaks(w, p)
				for how, run := range map[string]func(*poll.Poller, context.Context) error{"Run": (*poll.Poller).Run,
					"Drain": (*poll.Poller).Drain} {
					err := run(w.poller(p), t.Context())
					if _, setup := errors.AsType[*store.SetupError](err); !setup {
						t.Fatalf("%s: got %v", how, err)
					}
					if mistake, ok := errors.AsType[*codec.AttributeError](err); ok &&
						mistake.Want != "after, in 40 digits" {
						t.Errorf("%s: want %s", how, mistake.Want)
					}
					got := strings.ReplaceAll(errtext.Of(err), w.table, "TABLE")
					got = regexp.MustCompile(`RequestID: [A-Z0-9]+`).ReplaceAllString(got, "RequestID: ID")
					got = regexp.MustCompile(`record \d+ is`).ReplaceAllString(got, "record SEQUENCE is")
					got = regexp.MustCompile(`(hour|day) of [-0-9T]+`).ReplaceAllString(got, "hour of HOUR")
					if got != test.want {
						t.Errorf("%s: got  %s\nwant %s", how, got, test.want)
					}
				}
			})
		})
	}
}

// TestNew: what is missing is named.
func TestNew(t *testing.T) {
	w := sharedWorld(t)
	whole := w.poller(w.tap()).Config
	teamA, err := operator.InNamespace(w.client, "team-a")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*poll.Config)
		want   string
	}{
		"client": {func(c *poll.Config) { c.Client = nil }, "poll.New: the client is nil"},
		"client of a namespace": {func(c *poll.Config) { c.Client = teamA },
			"poll.New: the client is one of operator.InNamespace: pass the client that it was made from"},
		"streams": {func(c *poll.Config) { c.Streams = nil },
			"poll.New: the streams' client is nil: pass dynamodbstreams.NewFromConfig(cfg)"},
		"table": {func(c *poll.Config) { c.Table = "" },
			`poll.New: table "" is not a table's name: pass 3 to 255 letters, digits, '_', '.' and '-', or an ARN`},
		"aggregator": {func(c *poll.Config) { c.Aggregator = nil },
			"poll.New: the aggregator is nil: pass one of usage.New, or a consumer"},
		"idle": {func(c *poll.Config) { c.Idle = -1 },
			"poll.New: idle for -1ns, want a duration above 0, or 0 for the default"},
	} {
		c := whole
		test.change(&c)
		if _, err := poll.New(c); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}
