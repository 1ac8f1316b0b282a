package usage

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// Lengths of windows of usd, in ms. Much time passes in a history: shorter windows see a shard or two, longer
// ones dozens.
const (
	shortWindow = int64(2 * time.Hour / time.Millisecond)
	longWindow  = 200 * shortWindow
)

// windowEnd is the end of the window that a writer opens at now, in a bucket whose last one ended at old.
func windowEnd(now, old, length int64) int64 {
	end := now - now%length + length
	for end <= old+length/2 {
		end += length
	}
	return end
}

// windowed counters, as generated code has them: usd has windows, rpm refills.
func windowCounters() []codec.Counter {
	return []codec.Counter{
		{Limit: "rpm", Consumed: "b_rpm_tc", Carried: "m_rpm"},
		{Limit: "usd", Consumed: "b_usd_tc", Carried: "m_usd", Ends: "b_usd_we"},
	}
}

// windowBucket is what history keeps of a bucket of gpt-4: its limit usd has windows, its limit rpm refills.
type windowBucket struct {
	rpm, tc, tk, bx, we, carried int64
}

// image is b as a stream has it.
func (b *windowBucket) image(entity string) codec.Image {
	if b == nil {
		return nil
	}
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	img := plain{"PK": "S:ENTITY#" + entity, "SK": "S:#BUCKET#gpt-4", "entity_id": "S:" + entity,
		"b_rpm_tc": text(b.rpm), "b_usd_tc": text(b.tc), "b_usd_tk": text(b.tk), "b_usd_we": text(b.we)}
	if b.carried != 0 {
		img["m_usd"] = text(b.carried)
	}
	return img
}

// windowCharge is what a lease can still give back, and the end of the window that it charged.
type windowCharge struct{ left, we int64 }

// history is a random history of one bucket, as its writers make it: they charge, give back, reset, reshape
// and claim. TTL deletes it.
type history struct {
	dice   *rand.Rand
	entity string
	now    int64
	length int64 // of windows
	bucket *windowBucket
	leases []windowCharge

	records []codec.Record
	totals  []int64 // after each record: what usd consumed until then
	base    int64   // used already when the open window began
	seen    map[string]int

	// By the end of a window:
	sums    map[int64]int64 // charges less give-backs of the writes that left it open
	used    map[int64]int64 // capacity less balance, when it ended
	foreign map[int64]int64 // what counted in it and left its balance alone
}

// newHistory draws a history of 120 steps, with windows of this length.
func newHistory(seed uint64, length int64) *history {
	h := &history{
		dice: rand.New(rand.NewPCG(seed, 7)), entity: "user-" + strconv.FormatUint(seed, 10),
		now: noon.UnixMilli(), length: length,
		sums: map[int64]int64{}, used: map[int64]int64{}, foreign: map[int64]int64{}, seen: map[string]int{},
	}
	for range 120 {
		h.step()
	}
	h.close()
	return h
}

// step lets some time pass, and something happens.
func (h *history) step() {
	h.now += h.dice.Int64N(shortWindow / 2)
	if h.dice.IntN(40) == 0 {
		h.now += 12 * shortWindow
	}
	switch kind := h.dice.IntN(20); {
	case h.bucket == nil:
		h.create(h.dice.Int64N(3) * 1000)
	case kind == 0:
		h.expire()
	case kind == 1:
		h.reset()
	case kind <= 3:
		h.reshape()
	case kind <= 7:
		h.write("settle", func(b *windowBucket) { h.giveBack(b) })
	case kind == 8:
		h.write("call of rpm alone", func(b *windowBucket) { b.rpm += 1000 })
	default:
		h.call()
	}
}

// write records a write of the bucket, and what it consumed of usd.
func (h *history) write(what string, change func(b *windowBucket)) {
	before, was := h.bucket.image(h.entity), int64(0)
	after := &windowBucket{}
	if h.bucket != nil {
		*after, was = *h.bucket, h.bucket.tc
	}
	change(after)
	if h.bucket == nil {
		was = after.carried
	}
	h.bucket = after
	h.seen[what]++
	h.add(codec.Record{Old: before, New: after.image(h.entity)}, after.tc-was)
}

func (h *history) add(rec codec.Record, took int64) {
	rec.At = time.UnixMilli(h.now).UTC().Truncate(time.Second)
	h.records = append(h.records, rec)
	total := took
	if n := len(h.totals); n > 0 {
		total += h.totals[n-1]
	}
	h.totals = append(h.totals, total)
}

