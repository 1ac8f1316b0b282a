package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/examples/regions/limits"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/region/filestore"
)

// TestLive runs the program as `go run ./examples/regions` does, in time that takes none.
func TestLive(t *testing.T) {
	longform.NoRace(t, "TestLiveFaults runs the same goroutines")
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := live(t.Context(), mainStory(), &out); err != nil {
			t.Error(err)
		}
		for _, said := range []string{"us's sync stops", "ap: us is silent", "eu: us is gone", "us's sync is back",
			"ap: us is live", "\ncheck: ok: in "} {
			if !strings.Contains(out.String(), said) {
				t.Errorf("it did not say %q", said)
			}
		}
		if t.Failed() {
			t.Log(out.String())
		}
	})
}

// watch runs a story, and returns what was seen.
func watch(t *testing.T, s story, before func(all []*place)) *lookout {
	t.Helper()
	store, err := filestore.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	all, err := newPlaces(t.Context(), store, s.evict)
	if err != nil {
		t.Fatal(err)
	}
	before(all)
	sees := newLookout(all)
	var out strings.Builder
	err = tell(t.Context(), s, all, sees, &out)
	for _, p := range all {
		if err := p.close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	return sees
}

// TestRegionStops stops the sync of a region. The region keeps its quota until its heartbeat ends, and then
// the floor; the others share out the rest. When it is back, it gets more than the floor again.
func TestRegionStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mainStory()
		sees := watch(t, s, func([]*place) {})
		if err := sees.check(&strings.Builder{}); err != nil {
			t.Error(err)
		}
		us := slices.IndexFunc(sees.all, func(p *place) bool { return p.name == s.who })
		at := func(d time.Duration) (own, others int64) {
			line := sees.lines[int(d/time.Second)-1]
			for i, quota := range line.quotas {
				if i == us {
					own += quota
				} else {
					others += quota
				}
			}
			return own, others
		}
		had, _ := at(s.stops + time.Second) // its last cycle before the stop may still have lowered it
		if had <= sees.floor {
			t.Fatalf("it had %d a second after it stopped: nothing to lose", had)
		}
		kept, _ := at(s.stops + 2*time.Second)
		if kept < had { // its heartbeat holds for three windows
			t.Errorf("it has %d a second later, and had %d", kept, had)
		}
		own, others := at(s.stops + s.evict)
		if own != sees.floor || others > sees.whole-had {
			t.Errorf("silent, it has %d, the others %d of %d less what it had, %d", own, others, sees.whole, had)
		}
		own, others = at(s.backs)
		if own != sees.floor || others <= sees.whole-had {
			t.Errorf("gone, it has %d, the others %d: what it had, %d, is not shared out", own, others, had)
		}
		if own, _ := at(s.ends - time.Second); own <= sees.floor {
			t.Errorf("back, it has %d", own)
		}
	})
}

// TestMoreThanAll: the control. A region in which an operator overrides the quota has more, and the check
// says so.
func TestMoreThanAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sees := watch(t, story{evict: 5 * time.Second, ends: 3 * time.Second, stops: time.Hour, backs: time.Hour},
			func(all []*place) {
				own := limits.ChatLimits{RPS: &runtime.Rate{Capacity: 200, Every: time.Second}}
				if _, err := all[1].lim.Config.Chat.Entity(limits.User{ID: "1"}).Set(context.Background(), own,
					""); err != nil {
					t.Fatal(err)
				}
			})
		if err := sees.check(&strings.Builder{}); err == nil || !strings.Contains(err.Error(), "more than G, 200") {
			t.Errorf("the check returns %v, of %d", err, sees.most)
		}
	})
}
