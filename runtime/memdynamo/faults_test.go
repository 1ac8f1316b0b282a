package memdynamo_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// the returns a script that has f befall the nth request of an operation.
func the(nth int, operation string, f memdynamo.Fault) func(memdynamo.Request) memdynamo.Fault {
	return func(r memdynamo.Request) memdynamo.Fault {
		if r.Operation == operation && r.Number == nth {
			return f
		}
		return memdynamo.None
	}
}

func TestDown(t *testing.T) {
	engine, client := setUp(t)
	engine.Faults().Down(true)
	_, err := client.PutItem(t.Context(), put("a"))
	if op := as[*net.OpError](t, err); op.Op != "dial" || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("down: %v, want a refused dial", err)
	}
	equal(t, "the client's operation", as[*url.Error](t, err).Op, "Post") // as of an *http.Client
	engine.Faults().Down(false)
	if get(t, engine, "a") != nil {
		t.Error("an engine that was down has written")
	}
	_, err = client.PutItem(t.Context(), put("a"))
	must(t, err)
}

// TestDownBreaksWhatIsUnderWay: the request that arrives too late is not applied, the one whose reply is
// under way is.
func TestDownBreaksWhatIsUnderWay(t *testing.T) {
	for name, test := range map[string]struct {
		down    time.Duration
		applied string
	}{"before it arrives": {time.Second, "0"}, "before the reply arrives": {3 * time.Second, "1"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine, client := setUp(t)
				engine.Faults().Latency(memdynamo.Constant(2 * time.Second))
				time.AfterFunc(test.down, func() { engine.Faults().Down(true) })
				_, err := client.UpdateItem(t.Context(), add("a"))
				if !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("the error is %v, want a reset connection", err)
				}
				engine.Faults().Clear()
				equal(t, "applied", count(t, engine, "a"), test.applied)
			})
		})
	}
}

// TestSingleFaults has each fault befall one request, by certainty and by script.
func TestSingleFaults(t *testing.T) {
	good := func(t *testing.T, err error) {
		t.Helper()
		must(t, err)
	}
	reset := func(t *testing.T, err error) {
		t.Helper()
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the error is %v, want a reset connection", err)
		}
	}
	internal := func(t *testing.T, err error) {
		t.Helper()
		fails[*types.InternalServerError](t, err)
	}
	throttled := func(t *testing.T, err error) {
		t.Helper()
		fails[*types.ProvisionedThroughputExceededException](t, err)
	}
	for name, test := range map[string]struct {
		certain  func(f *memdynamo.Faults, p float64)
		scripted memdynamo.Fault
		applied  string
		check    func(*testing.T, error)
	}{
		"lost request":        {(*memdynamo.Faults).LoseRequests, memdynamo.LoseRequest, "0", reset},
		"lost reply":          {(*memdynamo.Faults).LoseReplies, memdynamo.LoseReply, "1", reset},
		"internal error":      {(*memdynamo.Faults).InternalErrors, memdynamo.InternalError, "0", internal},
		"late internal error": {(*memdynamo.Faults).LateInternalErrors, memdynamo.LateInternalError, "1", internal},
		"throttle":            {(*memdynamo.Faults).Throttle, memdynamo.Throttle, "0", throttled},
		"duplicate":           {(*memdynamo.Faults).Duplicate, memdynamo.Duplicate, "2", good},
		"none":                {func(*memdynamo.Faults, float64) {}, memdynamo.None, "1", good},
	} {
		for how, set := range map[string]func(*memdynamo.Faults){
			"certain":  func(f *memdynamo.Faults) { test.certain(f, 1) },
			"scripted": func(f *memdynamo.Faults) { f.Script(the(1, "UpdateItem", test.scripted)) },
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				engine, client := setUp(t)
				set(engine.Faults())
				_, err := client.UpdateItem(t.Context(), add("a"))
				test.check(t, err)
				engine.Faults().Clear()
				equal(t, "applied", count(t, engine, "a"), test.applied)
				_, err = client.UpdateItem(t.Context(), add("b"))
				must(t, err)
				equal(t, "applied after Clear", count(t, engine, "b"), "1")
			})
		}
	}
}

// TestLostReplyAndRetry is what production does to who writes on a condition: the SDK repeats what was
// applied, and the condition fails on the caller's own item.
func TestLostReplyAndRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, _ := setUp(t)
		engine.Faults().Script(the(1, "PutItem", memdynamo.LoseReply))
		_, err := engine.Client().PutItem(t.Context(), put("a"))
		fails[*types.ConditionalCheckFailedException](t, err)
		equal(t, "requests", engine.Consumed().Requests["PutItem"], 2)

		// A lost request, which looks the same, is repeated to a good end.
		engine.Faults().Script(the(3, "PutItem", memdynamo.LoseRequest))
		_, err = engine.Client().PutItem(t.Context(), put("b"))
		must(t, err)
		equal(t, "requests", engine.Consumed().Requests["PutItem"], 3) // the lost one never arrived
	})
}

