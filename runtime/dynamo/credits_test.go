package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/conformance/ondynamo"
	"github.com/sluice-go/sluice/internal/test/conformance/prepaid"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

// lossy is a client of which some replies to transactions are lost, after or before they were applied.
type lossy struct {
	*dynamodb.Client

	mu      sync.Mutex
	random  *rand.Rand
	between func(context.Context)                      // called where a reply is lost
	change  func(in *dynamodb.TransactWriteItemsInput) // nil, or what a broken store sends
}

// draw returns a number below n.
func (l *lossy) draw(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.random.IntN(n)
}

// TransactWriteItems loses a third of the requests, and a third of the replies.
func (l *lossy) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	if l.change != nil {
		l.change(in)
	}
	if l.draw(3) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	out, err := l.Client.TransactWriteItems(ctx, in, opts...)
	if l.draw(2) == 0 {
		l.between(ctx)
		return nil, io.ErrUnexpectedEOF
	}
	return out, err
}

// ledger is a table with credits, and two processes that use it.
type ledger struct {
	*testing.T

	table   *ondynamo.Table
	by      []*prepaid.Limiter
	advance func(time.Duration)
}

// newLedger returns a ledger whose processes have lossy clients.
func newLedger(t *testing.T, change func(*dynamodb.TransactWriteItemsInput)) *ledger {
	t.Helper()
	l := &ledger{T: t, table: ondynamo.New(t)}
	for i := range 2 {
		client := &lossy{Client: l.table.Client, random: rand.New(rand.NewPCG(5, uint64(i))), change: change}
		store := l.table.Store(t, dynamo.New(client, l.table.Name))
		l.advance = store.Advance
		by, err := prepaid.New(store, runtime.WithClock(l.table))
		if err != nil {
			t.Fatal(err)
		}
		client.between = func(ctx context.Context) { // then no op of the bucket tells of the grant
			_, _ = by.GPT4.Acquire(ctx, payer, prepaid.GPT4Cost{RPM: 1})
		}
		l.by = append(l.by, by)
	}
	return l
}

// payer has the credits.
var payer = prepaid.Org{ID: "7"}

// play makes random calls, of several goroutines at once, and returns the ids whose grant has succeeded.
func (l *ledger) play(seed uint64, calls int) map[string]bool {
	l.Helper()
	granted, mu := map[string]bool{}, sync.Mutex{}
	var running sync.WaitGroup
	for g := range 4 {
		running.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(g)))
			for range calls {
				by := l.by[random.IntN(len(l.by))]
				switch random.IntN(5) {
				case 0, 1:
					id := random.IntN(6)
					more := prepaid.GPT4Cost{Credits: int64(100 + id), Day: int64(id)}
					err := by.Config.GPT4.Grant(l.Context(), payer, more, strconv.Itoa(id))
					_, contended := errors.AsType[*prepaid.ContendedError](err)
					_, unavailable := errors.AsType[*prepaid.UnavailableError](err) // each of ten replies was lost
					if err != nil && !contended && !unavailable {
						l.Errorf("grant %d: %v", id, err)
					}
					mu.Lock()
					granted[strconv.Itoa(id)] = granted[strconv.Itoa(id)] || err == nil
					mu.Unlock()
				case 2:
					l.advance(time.Duration(random.IntN(20)) * time.Hour) // the window of the day ends
				default:
					cost := prepaid.GPT4Cost{Credits: random.Int64N(60), RPM: 1, Day: random.Int64N(3)}
					lease, err := by.GPT4.Acquire(l.Context(), payer, cost, runtime.Budget(time.Minute))
					if err == nil && random.IntN(2) == 0 {
						_ = lease.Settle(l.Context(), prepaid.GPT4Cost{Credits: random.Int64N(90), RPM: 1})
					}
				}
			}
		})
	}
	running.Wait()
	return granted
}

// wrong returns what is wrong with the table: credits obey tk = bx + granted - used, by the items of the
// grants, and those that succeeded have one. It is "" if nothing is.
func (l *ledger) wrong(granted map[string]bool) string {
	l.Helper()
	out, err := l.table.Client.Query(l.Context(), &dynamodb.QueryInput{
		TableName: &l.table.Name, KeyConditionExpression: aws.String("PK = :pk"), ConsistentRead: aws.Bool(true),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":pk": &types.AttributeValueMemberS{Value: "ENTITY#org-7"},
		},
	})
	if err != nil {
		l.Fatal(err)
	}
	var sum, left, used int64
	for _, item := range out.Items {
		number := func(name string) (n int64) {
			if stored, ok := item[name].(*types.AttributeValueMemberN); ok {
				n, _ = strconv.ParseInt(stored.Value, 10, 64)
			}
			return n
		}
		sk := item["SK"].(*types.AttributeValueMemberS).Value
		if id, ok := strings.CutPrefix(sk, "#GRANT#gpt-4#"); ok {
			sum += number("g_credits")
			delete(granted, id)
		}
		if sk == "#BUCKET#gpt-4" {
			left, used = number("b_credits_tk")-number("b_credits_bx"), number("b_credits_tc")
			if ends := number("b_credits_we"); ends != 253_402_300_799_000 || number("ttl") != ends/1000 {
				return fmt.Sprintf("the window of credits ends at %d, and the item at %d", ends, number("ttl"))
			}
		}
	}
	for id, done := range granted {
		if done {
			return "grant " + id + " has succeeded, and no item has it"
		}
	}
	if left != sum-used {
		return fmt.Sprintf("%d more than at first are left of %d granted and %d used", left, sum, used)
	}
	return ""
}

// TestGrantsLedger: with lost requests and replies, other writes between, callers at once and days that end,
// each id counts once.
func TestGrantsLedger(t *testing.T) {
	for seed := range uint64(longform.Count(t, "ledgers", 40, 4)) {
		l := newLedger(t, nil)
		if wrong := l.wrong(l.play(seed, 25)); wrong != "" {
			t.Fatalf("seed %d: %s", seed, wrong)
		}
	}
}

// TestGrantsLedgerCatches is the control: a grant whose item is put whether or not it is there counts again
// after a lost reply.
func TestGrantsLedgerCatches(t *testing.T) {
	l := newLedger(t, func(in *dynamodb.TransactWriteItemsInput) {
		for _, write := range in.TransactItems {
			if write.Put != nil && write.Put.Item["granted_at"] != nil {
				write.Put.ConditionExpression = nil
			}
		}
	})
	for seed := range uint64(10) {
		if l.wrong(l.play(seed, 25)) != "" {
			return
		}
	}
	t.Error("a grant that counts twice is not found")
}
