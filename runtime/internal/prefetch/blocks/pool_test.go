package blocks

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// holder plays a Pool at random, and counts each token once more.
type holder struct {
	pool   Pool
	now    time.Duration
	taken  [2]int64 // from the bucket
	used   [2]int64 // by calls, less what they gave back
	back   [2]int64 // to the bucket
	draws  []Draw   // of calls that have not been settled
	broken func(*holder, *Block, []int64) bool
}

// held returns what the pool has, rests included.
func (h *holder) held(i int) int64 {
	n := h.pool.Left(i)
	for _, r := range h.pool.rests {
		n += r.Tokens[i]
	}
	return n
}

// add has a write take a block.
func (h *holder) add(tokens []int64, life time.Duration, version int64, ends []int64) {
	for i, n := range tokens {
		h.taken[i] += n
	}
	h.pool.Expire(h.now)
	h.pool.Add(New(slices.Clone(tokens), h.now, h.now+life, version, ends), time.Hour, h.now)
}

// call takes cost from the pool, as far as that has it.
func (h *holder) call(t *rapid.T, cost []int64) {
	h.pool.Expire(h.now)
	draws := []Draw{{h.pool.Take(cost, time.Hour, h.now), cost}}
	if draws[0].Block == nil {
		draws = h.pool.TakeSome(cost, time.Hour, h.now)
	}
	for _, d := range draws {
		if d.Block.until <= h.now || d.Block.ended {
			t.Fatalf("a call at %v draws on a block that ended at %v", h.now, d.Block.until)
		}
		for i, n := range d.Cost {
			h.used[i] += n
		}
	}
	h.draws = append(h.draws, draws...)
}

// settle gives back a part of what a call took.
func (h *holder) settle(d Draw, portion int64) {
	h.pool.Expire(h.now)
	back := slices.Clone(d.Cost)
	for i := range back {
		back[i] = back[i] * portion / 100
		h.used[i] -= back[i]
	}
	if h.broken == nil || !h.broken(h, d.Block, back) {
		h.pool.Return(d.Block, back, h.now)
	}
}

// giveBack gives the rests back to the bucket.
func (h *holder) giveBack() {
	h.pool.Expire(h.now)
	for _, r := range h.pool.Rests() {
		for i, n := range r.Tokens {
			h.back[i] += n
		}
	}
}

// Findings of wrong.
const (
	lifted     = "a block has less than nothing, or more than its write took"
	unbalanced = "tokens were made or lost"
)

// wrong returns what does not add up, or "".
func (h *holder) wrong() string {
	for _, b := range h.pool.blocks {
		for i, n := range b.left {
			if n < 0 || n > b.taken[i] {
				return lifted
			}
		}
	}
	if len(h.pool.blocks) > Most {
		return "there are too many blocks"
	}
	for i := range h.taken {
		if h.taken[i] != h.used[i]+h.back[i]+h.held(i) {
			return unbalanced
		}
	}
	return ""
}

// play plays h for some steps, and returns what went wrong first.
func (h *holder) play(t *rapid.T) string {
	vector := rapid.SliceOfN(rapid.Int64Range(0, 50_000), 2, 2)
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		h.now += time.Duration(rapid.IntRange(0, 80).Draw(t, "ms")) * time.Millisecond
		switch rapid.IntRange(0, 6).Draw(t, "step") {
		case 0:
			h.add(vector.Draw(t, "taken"), time.Duration(rapid.IntRange(-10, 200).Draw(t, "life"))*time.Millisecond,
				rapid.Int64Range(1, 3).Draw(t, "version"), []int64{0, rapid.Int64Range(1, 3).Draw(t, "window")})
		case 1, 2, 3:
			h.call(t, vector.Draw(t, "cost"))
		case 4:
			if n := len(h.draws); n > 0 {
				i := rapid.IntRange(0, n-1).Draw(t, "draw")
				d := h.draws[i]
				h.draws = slices.Delete(h.draws, i, i+1)
				h.settle(d, rapid.Int64Range(0, 100).Draw(t, "percent"))
			}
		case 5:
			h.giveBack()
		case 6:
			version, open := rapid.Int64Range(1, 3).Draw(t, "seen"), rapid.Int64Range(1, 3).Draw(t, "open")
			h.pool.Seen(version, []int64{0, open}, h.now)
		}
		if wrong := h.wrong(); wrong != "" {
			return wrong
		}
	}
	h.pool.End(h.now)
	h.giveBack()
	if !h.pool.Empty() {
		return "something is held after the end"
	}
	return h.wrong()
}

