package load

import (
	"strings"
	"testing"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/load"
)

// TestForTests: a word counts where it stands alone.
func TestForTests(t *testing.T) {
	for name, want := range map[string]bool{
		"load_limits": true, "rate-limits-test": true, "Dev.limits": true, "sluice:bench:": true, "TEST": true,
		"limits_load_2": true,
		"rate_limits":   false, "latest_limits": false, "payload": false, "sluice:": false, "devices": false,
		"localised": false, "": false,
	} {
		if got := forTests(name); got != want {
			t.Errorf("forTests(%q) is %v", name, got)
		}
	}
}

// TestOnThisMachine: what cannot be anybody else's.
func TestOnThisMachine(t *testing.T) {
	for url, want := range map[string]bool{
		"http://127.0.0.1:8000": true, "http://localhost:8000": true, "redis://:secret@[::1]:6379/0": true,
		"unix:///run/redis.sock":                   true,
		"https://dynamodb.eu-west-1.amazonaws.com": false, "redis://10.0.0.7:6379": false,
		"http://localhost.example": false, "%": false, "": false,
	} {
		if got := onThisMachine(url); got != want {
			t.Errorf("onThisMachine(%q) is %v", url, got)
		}
	}
}

// TestLoadThatLost: a count that does not come out is no report to go by.
func TestLoadThatLost(t *testing.T) {
	r := summary{Result: &load.Result{Made: 3, Lost: 1}}
	if err := r.wrong(); err == nil ||
		err.Error() != "1 call is missing in the counts: do not trust this report" {
		t.Error(err)
	}
	var s strings.Builder
	if r.sums(&s); strings.Contains(s.String(), "check: ok") {
		t.Error(s.String())
	}
	if err := (summary{Result: &load.Result{Made: 3}}).wrong(); err != nil {
		t.Error(err)
	}
	r = summary{Result: &load.Result{Units: load.Units{Read: 1, Write: 2}},
		Billed: &load.Units{Read: 1, Write: 3}}
	if err := r.wrong(); err == nil ||
		!strings.HasPrefix(err.Error(), "the engine billed 1 read units and 3 write units, ") {
		t.Error(err)
	}
	r.Paths = []load.Path{{Outcomes: map[string]int64{"unknown": 1}}} // which may be what was billed
	if err := r.wrong(); err != nil {
		t.Error(err)
	}
}

// TestLoadWithoutRequests: how many calls had prefetched tokens is said if any had.
func TestLoadWithoutRequests(t *testing.T) {
	outcomes := []load.Latency{{Calls: 400}}
	for pooled, want := range map[int64]string{
		0:   "",
		300: "300 of 400 admitted calls (75.0%) made no request: their tokens had been prefetched",
	} {
		var s strings.Builder
		summary{Result: &load.Result{Outcomes: outcomes, Pooled: pooled}}.sums(&s)
		if got := s.String(); !strings.Contains(got, want) || strings.Contains(got, "no request") != (want != "") {
			t.Errorf("%d: %s", pooled, got)
		}
	}
}