// create makes the bucket anew; nothing asked of usd opens no window.
func (h *history) create(cost int64) {
	h.write("create", func(b *windowBucket) {
		b.bx, b.rpm = 50_000, 1000
		b.tk = b.bx
		if h.dice.IntN(4) == 0 { // of a predecessor's items
			b.carried = 7_000_000
			b.tc = b.carried
		}
		if h.base = 0; cost > 0 {
			h.open(b, windowEnd(h.now, 0, h.length))
			h.take(b, cost)
			h.leases = append(h.leases, windowCharge{cost, b.we})
		}
		if cost == 0 && len(h.leases) > 0 {
			h.seen["bucket without a window while there are leases"]++
		}
	})
}

// call charges, by a claim if the window is over. A give-back may ride on it.
func (h *history) call() {
	cost := 1000 + h.dice.Int64N(9)*500
	h.write("call", func(b *windowBucket) {
		if h.now >= b.we {
			h.claim(b)
		}
		h.take(b, cost)
		if h.dice.IntN(2) == 0 {
			h.giveBack(b)
		}
		h.leases = append(h.leases, windowCharge{cost, b.we})
	})
}

// claim opens the window after the one that is over.
func (h *history) claim(b *windowBucket) {
	h.leave(b)
	h.open(b, windowEnd(h.now, b.we, h.length))
	b.tk = b.bx
}

func (h *history) open(b *windowBucket, we int64) { b.we, h.base = we, 0 }

// leave notes what was used of the window that b leaves.
func (h *history) leave(b *windowBucket) { h.used[b.we] += b.bx - b.tk - h.base }

func (h *history) take(b *windowBucket, n int64) {
	b.tk -= n
	b.tc += n
	h.sums[b.we] += n
}

// giveBack returns a part of a lease, or all: to the balance if the window that was charged is still open.
func (h *history) giveBack(b *windowBucket) {
	if len(h.leases) == 0 {
		return
	}
	i := h.dice.IntN(len(h.leases))
	l := &h.leases[i]
	n := min(l.left, 1+h.dice.Int64N(4000))
	if l.left -= n; b.we == l.we && h.now < b.we {
		b.tk += n
		h.seen["give-back in its window"]++
	} else {
		h.foreign[b.we] -= n
		h.seen["give-back of another window"]++
		if b.we == 0 {
			h.seen["give-back before the first window"]++
		}
	}
	b.tc -= n
	h.sums[b.we] -= n
	if l.left == 0 {
		h.leases[i] = h.leases[len(h.leases)-1]
		h.leases = h.leases[:len(h.leases)-1]
	}
}

// reset fills the bucket and ends its window 1 ms later.
func (h *history) reset() {
	h.write("reset", func(b *windowBucket) {
		h.leave(b)
		h.open(b, b.we+1)
		b.tk = b.bx
	})
}

// reshape changes the capacity and keeps the usage. It may shorten a window that is far too long.
func (h *history) reshape() {
	h.write("reshape", func(b *windowBucket) {
		bx := 20_000 + h.dice.Int64N(4)*20_000
		b.tk, b.bx = b.tk+bx-b.bx, bx
		if we := windowEnd(h.now, 0, h.length); h.dice.IntN(2) == 0 && h.now < b.we && we != b.we {
			h.leave(b)
			h.open(b, we)
			h.base = b.bx - b.tk
			h.seen["window shortened"]++
		}
		if h.now < b.we {
			h.take(b, 500)
		}
	})
}

// expire deletes the bucket.
func (h *history) expire() {
	h.close()
	deleted := codec.Record{Old: h.bucket.image(h.entity)}
	h.bucket = nil
	h.seen["expiry"]++
	h.add(deleted, 0)
}

// close notes what was used of the open window.
func (h *history) close() {
	if h.bucket != nil {
		h.leave(h.bucket)
		h.base = h.bucket.bx - h.bucket.tk
	}
}

// want returns the usage of each window: capacity less balance, plus what settles of other windows counted.
func (h *history) want() map[int64]int64 {
	want := maps.Clone(h.used)
	for we, n := range h.foreign {
		want[we] += n
	}
	maps.DeleteFunc(want, func(_, n int64) bool { return n == 0 })
	return want
}