// TestPoolConserves counts every token of a pool: taken is used, given back or held, to the millitoken.
func TestPoolConserves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if wrong := (&holder{}).play(t); wrong != "" {
			t.Fatal(wrong)
		}
	})
}

// TestPoolConservesIsSeen breaks the rules of give-backs: TestPoolConserves would notice.
func TestPoolConservesIsSeen(t *testing.T) {
	for _, c := range []struct {
		name, want string
		broken     func(*holder, *Block, []int64) bool
	}{
		{
			"a give-back is dropped once its block has ended", unbalanced,
			func(_ *holder, b *Block, _ []int64) bool { return b.ended },
		},
		{
			"a give-back lifts the newest block", lifted,
			func(h *holder, _ *Block, tokens []int64) bool {
				if !h.pool.Live() {
					return false
				}
				for i, n := range tokens {
					h.pool.blocks[len(h.pool.blocks)-1].left[i] += n
				}
				return true
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range 300 {
				var got string
				rapid.Custom(func(t *rapid.T) string {
					got = (&holder{broken: c.broken}).play(t)
					return got
				}).Example(seed)
				if got == c.want {
					return
				}
			}
			t.Errorf("nobody noticed that %s", c.want)
		})
	}
}

// TestPool has the rules one by one.
func TestPool(t *testing.T) {
	const ms = time.Millisecond
	t.Run("the older block first, and one that has all", func(t *testing.T) {
		var p Pool
		older, newer := New([]int64{5}, 0, 100*ms, 1, nil), New([]int64{9}, 0, 200*ms, 1, nil)
		p.Add(older, time.Hour, 0)
		p.Add(newer, time.Hour, 50*ms)
		for i, want := range []*Block{older, newer, older, newer, nil} {
			if got := p.Take([]int64{[]int64{3, 4, 2, 5, 1}[i]}, time.Hour, 0); got != want {
				t.Errorf("call %d: block %p, want %p", i, got, want)
			}
		}
	})
	t.Run("a third block is a rest", func(t *testing.T) {
		var p Pool
		for range 3 {
			p.Add(New([]int64{5}, 0, 100*ms, 1, nil), time.Hour, 0)
		}
		if rests := p.Rests(); p.Left(0) != 10 || len(rests) != 1 || rests[0].Tokens[0] != 5 {
			t.Errorf("left %d, rests %v; want 10 and one of 5", p.Left(0), rests)
		}
	})
	t.Run("a spent block makes room", func(t *testing.T) {
		var p Pool
		spent := New([]int64{5, 5}, 0, 100*ms, 1, nil)
		p.Add(spent, time.Hour, 0)
		p.Add(New([]int64{9, 9}, 0, 100*ms, 1, nil), time.Hour, 0)
		p.Take([]int64{5, 2}, time.Hour, 0)
		if p.Full(100*ms, 0) {
			t.Error("the pool is full, although its older block is spent")
		}
		p.Add(New([]int64{7, 7}, 0, 100*ms, 1, nil), time.Hour, 0)
		if rests := p.Rests(); p.Left(0) != 16 || len(rests) != 1 || rests[0].Tokens[1] != 3 {
			t.Errorf("left %d, rests %v; want 16 and one of 3", p.Left(0), rests)
		}
	})
	t.Run("a give-back after the end is a rest of its window", func(t *testing.T) {
		var p Pool
		b := New([]int64{5}, 0, 100*ms, 1, []int64{7})
		p.Add(b, time.Hour, 0)
		p.Take([]int64{5}, time.Hour, 0)
		p.Expire(100 * ms)
		p.Return(b, []int64{2}, 150*ms)
		p.Return(b, []int64{1}, 250*ms)
		if p.Overdue(100*ms, 249*ms) || !p.Overdue(100*ms, 250*ms) {
			t.Error("the rest is overdue 100 ms after the first of it was left, at 250 ms")
		}
		if rests := p.Rests(); len(rests) != 1 || rests[0].Tokens[0] != 3 || rests[0].Ends[0] != 7 {
			t.Errorf("rests %v, want 3 of window 7", rests)
		}
	})
	t.Run("a late reply of an older shape ends nothing", func(t *testing.T) {
		var p Pool
		p.Add(New([]int64{5}, 0, 100*ms, 2, []int64{7}), time.Hour, 0)
		p.Seen(1, []int64{6}, 0)
		if !p.Live() {
			t.Error("the block has ended")
		}
		p.Seen(2, []int64{8}, 0)
		if p.Live() {
			t.Error("the block lives on in the next window")
		}
	})
}
