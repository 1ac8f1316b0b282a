package problem

import (
	"strings"
	"testing"
)

// TestProblems covers what later phases do with problems.
func TestProblems(t *testing.T) {
	var ps Problems
	ps.Add(Pos{"b.yaml", 1, 1}, "A", "last")
	ps.Add(Pos{"a.yaml", 10, 2}, "B", "fourth of %d", 5)
	ps.Add(Pos{"a.yaml", 10, 2}, "A", "third")
	ps.Add(Pos{"a.yaml", 9, 7}, "C", "first")
	ps.Add(Pos{"a.yaml", 10, 1}, "C", "second")
	ps.Sort()
	const want = "a.yaml:9:7: C: first\na.yaml:10:1: C: second\na.yaml:10:2: A: third\na.yaml:10:2: B: fourth " +
		"of 5\nb.yaml:1:1: A: last"
	var err error = ps
	if got := err.Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestManyProblems: an error of many problems lists the first of them and counts the rest.
func TestManyProblems(t *testing.T) {
	for n, last := range map[int]string{
		MaxShown:     "a.yaml:100:1: A: wrong",
		MaxShown + 1: "a.yaml:100:1: A: wrong\nand 1 more",
		1_000_000:    "a.yaml:100:1: A: wrong\nand 999900 more",
	} {
		var ps Problems
		for i := range n {
			ps.Add(Pos{"a.yaml", i + 1, 1}, "A", "wrong")
		}
		got := ps.Error()
		if lines := strings.Count(got, "a.yaml"); lines != MaxShown || !strings.HasSuffix(got, last) {
			t.Errorf("%d problems: %d of them are listed, and the end is %q, want %d and %q", n, lines,
				got[max(0, len(got)-len(last)):], MaxShown, last)
		}
	}
}
