package redisstore

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/fill"
	"github.com/sluice-go/sluice/runtime/store"
)

// call is one on the chain of l, or on another one.
func (w *world) call(d *worker, chain []store.Bucket, cost []int64) *store.Call {
	def := d.session.(*session).resources[0].def
	return &store.Call{Parts: []store.Part{{Def: def, Buckets: slices.Clone(chain), Cost: cost}}}
}

// begin has a process begin a call, or a lease take more: more is nil for a call.
func (w *world) begin(d *worker, chain []store.Bucket, cost []int64, more *lease) string {
	call, fault := w.call(d, chain, cost), w.fault
	part := &call.Parts[0]
	w.executed = func() {
		w.opened(chain, nil, nil)
		for _, b := range chain {
			if fault != none {
				w.taken(b.Entity, cost)
			}
		}
	}
	err := d.session.Acquire(w.t.Context(), call)
	if isA[*store.DeniedError](err) {
		return w.justified(part)
	}
	if isA[*store.UnavailableError](err) && fault != none {
		return ""
	}
	if err != nil {
		return err.Error()
	}
	if w.broken.ownEpochs {
		for i := range part.Buckets {
			for j, epoch := range part.Buckets[i].Epochs {
				if epoch > 0 {
					part.Buckets[i].Epochs[j] = bucket.Epoch(t0+w.now+d.off) + 1
				}
			}
		}
	}
	if wrong := w.addsUp(part, fault == failOver); wrong != "" {
		return wrong
	}
	part.NoteCharges()
	if more == nil {
		more = &lease{of: d, chain: part.Buckets, cost: cost, running: true, until: math.MaxInt64,
			excepted: map[string]bool{}}
		w.leases = append(w.leases, more)
	} else {
		more.cost = slices.Clone(more.cost)
		for i, c := range cost {
			more.cost[i] += c
		}
		for i, b := range part.Buckets {
			more.chain[i].Charges = append(slices.Clone(more.chain[i].Charges), b.Charges...)
		}
	}
	if fault == failOver {
		for _, b := range part.Buckets {
			w.note(w.lost, b.Entity, cost, b.Epochs)
		}
	}
	return ""
}

// justified returns why a denial is wrong.
func (w *world) justified(part *store.Part) string {
	for _, b := range part.Buckets {
		for i, c := range part.Cost {
			stored := w.stored(key{b.Entity, i})
			stored.Tokens += b.Limits[i].Burst - stored.Burst
			stored.Limit = b.Limits[i]
			if c > bucket.Available(stored, 0, w.serverNow()) {
				return ""
			}
		}
	}
	return "denied, though there is room"
}

// addsUp returns where what is left, used and held of a bucket is not its capacity after an acquire.
func (w *world) addsUp(part *store.Part, lost bool) string {
	for _, b := range part.Buckets {
		for i, now := range b.After.Balances {
			sum := now.Tokens + now.Cells[0] + now.Cells[1]
			if u := w.used[key{b.Entity, i}]; now.Windowed() {
				if lost || u.end != now.Ends || u.end <= w.serverNow() {
					continue
				}
				sum += u.used
			}
			if sum != now.Burst || part.Cost[i] > 0 && now.Tokens < 0 {
				return fmt.Sprintf("%+v of %s does not add up", now, b.Entity)
			}
		}
	}
	return ""
}

// opened follows the windows of a chain after a command, and what a settle uses of them.
func (w *world) opened(chain []store.Bucket, cost []int64, actual []int64) {
	for _, b := range chain {
		k := key{b.Entity, 0}
		u, left := w.used[k], int64(0)
		if cost != nil {
			left = max(0, cost[0]-actual[0])
		}
		for _, c := range slices.Backward(b.Charges) {
			part := min(left, c.Cost[0])
			if left -= part; cost != nil && c.Ends[0] == u.end && u.end > w.serverNow() {
				u.used += c.Cost[0] - part
			}
		}
		if ends := w.stored(k).Ends; ends != u.end {
			u = usage{end: ends}
		}
		if cost != nil {
			u.used += max(0, actual[0]-cost[0])
		}
		w.used[k] = u
	}
}