func TestDuplicateAnswersWithTheFirst(t *testing.T) {
	engine, client := setUp(t)
	engine.Faults().Duplicate(1)
	out, err := client.UpdateItem(t.Context(), add("a"))
	must(t, err)
	equal(t, "reply", out.Attributes["n"].(*types.AttributeValueMemberN).Value, "1")
	_, err = client.PutItem(t.Context(), put("b")) // the second of these is refused, which nobody hears of
	must(t, err)
}

func TestConflict(t *testing.T) {
	engine, client := setUp(t)
	engine.Faults().Conflict(1)
	_, err := client.UpdateItem(t.Context(), add("a"))
	fails[*types.TransactionConflictException](t, err)
	_, err = client.TransactWriteItems(t.Context(), transaction("a"))
	equal(t, "reason", aws.ToString(as[*types.TransactionCanceledException](t, err).CancellationReasons[0].Code),
		"TransactionConflict")
	engine.Faults().Conflict(0)
	equal(t, "applied", count(t, engine, "a"), "0")
}

// transaction counts on each of ids.
func transaction(ids ...string) *dynamodb.TransactWriteItemsInput {
	in := &dynamodb.TransactWriteItemsInput{}
	for _, id := range ids {
		u := add(id)
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Update: &types.Update{
			TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression,
			ExpressionAttributeValues: u.ExpressionAttributeValues,
		}})
	}
	return in
}

func TestHoldTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, client := setUp(t)
		engine.Faults().HoldTransactions(time.Second)
		began := time.Now()
		var held sync.WaitGroup
		held.Go(func() {
			if _, err := client.TransactWriteItems(t.Context(), transaction("a", "b")); err != nil {
				t.Error(err)
			}
			equal(t, "the transaction took", time.Since(began), time.Second)
		})
		synctest.Wait()
		_, err := client.UpdateItem(t.Context(), add("b"))
		fails[*types.TransactionConflictException](t, err)
		_, err = client.UpdateItem(t.Context(), add("c"))
		must(t, err)
		held.Wait()
		_, err = client.UpdateItem(t.Context(), add("b"))
		must(t, err)
		equal(t, "applied", count(t, engine, "b"), "2")
	})
}

// TestRequestsPerSecond has three requests come at once. The second's client gives up, but the request keeps
// its place.
func TestRequestsPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, client := setUp(t)
		engine.Faults().RequestsPerSecond(10)
		engine.Faults().Latency(memdynamo.Constant(10 * time.Millisecond))
		var calls sync.WaitGroup
		call := func(ctx context.Context, id string, gaveUp bool, took time.Duration) {
			began := time.Now()
			calls.Go(func() {
				_, err := client.UpdateItem(ctx, add(id))
				equal(t, id+" gave up", errors.Is(err, context.DeadlineExceeded), gaveUp)
				equal(t, id+" took", time.Since(began), took)
			})
			synctest.Wait()
		}
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		call(t.Context(), "a", false, 120*time.Millisecond)
		call(short, "b", true, 50*time.Millisecond)
		call(t.Context(), "c", false, 320*time.Millisecond)
		calls.Wait()
		equal(t, "applied", count(t, engine, "b"), "1")

		call(t.Context(), "d", false, 120*time.Millisecond)
		engine.Faults().RequestsPerSecond(0)
		call(t.Context(), "e", false, 20*time.Millisecond)
		calls.Wait()
	})
}

