package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/engine"
)

func TestTimeToLive(t *testing.T) {
	t.Parallel()
	r := newTables(t)
	spec := func(attribute string, enabled bool) string {
		return fmt.Sprintf(`{"TableName":"plain","TimeToLiveSpecification":{"AttributeName":%q,"Enabled":%t}}`,
			attribute, enabled)
	}
	const disabled = `{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}`
	r.gives("DescribeTimeToLive", `{"TableName":"plain"}`, disabled)
	r.invalid("UpdateTimeToLive", spec("x", false), "TimeToLive is already disabled")
	r.gives("UpdateTimeToLive", spec("x", true),
		`{"TimeToLiveSpecification":{"AttributeName":"x","Enabled":true}}`)
	r.gives("DescribeTimeToLive", `{"TableName":"plain"}`,
		`{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"x"}}`)
	r.invalid("UpdateTimeToLive", spec("x", true), "TimeToLive is already enabled")
	for _, enabled := range []bool{true, false} {
		r.invalid("UpdateTimeToLive", spec("y", enabled),
			"TimeToLive is active on a different AttributeName: current AttributeName is x")
	}
	r.gives("UpdateTimeToLive", spec("x", false),
		`{"TimeToLiveSpecification":{"AttributeName":"x","Enabled":false}}`)
	r.gives("DescribeTimeToLive", `{"TableName":"plain"}`, disabled)
	r.do("UpdateTimeToLive", spec("y", true))
}

// Items go when they expire, or a lag later, and those without a number for it stay.
func TestExpiry(t *testing.T) {
	t.Parallel()
	for _, lag := range []time.Duration{0, time.Minute} {
		r := newTables(t)
		r.under(engine.Conditions{TTLLag: lag})
		r.do("UpdateTimeToLive",
			`{"TableName":"plain","TimeToLiveSpecification":{"AttributeName":"x","Enabled":true}}`)
		expires := r.now.Unix() + 10
		for pk, x := range map[string]string{
			"soon": fmt.Sprintf(`{"N":"%d"}`, expires), "later": fmt.Sprintf(`{"N":"%d"}`, expires+1000),
			"text": `{"S":"1"}`,
		} {
			r.do("PutItem", fmt.Sprintf(`{"TableName":"plain","Item":{"pk":{"S":%q},"x":%s}}`, pk, x))
		}
		count := func(want int) {
			t.Helper()
			r.gives("Scan", `{"TableName":"plain","Select":"COUNT"}`, fmt.Sprintf(`{"Count":%d,"ScannedCount":%[1]d}`,
				want))
		}
		r.pass(10*time.Second + lag)
		count(3)
		r.pass(time.Second)
		count(2)
		r.pass(1000 * time.Second)
		count(1)
	}
}
