package poll_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLost: that records may be gone is said when they can be, once, and otherwise not.
func TestLost(t *testing.T) {
	for _, test := range []struct {
		name   string
		before func(*world) // a Poller has read all there is before it
		off    time.Duration
		lost   int
	}{
		{"a little off", func(w *world) { w.consume(1, 10) }, 22 * time.Hour, 0},
		{"too long", func(w *world) { w.consume(1, 10) }, 26 * time.Hour, 1},
		{"too long, shard gone", func(w *world) { w.consume(1, 10); w.split() }, 26 * time.Hour, 1},
		{"too long, all gone", func(w *world) { w.consume(1, 10); w.split(); w.split() }, 60 * time.Hour, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.consume(1, 1)
				w.idle = time.Minute
				stop := w.run(w.tap())
				later(30 * time.Hour) // an idle shard is no loss
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				if log := w.logged(); strings.Contains(log, "lost") {
					t.Errorf("it ran all the time, and logged %s", log)
				}
				test.before(w)
				later(test.off)
				w.consume(2, 100)
				w.drain(w.tap())
				if got := w.progress(); got.Lost != test.lost || got.Counted == 0 {
					t.Errorf("got %+v", got)
				}
				if told := strings.Count(w.logged(), "level=ERROR msg=\"sluice: records may be lost"); told != test.lost {
					t.Errorf("it was logged %d times, want %d", told, test.lost)
				}
				if diff := w.wrong(); (diff != "") != (test.lost > 0) {
					t.Errorf("%d lost, but the windows differ by %q", test.lost, diff)
				}
				later(time.Hour)
				w.consume(2, 100)
				w.drain(w.tap())
				if got := w.progress(); got.Lost != 0 || got.Counted != 1 {
					t.Errorf("the next time: %+v", got)
				}
			})
		})
	}
}

// TestFirstStart: a Poller that comes to a table that is used for long counts what there is, and claims no more.
func TestFirstStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.consume(1, 1)
		later(30 * time.Hour)
		w.consume(2, 1)
		w.drain(w.tap())
		if got := w.progress(); got.Lost != 0 || got.Counted != 1 {
			t.Errorf("got %+v", got)
		}
	})
}

// TestIdleForLong: what comes after a position that is trimmed itself is all there, if a checkpoint says that the shard was idle.
func TestIdleForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.split()
		w.consume(1, 1)
		w.idle = time.Minute
		stop := w.run(w.tap())
		later(40 * time.Hour)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		later(20 * time.Hour)
		for n := range 10 {
			w.consume(n, 5)
		}
		w.drain(w.tap())
		w.exact()
		if got := w.progress(); got.Lost != 0 || got.Counted != 10 {
			t.Errorf("got %+v", got)
		}
	})
}