func TestUnprocessed(t *testing.T) {
	engine, client := setUp(t)
	write := types.WriteRequest{PutRequest: &types.PutRequest{Item: item{"id": s("a")}}}
	batch := &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{things: {write}}}
	engine.Faults().Unprocessed(1)
	out, err := client.BatchWriteItem(t.Context(), batch)
	must(t, err)
	equal(t, "unprocessed", len(out.UnprocessedItems[things]), 1)
	engine.Faults().Unprocessed(0)
	out, err = client.BatchWriteItem(t.Context(),
		&dynamodb.BatchWriteItemInput{RequestItems: out.UnprocessedItems})
	must(t, err)
	equal(t, "unprocessed", len(out.UnprocessedItems), 0)
	if get(t, engine, "a") == nil {
		t.Error("what was processed is not there")
	}
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, client := setUp(t)
		engine.Faults().Latency(memdynamo.Constant(10 * time.Millisecond))
		began := time.Now()
		_, err := client.UpdateItem(t.Context(), add("a"))
		must(t, err)
		equal(t, "the round trip took", time.Since(began), 20*time.Millisecond)

		engine.Faults().Latency(memdynamo.Uniform(time.Millisecond, 3*time.Millisecond))
		seen := map[time.Duration]bool{}
		for range 100 {
			began = time.Now()
			_, err = client.UpdateItem(t.Context(), add("a"))
			must(t, err)
			took := time.Since(began)
			seen[took] = true
			if took < 2*time.Millisecond || took >= 6*time.Millisecond {
				t.Fatalf("the round trip took %v, want 2 ms to 6 ms", took)
			}
		}
		if len(seen) < 50 {
			t.Errorf("100 round trips took %d different times", len(seen))
		}
	})
}

// TestTimeOuts has clients time out before their request arrives and before its reply does. Both requests are
// applied: nothing takes back a request that was sent.
func TestTimeOuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, client := setUp(t)
		engine.Faults().Latency(memdynamo.Constant(time.Second))
		for id, timeout := range map[string]time.Duration{"gone before it arrived": time.Second / 2,
			"gone before the reply": 3 * time.Second / 2} {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			began := time.Now()
			_, err := client.UpdateItem(ctx, add(id))
			cancel()
			equal(t, "gave up after", time.Since(began), timeout)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want the deadline", id, err)
			}
			time.Sleep(2 * time.Second) //nolint:forbidigo // on the bubble's clock
			engine.Faults().Clear()
			equal(t, id, count(t, engine, id), "1")
			engine.Faults().Latency(memdynamo.Constant(time.Second))
		}

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := carry(engine, rawRequest(ctx, "UpdateItem", `{}`))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a context that is over: %v", err)
		}
		equal(t, "requests", engine.Consumed().Requests["UpdateItem"], 2)
	})
}

func TestLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, client := setUp(t)
		const lag = 5 * time.Second
		engine.Faults().StaleReads(lag)
		engine.Faults().IndexLag(2 * lag)
		must(t, ignore(client.PutItem(t.Context(), put("a"))))
		stale := func() bool {
			out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(things),
				Key: item{"id": s("a")}})
			must(t, err)
			return out.Item == nil
		}
		indexed := func() int32 {
			out, err := client.Query(t.Context(), &dynamodb.QueryInput{
				TableName: aws.String(things), IndexName: aws.String("kinds"),
				KeyConditionExpression: aws.String("kind = :k"), ExpressionAttributeValues: item{":k": s("k")},
			})
			must(t, err)
			return out.Count
		}
		equal(t, "stale at once", stale(), true)
		equal(t, "in the index at once", indexed(), 0)
		if get(t, engine, "a") == nil {
			t.Error("a consistent read does not see the item")
		}
		time.Sleep(lag) //nolint:forbidigo // on the bubble's clock
		equal(t, "stale after the lag", stale(), false)
		equal(t, "in the index before its lag", indexed(), 0)
		time.Sleep(lag) //nolint:forbidigo // on the bubble's clock
		equal(t, "in the index after its lag", indexed(), 1)
	})
}

func TestTTLLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, client := setUp(t)
		must(t, ignore(client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName: aws.String(things),
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"),
				Enabled: aws.Bool(true)},
		})))
		engine.Faults().TTLLag(time.Hour)
		expiring := put("a")
		expiring.Item["ttl"] = n(fmt.Sprint(time.Now().Add(time.Minute).Unix()))
		must(t, ignore(client.PutItem(t.Context(), expiring)))
		time.Sleep(time.Hour) //nolint:forbidigo // on the bubble's clock
		if get(t, engine, "a") == nil {
			t.Error("deleted before the lag is over")
		}
		time.Sleep(time.Minute + time.Second) //nolint:forbidigo // on the bubble's clock
		if get(t, engine, "a") != nil {
			t.Error("there after the lag")
		}
	})
}