// end has a lease settle to so much of its window.
func (w *world) end(l *lease, actual int64, released bool) string {
	w.leases = slices.DeleteFunc(w.leases, func(o *lease) bool { return o == l })
	call, fault := w.call(l.of, l.chain, l.cost), w.fault
	part := &call.Parts[0]
	part.Actual = []int64{actual, l.cost[1]}
	if released {
		part.Actual = []int64{0, 0}
	}
	w.executed = func() { w.opened(l.chain, l.cost, part.Actual) }
	if fault != none {
		w.leave(l.chain)
	}
	if err := l.of.session.Settle(w.t.Context(), call); err != nil && fault == none {
		return err.Error()
	}
	w.executed = nil // nothing was to be written
	return ""
}

// oldest returns the sum of what a process holds of a bucket, of each limit in the epoch that ends first.
func (w *world) oldest(d *worker, entity string) (held bucket.Charge) {
	held = bucket.Charge{Cost: make([]int64, 2), Ends: make([]int64, 2), Epochs: make([]int64, 2)}
	for _, l := range w.leases {
		for _, c := range l.chargesOf(entity) {
			for i, epoch := range c.Epochs {
				if l.of != d || !l.running || c.Cost[i] == 0 || epoch <= 0 {
					continue
				}
				if held.Epochs[i] == 0 || epoch < held.Epochs[i] {
					held.Cost[i], held.Ends[i], held.Epochs[i] = 0, c.Ends[i], epoch
				}
				if epoch == held.Epochs[i] && c.Ends[i] == held.Ends[i] {
					held.Cost[i] += c.Cost[i]
				}
			}
		}
	}
	return held
}

// extend has a process extend what it holds of a bucket.
func (w *world) extend(d *worker, entity string) string {
	held := w.oldest(d, entity)
	if !held.Holds() {
		return ""
	}
	chain := []store.Bucket{{Entity: entity, Kind: entities[entity], Charges: []bucket.Charge{held}}}
	call, fault := w.call(d, chain, make([]int64, 2)), w.fault
	if fault != none {
		w.leave(chain)
	}
	w.executed = func() {
		if fault != none {
			w.taken(entity, held.Cost)
		}
	}
	err := d.session.Extend(w.t.Context(), call)
	until := call.Parts[0].Buckets[0].Epochs
	switch {
	case err != nil && fault == none:
		return err.Error()
	case err != nil:
		until = []int64{bucket.Lost, bucket.Lost}
	case fault == failOver:
		w.note(w.lost, entity, held.Cost, until)
	}
	for _, l := range w.leases {
		if l.of == d && l.running {
			l.extended(entity, held, until, err != nil)
		}
	}
	return ""
}

// extended notes in l until when its holds are extended.
func (l *lease) extended(entity string, held bucket.Charge, until []int64, doubt bool) {
	for j := range l.chain {
		b := &l.chain[j]
		if b.Entity != entity {
			continue
		}
		b.Charges = slices.Clone(b.Charges)
		for at := range b.Charges {
			c := &b.Charges[at]
			c.Epochs = slices.Clone(c.Epochs)
			for i, epoch := range c.Epochs {
				if epoch <= 0 || c.Cost[i] == 0 || epoch != held.Epochs[i] || c.Ends[i] != held.Ends[i] {
					continue
				}
				switch c.Epochs[i] = until[i]; {
				case until[i] == bucket.Lost && doubt:
					l.until = min(l.until, bucket.EpochEnd(epoch))
				case until[i] == bucket.Lost:
					l.running = false
				}
			}
		}
	}
}

