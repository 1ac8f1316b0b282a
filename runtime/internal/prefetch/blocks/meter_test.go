package blocks

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// TestMeter compares a Meter with all calls of the last Span, in whole bins and the one under way.
func TestMeter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type call struct {
			at   time.Duration
			cost int64
		}
		m, now := NewMeter(1), time.Duration(0)
		var calls []call
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			now += time.Duration(rapid.IntRange(0, 120).Draw(t, "ms")) * time.Millisecond
			cost := rapid.Int64Range(0, 1_000_000).Draw(t, "cost")
			m.Add([]int64{cost}, now)
			calls = append(calls, call{now, cost})
			want := Demand{Cost: make([]int64, 1)}
			for _, c := range calls {
				if c.at >= now/bin*bin-Span {
					want.Calls, want.Cost[0] = want.Calls+1, want.Cost[0]+c.cost
				}
			}
			if diff := cmp.Diff(want, m.Demand(now)); diff != "" {
				t.Fatalf("at %v (-want +got):\n%s", now, diff)
			}
		}
	})
}

// TestMeterSaturates has costs that no sum can hold: once they are over, the demand is nothing.
func TestMeterSaturates(t *testing.T) {
	m := NewMeter(1)
	for i := range 20_000 {
		m.Add([]int64{1e15}, time.Duration(i)*time.Millisecond/100)
	}
	if d := m.Demand(time.Minute); d.Calls != 0 || d.Cost[0] != 0 {
		t.Errorf("demand %+v after a minute, want none", d)
	}
}

// TestSize has blocks of 200 ms for 100 calls within Span, which cost 1 and 10 each, and of 50 ms.
func TestSize(t *testing.T) {
	hundred := Demand{Calls: 100, Cost: []int64{100, 1000}}
	for _, c := range []struct {
		name     string
		demand   Demand
		prefetch time.Duration
		level    []int64
		want     []int64
	}{
		{"what the demand uses", hundred, 200 * time.Millisecond, []int64{1e6, 1e6}, []int64{40, 400}},
		{"an eighth of the level", hundred, 200 * time.Millisecond, []int64{80, 1e6}, []int64{10, 100}},
		{"the scarcest limit", hundred, 200 * time.Millisecond, []int64{1e6, 240}, []int64{3, 30}},
		{"an eighth of too little", hundred, 200 * time.Millisecond, []int64{1e6, 159}, nil},
		{"debt", hundred, 200 * time.Millisecond, []int64{1e6, -5}, nil},
		{"for one call", Demand{Calls: 9, Cost: []int64{9, 9}}, 100 * time.Millisecond, []int64{1e6, 1e6}, nil},
		{"no demand", Demand{Cost: []int64{0, 0}}, time.Second, []int64{1e6, 1e6}, nil},
		{
			"free of one limit", Demand{Calls: 10, Cost: []int64{10, 0}}, time.Second, []int64{1e6, -5},
			[]int64{20, 0},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Size(c.demand, c.prefetch, make([]int64, 2), c.level)); diff != "" {
				t.Errorf("size (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSizeIsBounded has random demands: a block is no more than an eighth of any limit, and than the demand.
func TestSizeIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vector := rapid.SliceOfN(rapid.Int64Range(0, 1e15), 3, 3)
		d := Demand{rapid.Int64Range(0, 1e6).Draw(t, "calls"), vector.Draw(t, "cost")}
		prefetch := time.Duration(rapid.IntRange(100, 5000).Draw(t, "ms")) * time.Millisecond
		level := vector.Draw(t, "level")
		for i, n := range Size(d, prefetch, vector.Draw(t, "left"), level) {
			if n < 0 || n > level[i]/8 || n > d.Ahead(i, prefetch) {
				t.Fatalf("limit %d: %d of level %d and demand %d", i, n, level[i], d.Ahead(i, prefetch))
			}
		}
	})
}

// TestLeave has processes of some demand within Span, of limits that a bucket of 1,000 holds at most.
func TestLeave(t *testing.T) {
	const token = bucket.Milli
	for _, c := range []struct {
		name       string
		limit      bucket.Limit
		calls      int64
		each, want int64
	}{
		{"much: what refills in 50 ms", bucket.Per(1_000, time.Second), 200, token, 50 * token},
		{"a twentieth of the burst", bucket.Per(1_000, 10*time.Millisecond), 100_000, token, 50 * token},
		{"an eighth of the limit", bucket.Per(1_000, time.Second), 63, token, 50 * token},
		{"less: in proportion", bucket.Per(1_000, time.Second), 10, token, 8 * token},
		{"little", bucket.Per(1_000, time.Second), 1, token, 0},
		{"large calls", bucket.Per(1_000, time.Second), 20, 30 * token, 0},
		{"a limit of ten a minute", bucket.Per(10, time.Minute), 200, token, 0},
		{"a window", bucket.InWindows(1_000, time.Hour), 200, token, 0},
		{"no calls", bucket.Per(1_000, time.Second), 0, token, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Demand{Calls: c.calls, Cost: []int64{c.calls * c.each}}
			if got := d.Leave(0, c.limit); got != c.want {
				t.Errorf("%d are left to others, want %d", got, c.want)
			}
		})
	}
}

// TestNearEnd has buckets that hold 1,000 at most, and a prefetch of 200 ms.
func TestNearEnd(t *testing.T) {
	const token = bucket.Milli
	for _, c := range []struct {
		name  string
		limit bucket.Limit
		least int64
	}{
		{"what refills in 200 ms", bucket.Per(300, time.Second).WithBurst(1_000), 60 * token},
		{"an eighth of the burst", bucket.Per(1_000, time.Second), 125 * token},
		{"a window", bucket.InWindows(1_000, time.Hour), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			const prefetch = 200 * time.Millisecond
			if NearEnd(c.limit, c.least, prefetch) || !NearEnd(c.limit, c.least-1, prefetch) {
				t.Errorf("the end is not near below %d, and only there", c.least)
			}
		})
	}
}

// TestSizeLeavesSome has a process that asks for all of a bucket, and 15 that then ask for two tokens each:
// its blocks leave enough. Blocks of a fixed size, that of the demand, leave 10.
func TestSizeLeavesSome(t *testing.T) {
	const token, prefetch = bucket.Milli, 200 * time.Millisecond
	greedy := Demand{Calls: 2475, Cost: []int64{2475 * token}} // 990 within prefetch
	for name, size := range map[string]func(level int64) int64{
		"sized by the level": func(level int64) int64 {
			return Size(greedy, prefetch, make([]int64, 1), []int64{level})[0]
		},
		"control: fixed": func(level int64) int64 { return min(level, greedy.Ahead(0, prefetch)) },
	} {
		t.Run(name, func(t *testing.T) {
			level := int64(1_000 * token)
			for range Most {
				level -= size(level)
			}
			if enough := level >= 15*2*token; enough != (name == "sized by the level") {
				t.Errorf("%d tokens are left for others", level/token)
			}
		})
	}
}