// TestThroughput counts what gets through in two seconds, on virtual time: the rate, and what was saved up at
// first.
func TestThroughput(t *testing.T) {
	for name, test := range map[string]struct {
		set  func(*memdynamo.Faults)
		keys int
		want int
	}{
		"partition":      {func(f *memdynamo.Faults) { f.PartitionThroughput(50, 150) }, 1, 150},
		"two partitions": {func(f *memdynamo.Faults) { f.PartitionThroughput(50, 150) }, 2, 300},
		"table":          {func(f *memdynamo.Faults) { f.TableThroughput(50, 150) }, 2, 150},
		"neither":        {func(*memdynamo.Faults) {}, 2, 400},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine, client := setUp(t)
				test.set(engine.Faults())
				through := 0
				for i := range 400 {
					_, err := client.UpdateItem(t.Context(), add(fmt.Sprint(i%test.keys)))
					if err == nil {
						through++
					} else {
						fails[*types.ProvisionedThroughputExceededException](t, err)
					}
					time.Sleep(5 * time.Millisecond) //nolint:forbidigo // on the bubble's clock
				}
				if math.Abs(float64(through-test.want)) > 2 {
					t.Errorf("%d updates got through, want %d", through, test.want)
				}
			})
		})
	}
}

func TestScriptSeesRequests(t *testing.T) {
	engine, client := setUp(t)
	var seen []memdynamo.Request
	engine.Faults().Script(func(r memdynamo.Request) memdynamo.Fault {
		seen = append(seen, r)
		// A script may change the faults, which this request meets already.
		engine.Faults().Conflict(0)
		if r.Operation == "UpdateItem" && r.Number == 2 {
			engine.Faults().Conflict(1)
		}
		return memdynamo.None
	})
	must(t, ignore(client.UpdateItem(t.Context(), add("a"))))
	fails[*types.TransactionConflictException](t, ignore(client.UpdateItem(t.Context(), add("a"))))
	must(t, ignore(client.UpdateItem(t.Context(), add("a"))))
	must(t, ignore(client.TransactWriteItems(t.Context(), transaction("a"))))
	engine.Faults().Script(nil)
	must(t, ignore(client.UpdateItem(t.Context(), add("a"))))
	want := []memdynamo.Request{
		{"UpdateItem", things, 1}, {"UpdateItem", things, 2}, {"UpdateItem", things, 3},
		{"TransactWriteItems", "", 1},
	}
	if !slices.Equal(seen, want) {
		t.Errorf("seen %v, want %v", seen, want)
	}
}

// TestFaultsChangeUnderLoad is for the race detector.
func TestFaultsChangeUnderLoad(t *testing.T) {
	engine, client := setUp(t)
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for range 200 {
				_, _ = client.UpdateItem(t.Context(), add("a")) // whatever it meets
			}
		})
	}
	for i := range 200 {
		f := engine.Faults()
		f.LoseReplies(float64(i%2) / 2)
		f.Script(the(i, "UpdateItem", memdynamo.Throttle))
		f.Down(i%3 == 0)
		f.PartitionThroughput(float64(i), 0)
		if i%10 == 0 {
			f.Clear()
			engine.ResetConsumed()
		}
		_ = engine.Consumed().Total()
	}
	clients.Wait()
	engine.Faults().Clear()
	must(t, ignore(client.UpdateItem(t.Context(), add("b"))))
}

// ignore drops a reply.
func ignore[T any](_ T, err error) error { return err }

// TestBubbleEndsWithRequestsUnderWay has requests time out. They leave no goroutine behind, at which synctest
// would panic.
func TestBubbleEndsWithRequestsUnderWay(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second / 2, 3 * time.Second / 2} {
		synctest.Test(t, func(t *testing.T) {
			engine, client := setUp(t)
			engine.Faults().Latency(memdynamo.Constant(time.Second))
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			_, err := client.UpdateItem(ctx, add("a"))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error is %v, want the deadline", err)
			}
		})
	}
}

// TestHeldTransactionsSeeFaultsAsTheyAre sets a fault while a transaction is held. The transaction does not
// revert the fault when it applies.
func TestHeldTransactionsSeeFaultsAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, client := setUp(t)
		must(t, ignore(client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName: aws.String(things),
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"),
				Enabled: aws.Bool(true)},
		})))
		engine.Faults().HoldTransactions(10 * time.Second)
		var held sync.WaitGroup
		held.Go(func() {
			if _, err := client.TransactWriteItems(t.Context(), transaction("x")); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		engine.Faults().TTLLag(time.Hour)
		engine.Faults().StaleReads(time.Minute)
		expiring := put("a")
		expiring.Item["ttl"] = n(fmt.Sprint(time.Now().Add(time.Second).Unix()))
		must(t, ignore(client.PutItem(t.Context(), expiring)))
		held.Wait()
		if get(t, engine, "a") == nil {
			t.Error("deleted an hour before the lag is over")
		}
		out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(things),
			Key: item{"id": s("a")}})
		must(t, err)
		if out.Item != nil {
			t.Error("a read that is a minute late sees what was written ten seconds ago")
		}
	})
}
