package dynamo

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	windows "github.com/sluice-go/sluice/gen/testdata/golden/windows/out"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
)

// Histories of buckets with windows. They last for days, and the calls come around the instants at which
// windows end or buckets expire. The limits are those of the generated resource mail, under other calendars.
const (
	simWeekly    = iota // lasts for five hours from its first use
	simDaily            // by one of three tzdata
	simMonthly          // by a second calendar
	simQuarterly        // never asked
	simYearly           // lasts for half an hour from its first use
	simRPM              // refills
	simLimits
)

// simNames are the names of the limits.
var simNames = [simLimits]string{"weekly", "daily", "monthly", "quarterly", "yearly", "rpm"}

// mailResource returns the resource of these histories.
func mailResource(t testing.TB) codec.Resource {
	t.Helper()
	all, err := definitions.Of(windows.New)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(d store.Definition) bool { return d.Spec().Resource == windows.Mail })
	return all[at].(codec.Resource)
}

// allowances are the limits of a history: so many in each window, and a second of rpm.
func allowances(daily, other int64) []bucket.Limit {
	const hour = time.Hour
	return []bucket.Limit{
		simWeekly: bucket.InWindows(other, 5*hour), simDaily: bucket.InWindows(daily, 24*hour),
		simMonthly: bucket.InWindows(other, 24*hour), simQuarterly: bucket.InWindows(other, 24*hour),
		simYearly: bucket.InWindows(other, hour/2), simRPM: perSecond(80),
	}
}

// calendarsBy returns the calendars of a history: daily and the others of one day are as given.
func calendarsBy(daily, monthly *bucket.Calendar) []*bucket.Calendar {
	firstUse := func(d time.Duration) *bucket.Calendar {
		return &bucket.Calendar{Unit: bucket.FirstUse, Length: d.Milliseconds()}
	}
	return []*bucket.Calendar{
		simWeekly: firstUse(5 * time.Hour), simDaily: daily, simMonthly: monthly, simQuarterly: daily,
		simYearly: firstUse(30 * time.Minute), simRPM: nil,
	}
}

// zoneOf returns a zone that begins as UTC and has these transitions. Each has a day since the bubble began,
// an hour, and by how many hours the clock is ahead from then on.
func zoneOf(transitions ...[3]int) *time.Location {
	be := func(n int, bytes int) (b []byte) {
		for k := bytes - 1; k >= 0; k-- {
			b = append(b, byte(n>>(8*k)))
		}
		return b
	}
	const name = "SIM\x00"
	data := append([]byte("TZif"), make([]byte, 16)...)
	for _, n := range []int{0, 0, 0, len(transitions), 1 + len(transitions), len(name)} {
		data = append(data, be(n, 4)...)
	}
	for _, at := range transitions {
		data = append(data, be(simBegan+(at[0]*24+at[1])*3600, 4)...)
	}
	for k := range transitions {
		data = append(data, byte(k+1))
	}
	data = append(data, be(0, 6)...)
	for _, at := range transitions {
		data = append(append(data, be(at[2]*3600, 4)...), 0, 0)
	}
	zone, err := time.LoadLocationFromTZData("Sim/Greenwich", append(data, name...))
	if err != nil {
		panic(err)
	}
	return zone
}

// simBegan is when the time of a bubble begins: 2000-01-01 in UTC, in seconds.
const simBegan = 946684800

// threeZones are what three versions of tzdata say of one zone. By the second one, days start an hour earlier
// from the third day on. By the last one, the clock is set back by a day when the fourth day begins.
func threeZones() [3]*time.Location {
	return [...]*time.Location{time.UTC, zoneOf([3]int{1, 12, 1}), zoneOf([3]int{3, 0, -24})}
}

// threeTZData are the calendars of a process that has one of these versions.
func threeTZData() func(place, version int) []*bucket.Calendar {
	zones := threeZones()
	return func(place, _ int) []*bucket.Calendar {
		zone := zones[place%len(zones)]
		return calendarsBy(&bucket.Calendar{Unit: bucket.Day, Zone: zone},
			&bucket.Calendar{Unit: bucket.Day, At: 4 * time.Hour, Zone: zone})
	}
}

// opening gives defs, one for each version, the calendars of a process.
func (h *history) opening(defs []store.Definition, place int) []store.Definition {
	for version, def := range defs {
		if h.windows == nil {
			break
		}
		for k := range def.Spec().Kinds {
			def.Spec().Kinds[k].Windows = h.windows(place, version)
		}
	}
	return defs
}

// around calls so often around each of the instants of a day that hours name, from a tenth of a second
// before, on those of the days that on reports.
func around(calls int, on func(day int) bool, hours ...float64) func(*rand.Rand) time.Duration {
	const before, day = 150 * time.Millisecond, 24 * time.Hour
	return func(r *rand.Rand) time.Duration {
		if r.IntN(calls) > 0 {
			return time.Duration(r.Int64N(int64(80 * time.Millisecond)))
		}
		since := time.Since(time.Unix(simBegan, 0))
		for at := since.Truncate(day); ; at += day {
			for _, hour := range hours {
				next := at + time.Duration(hour*float64(time.Hour)) - before
				if next > since+time.Second && on(int(at/day)) {
					return next - since + time.Duration(r.Int64N(int64(2*before)))
				}
			}
		}
	}
}

