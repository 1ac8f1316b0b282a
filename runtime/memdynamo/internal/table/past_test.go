package table

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// churn changes a table of thousands of items many times, so that nodes split and merge, a millisecond apart.
// It returns what the table and an index were after each change.
func churn(table *Table, seed uint64, changes int, after func()) (states [][2][]string) {
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range changes {
		item := order(string(rune('a'+random.IntN(3))), random.IntN(1000))
		c := Change{At: start.Add(time.Duration(i) * time.Millisecond), Key: table.KeyOf(item), Item: item}
		if i > changes/2 || random.IntN(4) == 0 { // grows, then shrinks
			items := table.View("", time.Time{})
			for item := range items.Items(Range{Segment: random.IntN(9), Segments: 10}) {
				c.Key, c.Item = table.KeyOf(item), nil
			}
		}
		table.Set(c)
		after()
		if i%67 == 0 || i > changes-10 {
			states = append(states, [2][]string{state(table, "", time.Time{}), state(table, "state", time.Time{})})
		} else {
			states = append(states, [2][]string{})
		}
	}
	return states
}

func state(table *Table, index string, asOf time.Time) []string {
	view := table.View(index, asOf)
	return texts(slices.Collect(view.Items(Range{})))
}

// pastDiffers compares what the table remembers with what it was.
func pastDiffers(table *Table, states [][2][]string) string {
	for i, want := range states {
		if want[0] == nil { // not looked at
			continue
		}
		for k, index := range []string{"", "state"} {
			// at and before a change
			asOf := start.Add(time.Duration(i)*time.Millisecond + time.Duration(i%2)*(time.Millisecond-1))
			if got := state(table, index, asOf); !slices.Equal(want[k], got) {
				return cmp.Diff(want[k], got)
			}
		}
	}
	return ""
}

func TestPastOfALargeTable(t *testing.T) {
	table := New(orders)
	for i := range 1500 {
		put(table, order("a", i))
	}
	table.KeepPast(time.Hour, start)
	if diff := pastDiffers(table, churn(table, 1, 2000, func() {})); diff != "" {
		t.Error(diff)
	}
}

// TestPastWithoutCopies is the negative control: its versions are no copies.
func TestPastWithoutCopies(t *testing.T) {
	table := New(orders)
	table.KeepPast(time.Hour, start)
	states := churn(table, 1, 200, func() {
		last := &table.past.versions[len(table.past.versions)-1]
		last.trees = table.trees
	})
	if pastDiffers(table, states) == "" {
		t.Error("the past is the present, and none tells")
	}
}

func TestPastIsPruned(t *testing.T) {
	table := New(orders)
	change := func(ms int) {
		item := order("ann", 1)
		item["note"] = value.NumberOf(int64(ms))
		table.Set(Change{At: start.Add(time.Duration(ms) * time.Millisecond), Key: table.KeyOf(item), Item: item})
	}
	versions := func(when string, want int) {
		t.Helper()
		if got := len(table.past.versions); got != want {
			t.Errorf("%s: %d versions, want %d", when, got, want)
		}
	}
	for i := range 100 {
		change(i)
	}
	versions("not kept", 0)
	table.KeepPast(10*time.Millisecond, start.Add(100*time.Millisecond))
	versions("no change yet", 0)
	for i := range 100 {
		change(100 + i)
		change(100 + i)
	}
	versions("10 ms, a change in each", 10)
	table.KeepPast(5*time.Millisecond, start.Add(199*time.Millisecond))
	versions("5 ms", 5)
	table.KeepPast(5*time.Millisecond, start.Add(time.Second))
	versions("a second later", 0)
	change(1000)
	versions("one more change", 1)
	table.KeepPast(0, start.Add(time.Second))
	versions("forgotten", 0)
}