// reset has an operator reset a bucket. Calls that run beside it do not count.
func (w *world) reset(entity string) string {
	if at, ok := w.resets[entity]; ok && w.now-at < 4*minute {
		return ""
	}
	w.resets[entity] = w.now
	spec, kind := history().spec, entities[entity]
	if w.broken.reset != "" {
		script := strings.Replace(fill.ResetHoldsScript, "+ 2) + 2", w.broken.reset, 1)
		for _, limit := range spec.Limits {
			at := database.Keys{Prefix: w.s.prefix}.Bucket(spec.Resource, limit, "", entity)
			if err := redis.NewScript(script).Run(w.t.Context(), w.raw, []string{at}).Err(); err != nil {
				return err.Error()
			}
		}
	} else if err := w.processes[0].session.Overrides().Fill(w.t.Context(), spec, kind, entity, ""); err != nil {
		return err.Error()
	}
	for _, l := range w.leases {
		l.excepted[entity] = true
	}
	k := key{entity, 0}
	w.used[k] = usage{end: w.stored(k).Ends}
	return ""
}

// override changes the capacity of a bucket's slots.
func (w *world) override(entity string, capacity int64) string {
	limit := bucket.InFlight(capacity)
	to := store.Stored{At: entity, Limits: []*bucket.Limit{nil, &limit}, Revision: w.versions[entity]}
	next, err := w.processes[0].session.Overrides().Set(w.t.Context(), history().spec, to)
	if err != nil {
		return err.Error()
	}
	k := key{entity, 1}
	w.versions[entity], w.capacity[k] = next, max(w.capacity[k], limit.Burst)
	return ""
}

// deliver has the oldest late command arrive.
func (w *world) deliver() string {
	if len(w.late) == 0 {
		return ""
	}
	next := w.late[0]
	w.late = w.late[1:]
	if err := w.raw.Process(w.t.Context(), next); err != nil {
		return err.Error()
	}
	next.executed()
	return ""
}

// step draws what happens next, and returns what is wrong with it.
func (w *world) step(t *rapid.T) string {
	pick := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(t, what) }
	d := w.processes[pick(len(w.processes), "process")]
	entity := slices.Sorted(maps.Keys(entities))[pick(len(entities), "entity")]
	var l *lease
	if len(w.leases) > 0 {
		l = w.leases[pick(len(w.leases), "lease")]
	}
	cost := func() []int64 {
		return []int64{token * int64(pick(8, "usd")), token * int64(pick(3, "slots"))}
	}
	w.doing = rapid.SampledFrom([]string{"an acquire", "an acquire", "an acquire", "a settle", "a settle",
		"an extension", "an extension", "a while", "a while", "a boundary", "more", "a kill", "a reset",
		"an override", "a fault", "a fault", "a late request"}).Draw(t, "step")
	switch w.doing {
	case "an acquire":
		return w.begin(d, chains[pick(len(chains), "chain")], cost(), nil)
	case "more":
		if l != nil && l.running {
			return w.begin(l.of, bare(l.chain), cost(), l)
		}
	case "a settle":
		if l != nil {
			return w.end(l, token*int64(pick(10, "actual")), rapid.Bool().Draw(t, "released"))
		}
	case "an extension":
		return w.extend(d, entity)
	case "a while":
		w.pass(int64(pick(30_000, "ms")))
	case "a boundary":
		off := rapid.SampledFrom([]int64{-700, -300, -50, 0, 50, 300, 700}).Draw(t, "off")
		w.pass(max(0, w.now/minute*minute+minute+off-w.now))
	case "a kill":
		w.restart(pick(len(w.processes), "killed"))
	case "a reset":
		return w.reset(entity)
	case "an override":
		return w.override(entity, int64(2+pick(7, "capacity")))
	case "a late request":
		return w.deliver()
	case "a fault":
		if w.fault = fault(1 + pick(int(failOver), "fault")); w.fault == failOver {
			w.ahead = rapid.Int64Range(-500, 500).Draw(t, "clock")
			w.setClocks()
		}
	}
	return ""
}