// allowanceCosts cost something of daily mostly, and of the others now and then.
func allowanceCosts(r *rand.Rand) []int64 {
	cost := make([]int64, simLimits)
	cost[simRPM] = 1000 * r.Int64N(3)
	for _, limit := range []int{simDaily, simWeekly, simMonthly, simYearly} {
		if r.IntN(10) < [...]int{simWeekly: 5, simDaily: 7, simMonthly: 3, simYearly: 3}[limit] {
			cost[limit] = 1000 * (1 + r.Int64N(6))
		}
	}
	if slices.Max(cost) == 0 {
		cost[simDaily] = 1000
	}
	return cost
}

// lateLease is one that is settled at a later call, and may take more before.
type lateLease struct {
	def  store.Definition
	call *store.Call
	cost []int64
}

// resume goes on with some of the leases that were left open.
func (w *writer) resume(ctx context.Context) {
	if len(w.open) == 0 || w.rng.IntN(3) > 0 {
		return
	}
	at := w.rng.IntN(len(w.open))
	l := w.open[at]
	w.open = slices.Delete(w.open, at, at+1)
	if w.history.more > 0 && w.rng.Float64() < w.history.more && !w.takeMore(ctx, l) {
		w.open = append(w.open, l)
		return
	}
	w.end(ctx, l.def, l.call, l.cost)
}

// takeMore has l take more, as Lease.More does. It reports whether that was admitted.
func (w *writer) takeMore(ctx context.Context, l *lateLease) bool {
	cost := w.pick(l.def, w.cost(w.rng))
	var chain []store.Bucket
	for _, b := range l.call.Parts[0].Buckets {
		chain = append(chain, store.Bucket{Entity: b.Entity, Kind: b.Kind})
	}
	began := time.Now()
	call, err := w.acquireOf(ctx, l.def, cost, chain)
	w.count(err, denial{
		began: began, ended: time.Now(), by: w.process, cost: w.spread(l.def.Spec(), cost), chain: chain,
	})
	if err != nil {
		return false
	}
	w.process.mu.Lock()
	defer w.process.mu.Unlock()
	w.leases[call] = append(w.leases[l.call], w.leases[call]...)
	delete(w.leases, l.call)
	held, more := &l.call.Parts[0], &call.Parts[0]
	for i := range more.Buckets {
		b := &more.Buckets[i]
		b.Charges = append(chargesOf(held, &held.Buckets[i]), chargesOf(more, b)...)
	}
	sum := slices.Clone(l.cost)
	for i, n := range cost {
		sum[i] += n
	}
	more.Cost, l.call, l.cost = sum, call, sum
	return true
}

// chargesOf returns what an acquire, or a lease, took of a bucket of part.
func chargesOf(part *store.Part, b *store.Bucket) []bucket.Charge {
	if b.Charges != nil || b.Ends == nil {
		return b.Charges
	}
	return []bucket.Charge{{Cost: part.Cost, Ends: b.Ends}}
}

// filled are the limits that an operator fills.
var filled = []string{"daily", "weekly", "yearly"}

// filler is an operator who fills windows, as sluice reset does.
type filler struct {
	*history
	table *simTable
	turn  time.Duration
	rng   *rand.Rand
}

func (f *filler) run(ctx context.Context) {
	var api wire.API = f.table
	if f.resets != nil {
		api = f.resets(api)
	}
	ctx = tagged(ctx, tag{turn: f.turn, reset: true})
	for began := time.Now(); ; {
		<-time.After(until(upTo(2*f.history.reset)(f.rng), f.turn))
		if time.Since(began) > f.duration {
			return
		}
		chain := f.chain(f.rng.IntN(max(1, f.children)))
		entity := chain[f.rng.IntN(len(chain))].Entity
		_, _ = operator.Reset(ctx, api, "sim", entity, windows.Mail, filled...)
	}
}

// lowered returns what of v is below 0.
func lowered(v []int64) []int64 {
	below := slices.Clone(v)
	for i := range below {
		below[i] = min(below[i], 0)
	}
	return below
}

// largerOf returns the larger of a and b, by limit.
func largerOf(a, b []int64) []int64 {
	most := slices.Clone(a)
	for i := range most {
		most[i] = max(most[i], b[i])
	}
	return most
}

