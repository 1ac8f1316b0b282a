package bucket_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// aMinute is 10 s into an epoch: the 101st is the next to end.
const aMinute = 100*bucket.EpochLength + 10_000

// inFlight returns a balance of 20 slots that counts epochs from the 101st on.
func inFlight(even, odd int64) bucket.Balance {
	b := bucket.Balance{Limit: bucket.InFlight(20), Cells: [2]int64{even, odd}, Epoch: 101}
	b.Tokens = b.Burst - even - odd
	return b
}

// TestInFlight: tokens do not refill, and come back when their epoch is over.
func TestInFlight(t *testing.T) {
	b := inFlight(3000, 5000) // of 102 and 101
	if b.HeldIn(0) != 102 || b.HeldIn(1) != 101 {
		t.Errorf("cells are of %d and %d, want 102 and 101", b.HeldIn(0), b.HeldIn(1))
	}
	for _, test := range []struct{ after, available, held int64 }{
		{0, 12_000, 8000}, {49_999, 12_000, 8000},
		{50_000, 17_000, 3000}, {109_999, 17_000, 3000}, {110_000, 20_000, 0},
	} {
		now := aMinute + test.after
		if got := bucket.Available(b, 0, now); got != test.available || b.Held(now) != test.held {
			t.Errorf("after %d ms: %d available and %d held, want %d and %d",
				test.after, got, b.Held(now), test.available, test.held)
		}
	}
	if got := bucket.RetryAfter(b, 0, aMinute, 13_000); got != time.Second {
		t.Errorf("retry after %v, want a second", got)
	}
	if got := b.HeldUntil(); got != 102*bucket.EpochLength {
		t.Errorf("held until %d, want the end of 102", got)
	}
	if got := bucket.Expiry(b, aMinute) * 1000; got < bucket.EpochEnd(105) {
		t.Errorf("expires at %d, before holds in a new ring end", got)
	}
}

// TestSweep: a sweep gives back what is over, less what returns give back, and clears its cells only.
func TestSweep(t *testing.T) {
	b := inFlight(3000, 5000)
	m := bucket.NoMoves
	m.Out[1], m.Last = 2000, 101 // a return, late
	if _, ok := b.Hold(1000, m, aMinute+bucket.EpochLength); ok {
		t.Error("a take is held in an epoch whose cell was not swept")
	}
	h, back := b.Sweep(1000, m, false, aMinute+bucket.EpochLength)
	after := b.Apply(h)
	if back != 3000 || after.Cells != [2]int64{3000, 1000} || after.Epoch != 102 || h.Until != 103 {
		t.Errorf("%d back, then cells %d from %d, taken until %d", back, after.Cells, after.Epoch, h.Until)
	}
	if h.Lo[1] != 5000 || h.Hi[1] != 5000 || h.Lo[0] == h.Hi[0] {
		t.Errorf("bounds of the cells are %d to %d: only the swept one must be as seen", h.Lo, h.Hi)
	}
	h, back = b.Sweep(1000, bucket.NoMoves, true, aMinute)
	if after = b.Apply(h); back != 0 || after.Cells != [2]int64{1000, 0} {
		t.Errorf("a new window has cells %d, and %d back", after.Cells, back)
	}
}

// TestEndOf has each row of the table in docs/design.md for what a settle does to a hold.
func TestEndOf(t *testing.T) {
	const open = aMinute + 1_000_000
	slots := inFlight(3000, 5000)
	window := slots
	window.Limit, window.Ends = bucket.InWindows(20, 24*time.Hour), open
	for name, test := range map[string]struct {
		of          bucket.Balance
		cost, taken int64
		epoch, ends int64
		lapsed      int64
		out         [2]int64
	}{
		"kept":                        {slots, 0, 2000, 102, 0, -2000, [2]int64{2000, 0}},
		"released":                    {slots, -2000, 2000, 102, 0, 0, [2]int64{2000, 0}},
		"kept, lost":                  {slots, 0, 2000, 100, 0, 0, [2]int64{}},
		"released, lost":              {slots, -2000, 2000, 100, 0, 2000, [2]int64{}},
		"released, in doubt":          {slots, -2000, 2000, bucket.Lost, 0, 2000, [2]int64{}},
		"taken before holds":          {slots, -2000, 2000, 0, 0, 2000, [2]int64{}},
		"settled":                     {window, -500, 2000, 101, open, 0, [2]int64{0, 2000}},
		"settled above":               {window, 500, 2000, 101, open, 0, [2]int64{0, 2000}},
		"settled, lost":               {window, -500, 2000, 100, open, 2000, [2]int64{}},
		"kept, in doubt":              {window, 0, 2000, bucket.Lost, open, 2000, [2]int64{}},
		"settled above, lost":         {window, 500, 2000, 100, open, 2000, [2]int64{}},
		"settled in another window":   {window, -500, 2000, 101, open - 1, 500, [2]int64{}},
		"settled above in another":    {window, 500, 2000, 101, open - 1, 0, [2]int64{}},
		"settled, taken before holds": {window, -500, 2000, 0, open, 0, [2]int64{}},
	} {
		img := &bucket.Image{Balances: []bucket.Balance{test.of}}
		charges := []bucket.Charge{
			{Cost: []int64{test.taken}, Ends: []int64{test.ends}, Epochs: []int64{test.epoch}},
		}
		lapsed, moves := bucket.EndOf(img, []int64{test.cost}, charges, aMinute)
		if lapsed == nil {
			lapsed = []int64{0}
		}
		if lapsed[0] != test.lapsed || moves[0].Out != test.out || moves[0].In != [2]int64{} {
			t.Errorf("%s: lapsed %d, moves %+v", name, lapsed[0], moves[0])
		}
		if live := test.out != [2]int64{}; live && moves[0].Last != test.epoch || moves[0].First > 0 {
			t.Errorf("%s: the epoch may be %d to %d", name, moves[0].First, moves[0].Last)
		}
	}
}

