package region

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime/store"
)

// handlers are functions of two regions, with windows of a minute.
func handlers(t *testing.T) (*world, []*Handler) {
	t.Helper()
	w := newWorld(t, 1000, "eu", "us")
	w.spec.Regions.Window = time.Minute
	var all []*Handler
	for _, s := range w.regions {
		h, err := NewHandler(s.config())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	return w, all
}

// config is what s's sync is told.
func (s *site) config() Config {
	return Config{
		Region: s.name, Table: s, Snapshots: objects{s}, Specs: []*store.Spec{s.spec}, Clock: s,
		Logger: slog.New(slog.DiscardHandler), Writers: 1,
	}
}

// TestHandler: functions that are called once a minute share out what there is by demand, and the one that is
// started anew goes on.
func TestHandler(t *testing.T) {
	w, all := handlers(t)
	var last []string
	minute := func() {
		t.Helper()
		w.now = w.now.Add(time.Minute)
		last = nil
		for i, s := range w.regions {
			s.used[user] += []int64{900, 300}[i]
			out, err := all[i].HandleLambda(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.check()
			text, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			last = append(last, string(text))
		}
	}
	for range 12 {
		minute()
	}
	w.want(725, 275)
	for i, want := range []string{
		`{"region":"eu","epoch":1,"sequence":11,"shares":1,"writes":0,"operated":0,"heartbeat":true}`,
		`{"region":"us","epoch":1,"sequence":11,"shares":1,"writes":0,"operated":0,"heartbeat":true}`,
	} {
		if last[i] != want {
			t.Errorf("got %s, want %s", last[i], want)
		}
	}
	h, err := NewHandler(w.regions[0].config())
	if err != nil {
		t.Fatal(err)
	}
	all[0] = h
	minute()
	w.want(725, 275)
	if !strings.Contains(last[0], `"sequence":12`) {
		t.Errorf("a process that starts anew came to %s", last[0])
	}
}

// TestHandlerFails: what fails is the function's error, not all of it where that is much, and the regions
// that are away are named.
func TestHandlerFails(t *testing.T) {
	w, all := handlers(t)
	for range 3 {
		w.now = w.now.Add(time.Minute)
		for _, h := range all {
			if _, err := h.HandleLambda(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.now = w.now.Add(10 * time.Minute)
	w.regions[0].broken = errors.New("throttled")
	out, err := all[0].HandleLambda(t.Context())
	if err == nil || !strings.Contains(err.Error(), "throttled") || len(out.Away) != 1 || out.Away[0] != "us" {
		t.Errorf("%+v, %v", out, err)
	}
	w.down["eu"] = true
	if out, err = all[0].HandleLambda(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "this region's own snapshot: no answer") || out.Sequence != 0 {
		t.Errorf("%+v, %v", out, err)
	}

	r := &Report{}
	if err := r.Failures(2); err != nil {
		t.Error(err)
	}
	for i := range 5 {
		r.Failed = append(r.Failed, fmt.Errorf("quota %d", i))
	}
	if err := r.Failures(5); err.Error() != "quota 0\nquota 1\nquota 2\nquota 3\nquota 4" {
		t.Error(err)
	}
	if err := r.Failures(2); err.Error() != "quota 0\nquota 1\nand 3 more" || !errors.Is(err, r.Failed[1]) {
		t.Error(err)
	}
}

// TestHandlerRefuses: what EventBridge cannot do is said at the start, and so is what New refuses.
func TestHandlerRefuses(t *testing.T) {
	w := newWorld(t, 1000, "eu", "us")
	for _, test := range []struct {
		window time.Duration
		region string
		want   string
	}{
		{time.Minute, "eu", ""},
		{
			time.Minute - time.Second, "eu",
			"setup: region.NewHandler: the window is 59s, and EventBridge calls a function once in 1m0s at most | " +
				"set window: 1m or more under regions in limits.yaml, or run `sluice region sync` in place of the " +
				"function",
		},
		{
			time.Minute, "asia",
			`setup: region.New: region "asia" is not one of those that gpt-4 is divided among: eu, us | ` +
				"name one of them, or add it to regions in limits.yaml",
		},
	} {
		w.spec.Regions.Window = test.window
		c := w.regions[0].config()
		c.Region = test.region
		h, err := NewHandler(c)
		if test.want == "" {
			if err != nil || h == nil {
				t.Error(err)
			}
			continue
		}
		if errtext.Of(err) != test.want || h != nil {
			t.Errorf("%v\nwant %s", err, test.want)
		}
	}
}