// allowanceHistories are histories of buckets with windows, by name.
func allowanceHistories() map[string]history {
	every := func(int) bool { return true }
	base := history{
		writers: 12, duration: 4*24*time.Hour + 2*time.Hour, skew: 100 * time.Millisecond,
		limits: [][]bucket.Limit{allowances(120, 60)}, windows: threeTZData(),
		think: around(4, every, 0, 0.5, 4, 5, 12, 23), cost: allowanceCosts, settle: 0.3, late: 0.3, more: 0.3,
	}
	change := func(f ...func(*history)) history {
		h := base
		for _, f := range f {
			f(&h)
		}
		return h
	}
	lossy := func(h *history) {
		h.faults = faults{lostRequest: 0.03, lostReply: 0.05, late: 0.04, throttled: 0.02, unread: 0.05}
		h.cancel = 0.1
	}
	conflicts := func(h *history) { h.faults.conflict = 0.03 }
	chain := func(h *history) { h.above, h.children, h.writers = []int64{2}, 3, 12 }
	crowd := func(h *history) { h.writers, h.callers, h.settle, h.lazy = 4, 3, 0.45, 0.6 }
	return map[string]history{
		"three tzdata":               base,
		"three tzdata, lost replies": change(lossy),
		"lazy settles":               change(crowd),
		"lazy settles, lost replies": change(crowd, lossy),
		"chains":                     change(chain, conflicts),
		"chains, lost replies":       change(chain, lossy, conflicts),
		"chains, lazy settles":       change(chain, crowd, lossy),
		"chains, compensated": change(chain, lossy, func(h *history) {
			h.cascade = store.CascadeCompensated
		}),
		"expiry": change(func(h *history) { // of buckets that nobody calls for a day, some of them half
			h.duration, h.ttlLag = 10*24*time.Hour, 3*time.Second
			h.think = around(3, func(day int) bool { return day%3 != 1 }, 0, 0.5, 12, 12.1, 13)
		}, lossy),
		"expiry, chains": change(func(h *history) {
			h.duration, h.ttlLag = 10*24*time.Hour, 3*time.Second
			h.think = around(3, func(day int) bool { return day%3 != 1 }, 0, 12, 12.1)
		}, chain, lossy),
		"reshape up and down": change(lossy, func(h *history) {
			h.limits = [][]bucket.Limit{
				allowances(120, 60), allowances(200, 20), allowances(40, 90), allowances(150, 60),
			}
			h.beside = 0.5
		}),
		"overrides": change(chain, func(h *history) { h.override, h.cache = 3*time.Hour, 10*time.Minute }),
		"resets":    change(lossy, func(h *history) { h.reset = 2 * time.Hour }),
		"zones and starts": change(lossy, func(h *history) {
			h.limits, h.beside = slices.Repeat(h.limits, 3), 0.6
			h.windows = func(_, version int) []*bucket.Calendar {
				zone := time.FixedZone("", [...]int{0, 9 * 3600, -7 * 3600}[version])
				at := [...]time.Duration{0, 6 * time.Hour, 0}[version]
				return calendarsBy(&bucket.Calendar{Unit: bucket.Day, Zone: zone, At: at},
					&bucket.Calendar{Unit: bucket.Day, Zone: zone})
			}
			h.think = around(3, every, 0, 4, 7, 12, 15, 21)
		}),
		"month to day": change(lossy, func(h *history) {
			long := allowances(120, 60)
			long[simMonthly].Period, long[simQuarterly].Period = 30*24*3600_000, 91*24*3600_000
			h.limits, h.beside = [][]bucket.Limit{long, allowances(120, 60)}, 0.3
			h.windows = func(place, version int) []*bucket.Calendar {
				all := threeTZData()(place, version)
				if version == 0 {
					all[simMonthly] = &bucket.Calendar{Unit: bucket.Month, Date: 1}
					all[simQuarterly] = &bucket.Calendar{Unit: bucket.Quarter, Date: 1}
				}
				return all
			}
		}),
		"generic texts": change(lossy, func(h *history) {
			h.choose = func(w *plan.Demand, v plan.State, now int64) plan.Plan {
				p := plan.Choose(w, v, now)
				p.Generic = p.Generic || p.Path != plan.Create && now%2 == 0
				return p
			}
		}),
	}
}

// TestThreeZones holds the boundaries of the three versions to what the oracle takes them for.
func TestThreeZones(t *testing.T) {
	t.Parallel()
	want := [3][]int64{{24, 48, 72, 96, 120}, {24, 47, 71, 95, 119}, {24, 48, 96, 120, 144}}
	for version, zone := range threeZones() {
		daily := bucket.Calendar{Unit: bucket.Day, Zone: zone}
		var hours []int64
		for _, at := range daily.Next(simBegan*1000, 5) {
			hours = append(hours, (at/1000-simBegan)/3600)
		}
		if !slices.Equal(hours, want[version]) {
			t.Errorf("by version %d days end %v hours after the beginning, want %v", version, hours, want[version])
		}
	}
}

// TestSimulationOfAllowances plays histories of windows: no token is forged or lost, no window is granted
// twice, and none is deleted while it is open.
func TestSimulationOfAllowances(t *testing.T) {
	skipOnLocal(t)
	t.Parallel()
	playOf(t, mailResource(t), allowanceHistories(), 20)
}
