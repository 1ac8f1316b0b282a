package evolution_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// TestReuse: a name that is used again after its removal continues with the balance that a bucket still has
// of it. That has refilled at the old rate up to now, to no more than the old and the new burst. If a version
// has removed it meanwhile, the limit starts full.
func TestReuse(t *testing.T) {
	thirty := bucket.Per(30, time.Minute)
	for name, test := range map[string]struct {
		spent   int64 // of 60 a minute, by the first version
		later   time.Duration
		removed bool
		want    bucket.Balance // after one more, by the fourth
	}{
		"idle since before": {55, 10 * time.Second, false,
			bucket.Balance{Limit: thirty, Tokens: 14_000, Consumed: 56_000}},
		"idle for long": {55, time.Hour, false, bucket.Balance{Limit: thirty, Tokens: 29_000,
			Consumed: 56_000}},
		"idle, with more than the new one": {1, 0, false, bucket.Balance{Limit: thirty, Tokens: 29_000,
			Consumed: 2000}},
		"removed meanwhile": {55, 10 * time.Second, true,
			bucket.Balance{Limit: thirty, Tokens: 29_000, Consumed: 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			take(t, w.deploy(t, 1), cost{rpm: test.spent, tpm: 1})
			if test.removed {
				take(t, w.deploy(t, 3), cost{tpm: 1})
			}
			w.later(test.later)
			take(t, w.deploy(t, 4), cost{rpm: 1, tpm: 1})
			s := w.state(t, "user-a")
			if got := s.balances["rpm"]; got != test.want || s.revision != 4 {
				t.Errorf("rpm has %+v in revision %d\nwant %+v in 4", got, s.revision, test.want)
			}
		})
	}
}

// TestReuseSideBySide: the version that has removed a limit lets it be once a newer one has brought it back,
// and claims its refill.
func TestReuseSideBySide(t *testing.T) {
	w := newWorld(t)
	b := newBooks(w)
	third, fourth := w.deploy(t, 3), w.deploy(t, 4)
	for step := range 40 {
		version, p, c := int64(3), third, cost{tpm: 500, tpd: 100}
		if step%5 == 1 {
			version, p, c = 4, fourth, cost{rpm: 7, tpm: 100}
		}
		take(t, p, c)
		for _, entity := range []string{"user-a", "project-p"} {
			b.book(version, entity, true, c.millitokens(b.of(version, entity)))
		}
		if wrong := b.wrong(t, true); wrong != "" {
			t.Fatalf("step %d, version %d: %s", step, version, wrong)
		}
		w.later(3 * time.Second)
	}
	if third.generic.Load() == 0 {
		t.Error("the third version wrote nothing by the generic path")
	}
}
