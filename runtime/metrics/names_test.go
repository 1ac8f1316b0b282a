package metrics_test

import (
	"fmt"
	"testing"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/metrics"
	"github.com/sluice-go/sluice/runtime/store"
)

// calls reports that a name of model was called n times, and what the store did for it.
func calls(t *testing.T, o *runtime.Observer, name string, n int) {
	t.Helper()
	for range n {
		e := runtime.Event{
			Operation: store.OperationAcquire, Resource: "model/" + name, Template: "model", Kind: "key",
		}
		o.Acquired(t.Context(), e)
		e.Operation = store.OperationSettle
		o.Settled(t.Context(), e)
		o.Store(t.Context(), runtime.StoreEvent{
			System: "redis", Call: "EVALSHA", Path: "acquire", Resource: e.Resource, Template: e.Template,
			Outcome: "applied", Coalesced: 1,
		})
	}
}

// values returns how often a metric was measured for each value of a label.
func values(c *metrics.Counters, m *metrics.Metric, label string) map[string]float64 {
	all := map[string]float64{}
	for _, s := range c.Snapshot() {
		if s.Metric == m {
			all[s.Labels()[label]] += s.Sum
		}
	}
	return all
}

// TestNames: ten thousand names of a template are 200 values and one for all others. The resource is the
// template, also of calls to the store, and nothing is lost.
func TestNames(t *testing.T) {
	c := &metrics.Counters{}
	o := metrics.Observer(c)
	const names = 10_000
	for i := range names {
		calls(t, o, fmt.Sprint("gpt-", i), 1)
	}
	for _, m := range []*metrics.Metric{metrics.Decisions, metrics.Settlements} {
		got := values(c, m, metrics.Name)
		if len(got) != 201 || got[metrics.OtherName] != names-200 || got["gpt-7"] != 1 {
			t.Errorf("%s: %d names, of which others have %v", m.Name, len(got), got[metrics.OtherName])
		}
	}
	for _, m := range []*metrics.Metric{metrics.Decisions, metrics.Settlements, metrics.StoreCalls} {
		if got := values(c, m, metrics.Resource); len(got) != 1 || got["model"] != names {
			t.Errorf("%s: resources %v, want %d of model", m.Name, got, names)
		}
	}
	if n := len(c.Snapshot()); n > 2*201+5 {
		t.Errorf("%d series", n)
	}
	o.Acquired(t.Context(), runtime.Event{Operation: store.OperationAcquire, Resource: "gpt-4", Kind: "key"})
	o.Acquired(t.Context(), runtime.Event{
		Operation: store.OperationAcquire, Resource: "gpt-7", Template: "model", Kind: "key", // its buckets
	})
	if got := c.Snapshot().Sum(metrics.Decisions, metrics.Resource, "gpt-4", metrics.Name, ""); got != 1 {
		t.Errorf("%v of a resource without names, want 1", got)
	}
}

// TestMostUsedNames: names that are used much get a value though others came first. In all, no more than 400
// have one.
func TestMostUsedNames(t *testing.T) {
	c := &metrics.Counters{}
	o := metrics.Observer(c)
	for i := range 300 {
		calls(t, o, fmt.Sprint("rare-", i), 2)
	}
	calls(t, o, "hot", 1000)
	calls(t, o, "few", 20)
	got := values(c, metrics.Decisions, metrics.Name)
	if got["hot"] < 900 || got["few"] != 0 || len(got) != 202 {
		t.Errorf("%v of hot and %v of few, of %d names, want most and none of 202", got["hot"], got["few"],
			len(got))
	}
	for i := range 1000 {
		calls(t, o, fmt.Sprint("new-", i), 100+i)
	}
	if got = values(c, metrics.Decisions, metrics.Name); len(got) > 401 || got["hot"] < 900 {
		t.Errorf("%d names, want at most 400 and all others", len(got))
	}
	calls(t, o, "hot", 10)
	if after := values(c, metrics.Decisions, metrics.Name); after["hot"] != got["hot"]+10 {
		t.Errorf("%v of hot after %v and 10 more", after["hot"], got["hot"])
	}
}
