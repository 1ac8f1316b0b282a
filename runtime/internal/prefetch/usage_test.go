package prefetch_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// usages returns what the table's stream has of tpm of the project, in whole tokens by the end of the window,
// in ms: what `sluice usage --by window` shows.
func usages(t *testing.T, engine *memdynamo.Engine) map[int64]int64 {
	t.Helper()
	client := engine.Client()
	described, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: new(table)})
	if err != nil {
		t.Fatal(err)
	}
	number := func(image map[string]types.AttributeValue, name string) int64 {
		v, _ := image[name].(*types.AttributeValueMemberN)
		if v == nil {
			return 0
		}
		n, err := strconv.ParseInt(v.Value, 10, 64)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	all := map[int64]int64{}
	for r := range storetest.Records(t, engine.Streams(), *described.Table.LatestStreamArn) {
		was, is := r.Dynamodb.OldImage, r.Dynamodb.NewImage
		gained := number(is, "b_tpm_tc") - number(was, "b_tpm_tc")
		all[number(is, "b_tpm_we")] += gained / bucket.Milli
	}
	return all
}

// TestUsageOfWindows has processes that call through several windows: the usage of each is what calls took in
// it. Tokens that are left of blocks come back before their window ends.
func TestUsageOfWindows(t *testing.T) {
	for _, prefetch := range []time.Duration{100 * time.Millisecond, life, time.Second} {
		t.Run(prefetch.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := memdynamo.New()
				if _, err := operator.CreateTable(t.Context(), engine.Client(), table); err != nil {
					t.Fatal(err)
				}
				engine.Faults().TTLLag(time.Hour)
				def := windowedBy(t, 100_000)
				def.Numbers.Prefetch = prefetch
				var all []*process
				for range 3 {
					all = append(all, open(t, simulated.Client(engine), def))
				}
				engine.Faults().Latency(memdynamo.Constant(2 * time.Millisecond))
				type admission struct{ called, ended time.Time }
				var got []admission
				pooled := 0
				for i := range 2_000 {
					at := time.Now()
					if _, err := all[i%3].Acquire(t.Context(), hot(), [2]int64{1, 1}); err != nil {
						t.Fatal(err)
					}
					if time.Since(at) == 0 {
						pooled++
					}
					got = append(got, admission{at, time.Now()})
					sleep(5*time.Millisecond - time.Since(at)%(5*time.Millisecond))
				}
				for _, p := range all {
					p.close(t)
				}
				used := usages(t, engine)
				for end, n := range used {
					within, opening := int64(0), int64(0) // by calls in the window, and by those under way at an end of it
					from, to := time.UnixMilli(end).Add(-window), time.UnixMilli(end)
					for _, a := range got {
						switch {
						case !a.called.Before(from) && a.ended.Before(to):
							within++
						case !a.ended.Before(from) && a.called.Before(to):
							opening++
						}
					}
					if n < within || n > within+opening {
						t.Errorf("usage of the window until %d is %d, want %d, or %d more", end, n, within, opening)
					}
				}
				if len(used) < 4 || pooled < len(got)/2 {
					t.Errorf("%d windows, and %d of %d calls from blocks", len(used), pooled, len(got))
				}
			})
		})
	}
}
