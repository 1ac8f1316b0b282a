package review

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/window"
)

// TestNotes: a limit with a period of an hour or more has a note, unless it says that it is meant so.
func TestNotes(t *testing.T) {
	limit := func(name string, period time.Duration, refills bool) *schema.Limit {
		return &schema.Limit{Name: name, Refills: refills, Pos: schema.Pos{File: "limits.yaml", Line: 9, Col: 7},
			Numbers: schema.Numbers{Capacity: 100, Burst: 150, Refill: 100, Period: period}}
	}
	quota := limit("quota", 24*time.Hour, false)
	w := window.Of("day")
	quota.Window = &w
	got := Notes(&schema.Schema{Resources: []*schema.Resource{{Name: "api", Limits: []*schema.Limit{
		limit("rpm", time.Hour-time.Millisecond, false), limit("rpd", 24*time.Hour, false),
		limit("known", 24*time.Hour, true), limit("rph", time.Hour, false), quota,
	}}}})
	const start = "limits.yaml:9:7: NOTE: limit "
	const end = "; nor does it bound how many calls run at once; for a quota, write window in place of " +
		"every; if it refills as it is meant to, write refills: true"
	want := []string{
		start + "rpd of api is no quota per 1d: it refills all the time, 1 token every 14.4 min, so from a full " +
			"bucket up to 250 tokens are admitted within 1d" + end,
		start + "rph of api is no quota per 1h: it refills all the time, 1 token every 36 s, so from a full " +
			"bucket up to 250 tokens are admitted within 1h" + end,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notes differ (-want +got):\n%s", diff)
	}
}
