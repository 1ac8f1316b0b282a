package memdynamo_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// trace is what one client meets in a run of 200 requests in bad weather, with the times, on virtual time.
func trace(t *testing.T, seed uint64) string {
	t.Helper()
	var b strings.Builder
	synctest.Test(t, func(t *testing.T) {
		engine, client := setUp(t, memdynamo.WithSeed(seed))
		f := engine.Faults()
		f.LoseRequests(0.1)
		f.LoseReplies(0.1)
		f.Duplicate(0.1)
		f.InternalErrors(0.1)
		f.LateInternalErrors(0.1)
		f.Throttle(0.1)
		f.Conflict(0.1)
		f.Unprocessed(0.1)
		f.Latency(memdynamo.LogNormal(5*time.Millisecond, 0.5))
		began := time.Now()
		for i := range 100 {
			out, err := client.UpdateItem(t.Context(), add("a"))
			fmt.Fprintln(&b, i, time.Since(began), out != nil, err)
			batch := map[string][]types.WriteRequest{}
			for _, id := range []string{"b", "c"} {
				batch[things] = append(batch[things],
					types.WriteRequest{PutRequest: &types.PutRequest{Item: item{"id": s(id)}}})
			}
			written, err := client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: batch})
			fmt.Fprintln(&b, i, time.Since(began), written != nil && len(written.UnprocessedItems) > 0, err)
		}
		f.Clear()
		fmt.Fprintln(&b, count(t, engine, "a"), engine.Consumed())
	})
	return b.String()
}

func TestReplay(t *testing.T) {
	first := trace(t, 7)
	if second := trace(t, 7); second != first {
		t.Errorf("one seed, and then\n%s\nand then\n%s", first, second)
	}
	if other := trace(t, 8); other == first {
		t.Errorf("another seed met the same:\n%s", first)
	}
}

// TestFaultsDoNotShiftEachOther: with one fault more, the others befall the same requests.
func TestFaultsDoNotShiftEachOther(t *testing.T) {
	befallen := func(change func(*memdynamo.Faults)) (requests string) {
		engine, client := setUp(t)
		engine.Faults().LoseRequests(0.3)
		change(engine.Faults())
		for i := range 100 {
			if err := ignore(client.UpdateItem(t.Context(), add("a"))); err != nil &&
				strings.Contains(err.Error(), "connection reset") {
				requests += fmt.Sprint(" ", i)
			}
		}
		return requests
	}
	alone := befallen(func(*memdynamo.Faults) {})
	among := befallen(func(f *memdynamo.Faults) {
		f.InternalErrors(0.5)
		f.Throttle(0.5)
		f.Duplicate(0.5)
		f.Latency(memdynamo.Uniform(0, 1))
	})
	if alone != among || alone == "" {
		t.Errorf("lost alone:%s\namong others:%s", alone, among)
	}
}

// TestProbabilities holds frequencies to their probabilities, four standard deviations allowed, and odd ones
// to the nearest.
func TestProbabilities(t *testing.T) {
	for p, want := range map[float64]float64{0: 0, 0.1: 0.1, 0.5: 0.5, 1: 1, -1: 0, 7: 1, math.Inf(1): 1,
		math.NaN(): 0} {
		for name, set := range map[string]func(*memdynamo.Faults, float64){
			"LoseRequests": (*memdynamo.Faults).LoseRequests, "InternalErrors": (*memdynamo.Faults).InternalErrors,
			"Throttle": (*memdynamo.Faults).Throttle,
		} {
			engine := memdynamo.New()
			client := engine.Client(once)
			createThings(t, client)
			set(engine.Faults(), p)
			tries, failed := 500, 0
			if want == 0 || want == 1 {
				tries = 20 // that leaves nothing to chance
			}
			for range tries {
				_, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(things),
					Key: item{"id": s("a")}})
				if err != nil {
					failed++
				}
			}
			if allowed := 4 * math.Sqrt(want*(1-want)*float64(tries)); math.Abs(float64(failed)-want*float64(tries)) >
				allowed {
				t.Errorf("%s(%v) befell %d of %d requests", name, p, failed, tries)
			}
		}
	}
}

// TestOddDurations: what makes no sense is none.
func TestOddDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, client := setUp(t)
		f := engine.Faults()
		began := time.Now()
		for _, latency := range []memdynamo.Distribution{
			nil, memdynamo.Constant(-time.Second), memdynamo.Uniform(0, 0), memdynamo.LogNormal(0, 1),
			memdynamo.LogNormal(-time.Second, 1),
		} {
			f.Latency(latency)
			f.RequestsPerSecond(math.NaN())
			f.HoldTransactions(-1)
			f.StaleReads(-1)
			f.IndexLag(-1)
			f.TTLLag(-1)
			f.PartitionThroughput(math.NaN(), -1)
			f.TableThroughput(-1, math.NaN())
			must(t, ignore(client.UpdateItem(t.Context(), add("a"))))
			must(t, ignore(client.TransactWriteItems(t.Context(), transaction("a"))))
		}
		equal(t, "it took", time.Since(began), 0)
	})
}

func TestLogNormal(t *testing.T) {
	rolls := []float64{0, 0}
	roll := func() (r float64) { r, rolls = rolls[0], append(rolls[1:], rolls[0]); return r }
	equal(t, "at no deviation", memdynamo.LogNormal(time.Second, 1)(roll), time.Second)
	rolls = []float64{1 - math.Exp(-0.5), 0} // a deviation of one
	got := memdynamo.LogNormal(time.Second, 2)(roll).Seconds()
	if math.Abs(got-math.Exp(2)) > 1e-6 {
		t.Errorf("at one deviation: %v s, want e squared", got)
	}
	if d := memdynamo.LogNormal(time.Second, math.Inf(1))(roll); d <= 0 {
		t.Errorf("the most is %v", d)
	}
	if d := memdynamo.LogNormal(time.Second, math.NaN())(roll); d <= 0 {
		t.Errorf("no number is %v", d)
	}
}
