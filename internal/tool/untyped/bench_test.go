package untyped_test

import (
	"testing"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// BenchmarkDefinition is what looping over operands takes beside generated code, which has them written out:
// the most common write of a resource with two limits.
func BenchmarkDefinition(b *testing.B) {
	p := pairs(b)[0]
	for name, resource := range map[string]codec.Resource{"generated": p.generated, "ours": p.ours} {
		b.Run(name, func(b *testing.B) {
			w := codec.Write{
				Entity: "user-1", Image: &bucket.Image{Refilled: 1, Version: 1}, Op: "op",
				Cost: []int64{1000, 2000}, Fill: []int64{10, 20}, Lo: []int64{1, 2}, Hi: []int64{3,
					4}, RF: 1, CV: 1, TTL: 1,
			}
			for b.Loop() {
				resource.Normal(&w)
			}
		})
	}
}
