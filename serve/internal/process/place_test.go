package process

import (
	"path/filepath"
	goruntime "runtime"
	"testing"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/serve/internal/limits"
)

// TestKeepsNoChanges: the engine of a first try keeps buckets, and not each change of them.
func TestKeepsNoChanges(t *testing.T) {
	longform.NoRace(t, "it measures memory")
	at, err := (&Flags{}).place(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer at.close()
	schema, err := limits.Read(filepath.FromSlash("../../../examples/quickstart/limits.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := schema.Open(at.open())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close(t.Context()) }()
	if err := l.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	on, err := l.Resource("gpt-4")
	if err != nil {
		t.Fatal(err)
	}
	e, err := on.Entity([]limits.ID{{Kind: "project", ID: "7"}})
	if err != nil {
		t.Fatal(err)
	}
	live := func() int64 {
		goruntime.GC()
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	calls := func(n int) {
		for range n {
			lease, err := on.Acquire(t.Context(), e, make([]int64, len(on.Spec.Limits)))
			if err != nil {
				t.Fatal(err)
			}
			lease.Release(t.Context())
		}
	}
	calls(100)
	before := live()
	calls(5_000)
	if grown := live() - before; grown > 2<<20 {
		t.Errorf("memory has grown by %d bytes with 10,000 changes of one bucket", grown)
	}
}
