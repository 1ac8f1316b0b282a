package region_test

import (
	"fmt"
	"testing"

	"github.com/sluice-go/sluice/internal/test/regionscale"
)

// BenchmarkCycle has cycles of one of three regions that divide 2,000 entities x 10 resources, with the
// stream and without.
func BenchmarkCycle(b *testing.B) {
	for _, stream := range []bool{false, true} {
		b.Run(fmt.Sprint("stream=", stream), func(b *testing.B) {
			c, err := regionscale.NewCycle(b.Context(), regionscale.Entities, stream)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				if err := c.Others(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if err := c.Own(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
