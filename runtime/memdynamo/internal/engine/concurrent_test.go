package engine_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

const workers = 64

// together runs do in 64 goroutines at once.
func together(do func(worker int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for worker := range workers {
		all.Go(func() {
			<-start
			do(worker)
		})
	}
	close(start)
	all.Wait()
}

// counted returns n of an item of the table plain.
func (r *rig) counted(pk string) int {
	r.t.Helper()
	var n int
	output := r.do("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"`+pk+`"}},"ProjectionExpression":"n","ConsistentRead":true}`)
	if _, err := fmt.Sscanf(output, `{"Item":{"n":{"N":"%d"`, &n); err != nil {
		r.t.Fatalf("%s: %v", output, err)
	}
	return n
}

// incrementIf adds 1 to n if it is still what it was, and reports whether it was.
func (r *rig) incrementIf(was int, condition string) bool {
	_, err := r.Do(r.t.Context(), "UpdateItem", fmt.Appendf(nil, `{"TableName":"plain","Key":{"pk":{"S":"a"}},
		"UpdateExpression":"SET n = :is","ConditionExpression":"%s",
		"ExpressionAttributeValues":{":was":{"N":"%d"},":is":{"N":"%d"}}}`, condition, was, was+1))
	if err != nil && !exception.Is(err, exception.ConditionalCheckFailed) {
		r.t.Errorf("update: %v", err)
	}
	return err == nil
}

func TestManyOnOneItem(t *testing.T) {
	const times = 20
	t.Run("adding", func(t *testing.T) {
		r := newTables(t)
		together(func(int) {
			for range times {
				if _, err := r.Do(t.Context(), "TransactWriteItems", []byte(transaction(add("a"), add("b")))); err != nil {
					t.Errorf("transaction: %v", err)
				}
				if _, err := r.Do(t.Context(), "UpdateItem", []byte(add("a")[len(`{"Update":`):len(add("a"))-1])); err != nil {
					t.Errorf("update: %v", err)
				}
			}
		})
		if a, b := r.counted("a"), r.counted("b"); a != 2*workers*times || b != workers*times {
			t.Errorf("a is %d and b is %d, want %d and %d", a, b, 2*workers*times, workers*times)
		}
	})
	t.Run("comparing and setting", func(t *testing.T) {
		r := newTables(t)
		r.do("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"},"n":{"N":"0"}}}`)
		together(func(int) {
			for !r.incrementIf(r.counted("a"), "n = :was") {
			}
		})
		if n := r.counted("a"); n != workers {
			t.Errorf("n is %d, want %d", n, workers)
		}
	})
	t.Run("negative control", func(t *testing.T) { // setting without comparing loses all but one
		r := newTables(t)
		r.do("PutItem", `{"TableName":"plain","Item":{"pk":{"S":"a"},"n":{"N":"0"}}}`)
		var read sync.WaitGroup
		read.Add(workers)
		together(func(int) {
			n := r.counted("a")
			read.Done()
			read.Wait()
			r.incrementIf(n, "n = :was OR NOT n = :was")
		})
		if n := r.counted("a"); n != 1 {
			t.Errorf("n is %d, want 1: the test above sees nothing", n)
		}
	})
}

// move is a transaction that moves 1 from an item to another, if there is 1.
func move(from, to string) string {
	return transaction(`{"Update":{"TableName":"plain","Key":{"pk":{"S":"`+from+`"}},"UpdateExpression":"SET n = n - :one",
		"ConditionExpression":"n >= :one","ExpressionAttributeValues":{":one":{"N":"1"}}}}`, add(to))
}

// balances is what TransactGetItems returns of two items.
const balances = `{"Responses":[{"Item":{"n":{"N":"%d"},"pk":{"S":"a"}}},{"Item":{"n":{"N":"%d"},"pk":{"S":"b"}}}]}`

// balanced reports whether two items, neither of which owes, have that much together.
func balanced(output string, total int) bool {
	var a, b int
	_, err := fmt.Sscanf(output, balances, &a, &b)
	return err == nil && a+b == total && a >= 0 && b >= 0
}

func TestBalancedNegativeControl(t *testing.T) {
	for _, test := range []struct {
		a, b int
		want bool
	}{{10, 10, true}, {20, 0, true}, {9, 10, false}, {21, -1, false}} {
		if got := balanced(fmt.Sprintf(balances, test.a, test.b), 20); got != test.want {
			t.Errorf("%d and %d: balanced is %t", test.a, test.b, got)
		}
	}
}

// Transactions that move money to and fro make none and lose none, whatever order they name their items in.
func TestOpposingTransactions(t *testing.T) {
	r := newTables(t)
	const start = 10
	for _, pk := range []string{"a", "b"} {
		r.do("PutItem", fmt.Sprintf(`{"TableName":"plain","Item":{"pk":{"S":"%s"},"n":{"N":"%d"}}}`, pk, start))
	}
	var mu sync.Mutex
	balance := 0 // of b
	together(func(worker int) {
		from, to, gain := "a", "b", 1
		if worker%2 == 0 {
			from, to, gain = to, from, -1
		}
		for range 30 {
			_, err := r.Do(t.Context(), "TransactWriteItems", []byte(move(from, to)))
			if err == nil {
				mu.Lock()
				balance += gain
				mu.Unlock()
			} else if !exception.Is(err, exception.TransactionCanceled) {
				t.Errorf("transaction: %v", err)
			}
			output, err := r.Do(t.Context(), "TransactGetItems", []byte(transaction(
				`{"Get":{"TableName":"plain","Key":{"pk":{"S":"a"}}}}`, `{"Get":{"TableName":"plain","Key":{"pk":{"S":"b"}}}}`)))
			if err != nil {
				t.Errorf("get: %v", err)
				continue
			}
			if !balanced(string(output), 2*start) {
				t.Errorf("half a transaction is seen: %s", output)
			}
		}
	})
	if a, b := r.counted("a"), r.counted("b"); a != start-balance || b != start+balance {
		t.Errorf("a is %d and b is %d, want %d and %d", a, b, start-balance, start+balance)
	}
}
