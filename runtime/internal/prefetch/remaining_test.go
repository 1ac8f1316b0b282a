package prefetch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// inTable returns how many tokens of rpm, a limit of so much, the project's bucket has now.
func inTable(t *testing.T, engine *memdynamo.Engine, limit bucket.Limit) int64 {
	t.Helper()
	at := storetest.BucketKey("project-hot", "gpt-4")
	item := storetest.Table{Client: engine.Client(), Name: table}.Get(t, at)
	var refilled int64
	if err := attributevalue.Unmarshal(item["rf"], &refilled); err != nil {
		t.Fatal(err)
	}
	b := bucket.Balance{Limit: limit, Tokens: stored(t, engine, "project-hot", "rpm_tk")}
	return bucket.Available(b, refilled, time.Now().UnixMilli()) / bucket.Milli
}

// TestRemaining has calls whose tokens had been prefetched. Their Remaining is what the table has, beside the
// blocks of the process. If another process takes tokens, it is too much, for a prefetch at most.
func TestRemaining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		limits := alike(1_000, 2_000)
		def := prefetching(t, life, limits, alike(1, 1))
		p, other := open(t, simulated.Client(engine), def), open(t, simulated.Client(engine), def)
		defer p.close(t)
		defer other.close(t)
		warm(t, p, hot())
		tooMuch := func() int64 {
			synctest.Wait() // for a block that is under way
			in := inTable(t, engine, limits[0])
			lease, err := p.Acquire(t.Context(), hot(), one)
			if err != nil {
				t.Fatal(err)
			}
			defer sleep(time.Millisecond)
			return lease.Remaining()[0] - in
		}
		for range 500 {
			if n := tooMuch(); n != 0 {
				t.Fatalf("%d more remain than the table has", n)
			}
		}
		if _, err := other.Acquire(t.Context(), hot(), [2]int64{500, 500}, runtime.Prefetch(0)); err != nil {
			t.Fatal(err)
		}
		taken, worst := time.Now(), int64(0)
		for time.Since(taken) < life {
			worst = max(worst, tooMuch())
		}
		if n := tooMuch(); n != 0 || worst > 500 {
			t.Errorf("%d more remain than the table has, and %d before", n, worst)
		}
		if worst != 500 {
			t.Errorf("at most %d were too much, want the 500 that the other process took", worst)
		}
	})
}
