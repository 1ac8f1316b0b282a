package problem

import "testing"

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