// TestExtend: a hold moves to the next epoch while its own is not over.
func TestExtend(t *testing.T) {
	b := inFlight(3000, 5000)
	for name, test := range map[string]struct{ after, epoch, until int64 }{
		"in its last minute":      {0, 101, 102},
		"with a minute to go":     {0, 102, 102},
		"its epoch is over":       {50_000, 101, bucket.Lost},
		"swept":                   {0, 100, bucket.Lost},
		"in the minute after it":  {50_000, 102, 103},
		"in doubt":                {0, bucket.Lost, bucket.Lost},
		"of a limit without cell": {0, 0, 0},
	} {
		held := bucket.Charge{Cost: []int64{1000}, Epochs: []int64{test.epoch}}
		moves, until := bucket.Extend(&bucket.Image{Balances: []bucket.Balance{b}}, held, aMinute+test.after)
		if until[0] != test.until {
			t.Errorf("%s: held until %d, want %d", name, until[0], test.until)
		}
		if moved := test.until > test.epoch && test.epoch > 0; moved == moves[0].IsZero() {
			t.Errorf("%s: moves %+v", name, moves[0])
		}
	}
	held := bucket.Charge{Cost: []int64{1}, Epochs: []int64{101}}
	if _, until := bucket.Extend(nil, held, aMinute); until[0] != bucket.Lost {
		t.Error("a hold is extended in a bucket that is gone")
	}
}

// TestHoldsAddUp: whatever writes do to cells, what is available and what is held is the capacity.
func TestHoldsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, now := inFlight(0, 0), aMinute
		type hold struct{ tokens, epoch int64 }
		var held []hold
		for range rapid.IntRange(1, 40).Draw(t, "writes") {
			now += rapid.Int64Range(0, 40_000).Draw(t, "later")
			m, back := bucket.NoMoves, int64(0)
			if len(held) > 0 && rapid.Bool().Draw(t, "ends one") {
				i := rapid.IntRange(0, len(held)-1).Draw(t, "lease")
				charges := []bucket.Charge{{Cost: []int64{held[i].tokens}, Epochs: []int64{held[i].epoch}}}
				lapsed, moves := bucket.EndOf(&bucket.Image{Balances: []bucket.Balance{b}}, []int64{0}, charges, now)
				if m = moves[0]; lapsed != nil {
					back = -lapsed[0]
				}
				held = append(held[:i:i], held[i+1:]...)
			}
			take := rapid.Int64Range(0, bucket.Available(b, 0, now)).Draw(t, "take")
			h, ok := b.Hold(take, m, now)
			if !ok || take > b.Tokens+back {
				var swept int64
				h, swept = b.Sweep(take, m, false, now)
				back += swept
			}
			b = b.Apply(h)
			if b.Tokens += back - take; take > 0 {
				held = append(held, hold{take, h.Until})
			}
			want := [2]int64{}
			for _, one := range held {
				if one.epoch >= b.Epoch {
					want[one.epoch&1] += one.tokens
				}
			}
			sum := b.Tokens + b.Cells[0] + b.Cells[1]
			if diff := cmp.Diff(want, b.Cells); diff != "" || sum != b.Burst || b.Tokens < 0 {
				t.Fatalf("%+v at %d: cells (-want +got):\n%s", b, now, diff)
			}
		}
	})
}
