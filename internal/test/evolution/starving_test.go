package evolution_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// TestStarving: a limit that only the new version knows refills completely in a day, although only the old
// version writes. The new version's callers are denied until then, to the millisecond, and then admitted.
func TestStarving(t *testing.T) {
	w := newWorld(t)
	b := newBooks(w)
	old, next := w.deploy(t, 1), w.deploy(t, 2)
	entities := []string{"user-a", "project-p"}
	whole := cost{tpm: 1, tpd: 100_000}
	for _, c := range []cost{whole, {rpm: 1, tpm: 100}} {
		take(t, next, c)
		for _, entity := range entities {
			b.book(2, entity, true, c.millitokens(b.of(2, entity)))
		}
	}
	const writes = 360
	for range writes {
		w.later(24 * time.Hour / writes)
		if w.now.Load() == start+(24*time.Hour).Milliseconds() {
			w.later(-time.Millisecond) // the last just before it is full
		}
		c := cost{rpm: 7, tpm: 1234}
		take(t, old, c)
		for _, entity := range entities {
			b.book(1, entity, true, c.millitokens(b.of(1, entity)))
		}
	}
	if wrong := b.wrong(t, false); wrong != "" {
		t.Error(wrong)
	}
	if old.generic.Load() == 0 {
		t.Error("the old version wrote nothing by the generic path")
	}
	if got := w.level(w.state(t, "user-a"), "tpd"); got < 99_998*bucket.Milli || got >= 100_000*bucket.Milli {
		t.Errorf("a millisecond before the day is over tpd has %d", got)
	}
	if _, err := next.acquire(t.Context(), "a", whole); !denied(t, err) {
		t.Error("admitted a millisecond too early")
	}
	w.later(time.Millisecond)
	take(t, next, whole)
}
