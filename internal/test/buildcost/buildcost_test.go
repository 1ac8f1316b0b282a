package buildcost

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
)

// The most that a resource may cost. CPU is not among these, since it depends on the machine: `make bench`
// states it.
const (
	mostMemory  = 8 << 20
	mostArchive = 500 << 10
	mostReview  = 90
)

// over returns what of c is above its bound.
func over(c Cost) []string {
	var errs []string
	for _, figure := range []struct {
		what       string
		have, most float64
	}{
		{"bytes at the compiler's peak", c.Memory, mostMemory},
		{"bytes of the compiled package", c.Archive, mostArchive},
		{"lines of EXPRESSIONS.md", c.Review, mostReview},
	} {
		if figure.have > figure.most {
			errs = append(errs, fmt.Sprintf("a resource adds %.0f %s, more than %.0f", figure.have, figure.what,
				figure.most))
		}
	}
	return errs
}

// TestBuildCost bounds what a resource of three limits costs to compile.
func TestBuildCost(t *testing.T) {
	longform.Only(t, "it compiles 40 resources")
	longform.NoRace(t, "it compiles the same packages")
	cost, err := Measure(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a resource: %v of CPU, %.1f MB at the peak, %.0f KB compiled, %.0f lines of EXPRESSIONS.md",
		cost.CPU.Round(time.Millisecond), cost.Memory/(1<<20), cost.Archive/(1<<10), cost.Review)
	if cost.CPU <= 0 || cost.Archive <= 0 || runtime.GOOS == "linux" && cost.Memory <= 0 {
		t.Errorf("%+v: nothing was compiled", cost)
	}
	for _, err := range over(cost) {
		t.Error(err)
	}
}

// TestReview bounds what reviewers read of a resource beyond the first.
func TestReview(t *testing.T) {
	lines, err := Review(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f lines", lines)
	if lines <= 0 {
		t.Errorf("%.1f lines: nothing was generated", lines)
	}
	for _, err := range over(Cost{Review: lines}) {
		t.Error(err)
	}
}

// TestOver: each figure above its bound is reported, and only that.
func TestOver(t *testing.T) {
	for what, c := range map[string]Cost{
		"at the compiler's peak":  {Memory: mostMemory + 1, Archive: mostArchive, Review: mostReview},
		"of the compiled package": {Memory: mostMemory, Archive: mostArchive + 1, Review: mostReview},
		"of EXPRESSIONS.md":       {Memory: mostMemory, Archive: mostArchive, Review: mostReview + 1},
	} {
		if errs := over(c); len(errs) != 1 || !strings.Contains(errs[0], what) {
			t.Errorf("%s: %q, want it alone", what, errs)
		}
	}
}