// bare returns a chain without what its calls did.
func bare(chain []store.Bucket) (buckets []store.Bucket) {
	for _, b := range chain {
		buckets = append(buckets, store.Bucket{Entity: b.Entity, Kind: b.Kind})
	}
	return buckets
}

// histories draws what happens in a world, and returns the first thing that is wrong, "" if nothing is.
func (s *server) histories(t testing.TB, b broken) *rapid.Generator[string] {
	t.Helper()
	c := connect(t, s)
	return rapid.Custom(func(rt *rapid.T) string {
		w := newWorld(t, s, c, b)
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			wrong := w.step(rt)
			if wrong == "" {
				wrong = w.wrong()
			} else {
				wrong = fmt.Sprintf("%s at %d: %s", w.doing, w.now, wrong)
			}
			if wrong != "" {
				return wrong
			}
		}
		return w.over()
	})
}

// over kills all processes, and returns what is held when all is to be back.
func (w *world) over() string {
	for i := range w.processes {
		w.restart(i)
	}
	died, clock := w.now, int64(1000)
	for _, entity := range slices.Sorted(maps.Keys(entities)) {
		back := died + 2*minute + clock
		if at, ok := w.resets[entity]; ok {
			back = max(back, at+4*minute+clock)
		}
		if w.now < back {
			w.pass(back - w.now)
		}
		for i := range 2 {
			if b := w.stored(key{entity, i}); b.Held(w.serverNow()) != 0 {
				return fmt.Sprintf("%d are held of %s %d ms after the last death", b.Cells, entity, w.now-died)
			}
		}
	}
	return ""
}

// TestHoldsHistory: whatever happens, what is left, used and held is the capacity. No more calls run than
// that, but for those that were told to stop. All that the dead hold comes back.
func TestHoldsHistory(t *testing.T) {
	s := simulated(t)
	histories := s.histories(t, broken{})
	rapid.Check(t, func(rt *rapid.T) {
		if wrong := histories.Draw(rt, "history"); wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// TestHoldsHistorySpoilt is the control of TestHoldsHistory: it finds each of these, for its own reason.
func TestHoldsHistorySpoilt(t *testing.T) {
	longform.Control(t)
	for name, test := range map[string]struct {
		broken
		want string
	}{
		"sweep by the caller's clock": {broken{sweepsByOwn: true}, `those that run are counted`},
		"return whatever the epoch": {broken{part: "of >= low[k] and of <= low[k] + 1", instead: "of > 0"},
			`^after a settle .* those that run are counted`},
		"return of what was lost": {broken{part: "math.max(0, h[k][of % 2] - held)",
			instead: "h[k][of % 2] - held"}, `held are \[(\d+ )?-`},
		"epoch that is not replied": {broken{ownEpochs: true},
			`^after (an acquire|more) .* those that run are counted`},
		"ring at once after a reset": {broken{reset: "+ 1)"},
			`^after (a settle|a late request|an extension) .*those that run`},
		"life before the holds' end": {broken{part: "(low[k] + 2) * 60000", instead: "low[k] * 60000"},
			`^after (a while|a boundary) .* those that run are counted`},
		"hold that is never swept": {broken{part: "if e + (e + i) % 2 < low[k] then", instead: "if false then"},
			`denied, though there is room`},
		"extension that takes nothing out": {broken{part: "  release(k, of, held)\n  h[k]", instead: "  h[k]"},
			`^after an extension .* are counted in epoch \d+, but`},
	} {
		t.Run(name, func(t *testing.T) {
			histories, reason := simulated(t).histories(t, test.broken), regexp.MustCompile(test.want)
			var others []string
			for seed := range 400 {
				wrong := histories.Example(seed)
				if reason.MatchString(wrong) {
					t.Log(seed, wrong)
					return
				}
				if wrong != "" {
					others = append(others, wrong)
				}
			}
			t.Errorf("not found, but others: %q", others)
		})
	}
}
