package money_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/money"
)

// modelUsage and modelCost are what generated code has for a resource with four prices.
type modelUsage struct{ Input, Cached, Output, Call int64 }

type modelCost struct {
	TPM        int64
	Day, Month money.Amount
}

// Cost is as generated.
func (u modelUsage) Cost() modelCost {
	sum := money.Total{}.
		Add(u.Input, 2_500_000).
		Add(u.Cached, 250_000).
		Add(u.Output, 10_000_000).
		Add(u.Call, 10_000_000_000).
		Amount()
	return modelCost{TPM: u.Input + u.Output, Day: sum, Month: sum}
}

var sink modelCost

// BenchmarkCost measures the cost of a call with four usages. The goal is 20 ns.
func BenchmarkCost(b *testing.B) {
	for name, u := range map[string]modelUsage{
		"usual":         {1_200, 800, 345, 1},
		"above_64_bits": {1 << 50, 800, 345, 1},
		"negative":      {-1, 800, 345, 1},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				u.Output++
				sink = u.Cost()
			}
		})
	}
}

// TestCostAllocatesNothing, since each acquire and each settle calls it.
func TestCostAllocatesNothing(t *testing.T) {
	u := modelUsage{1_200, 800, 345, 1}
	if n := testing.AllocsPerRun(100, func() { sink = u.Cost() }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
	if want := (modelCost{1_545, 16_650 * money.Micro, 16_650 * money.Micro}); sink != want {
		t.Errorf("%+v, want %+v", sink, want)
	}
}

// TestInlined: the compiler inlines what Cost calls. Parse is too long for that of its parts, the control.
func TestInlined(t *testing.T) {
	longform.NoRace(t, "the compiler says the same")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for function, want := range map[string]bool{"Total.Add": true, "Total.Amount": true, "parse": false} {
		if got := strings.Contains(string(out), ": can inline "+function+"\n"); got != want {
			t.Errorf("%s: inlined %t, want %t:\n%s", function, got, want, out)
		}
	}
}
