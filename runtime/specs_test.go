package runtime_test

import (
	"testing"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestSpecs: the resources are there, each as generated code describes it, and who changes the list changes
// nobody else's.
func TestSpecs(t *testing.T) {
	b := runtime.NewBuilder(&fake{})
	want := []*store.Spec{{Resource: "gpt-4"}, {Resource: "embeddings"}}
	for _, spec := range want {
		runtime.Bind[user](b, definition{spec}, nil, func([]int64) cost { return cost{} })
	}
	l, err := b.Limiter()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got := l.Specs()
		if len(got) != 2 || got[0].Resource != "gpt-4" || got[1].Resource != "embeddings" {
			t.Fatalf("%+v", got)
		}
		clear(got)
	}
}
