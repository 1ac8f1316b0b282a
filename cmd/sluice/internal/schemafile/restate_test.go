package schemafile

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestRestated: what a limit is restated as is read as that limit.
func TestRestated(t *testing.T) {
	own := bucket.Per(100, time.Minute)
	l := Scope{
		Spec: &store.Spec{Resource: "api", Limits: []string{"rpm"}, Kinds: []store.Kind{
			{Name: "user", Limits: []bucket.Limit{own}, PerCall: []int64{1}},
		}},
		At: "user-1",
	}
	said := 0
	rapid.Check(t, func(t *rapid.T) {
		limit := own
		number := rapid.Int64Range(1, 5000).Draw
		limit.Capacity = number(t, "capacity") * 1000
		limit.Burst, limit.Refill = limit.Capacity, limit.Capacity
		if rapid.Bool().Draw(t, "with burst") {
			limit.Burst += number(t, "more burst") * rapid.SampledFrom([]int64{1, 1000}).Draw(t, "of tokens")
		}
		if rapid.Bool().Draw(t, "with refill") {
			limit.Refill = number(t, "refill") * 1000
		}
		limit.Period = rapid.SampledFrom([]int64{1, 1500, 60_000, 90_000, 3_600_000, 86_400_000,
			90_061_001}).Draw(t, "period")
		text, wrong := l.Restate(0, limit)
		whole := limit.Burst%1000 == 0
		if wrong != "" {
			if whole && limit.Check(1) == "" {
				t.Fatalf("%v: %s", limit, wrong)
			}
			return
		}
		said++
		i, got, err := l.Parse(text)
		if err != nil || i != 0 || got != limit {
			t.Fatalf("%v is restated as %s, which is %v, %v", limit, text, got, err)
		}
	})
	if said == 0 {
		t.Error("nothing could be restated")
	}
}

// TestRestatedInFlight: a limit in flight is restated by its capacity alone, and others cannot become one.
func TestRestatedInFlight(t *testing.T) {
	own := bucket.InFlight(20)
	l := Scope{
		Spec: &store.Spec{Resource: "api", Limits: []string{"parallel", "rpm"}, Kinds: []store.Kind{{
			Name: "user", Limits: []bucket.Limit{own, bucket.Per(100, time.Minute)}, PerCall: []int64{1, 1},
		}}},
		At: "user-1",
	}
	text, wrong := l.Restate(0, bucket.InFlight(30))
	if text != "parallel=30" || wrong != "" {
		t.Errorf("%s, %s", text, wrong)
	}
	if _, got, err := l.Parse(text); err != nil || got != bucket.InFlight(30) {
		t.Errorf("%v, %v", got, err)
	}
	const cure = "it is of calls in flight, so only its capacity can differ from limits.yaml: write " +
		"burst_milli 100000, refill_milli 0 and period_ms 1"
	if text, wrong := l.Restate(0, bucket.Per(100, time.Minute)); wrong != cure {
		t.Errorf("a limit that refills: %s, %s", text, wrong)
	}
	if text, wrong := l.Restate(1, own); !strings.Contains(wrong, "write the refill, such as the capacity") {
		t.Errorf("a limit in flight in place of one that refills: %s, %s", text, wrong)
	}
}

// TestLimitOfOtherKinds: a limit that the kind does not have is not read.
func TestLimitOfOtherKinds(t *testing.T) {
	l := Scope{
		Spec: &store.Spec{Resource: "api", Limits: []string{"rpm", "tpm"}, Kinds: []store.Kind{
			{Name: "user", Limits: []bucket.Limit{bucket.Per(100, time.Minute), {}}, PerCall: []int64{1, 0}},
			{Name: "project", Limits: []bucket.Limit{{}, bucket.Per(100, time.Minute)}, PerCall: []int64{0, 0}},
		}},
		At: "user-1",
	}
	if _, _, err := l.Parse("rpm=5"); err != nil {
		t.Errorf("rpm: %v", err)
	}
	_, _, err := l.Parse("tpm=5")
	if err == nil || !strings.Contains(err.Error(), "no limit of kind user, but of project") {
		t.Errorf("tpm: %v", err)
	}
}
