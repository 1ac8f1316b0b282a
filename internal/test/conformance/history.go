package conformance

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// history is what three users of two projects, and the projects, did.
type history struct {
	schema
	scale int64 // of bursts, refills and costs
	steps []step
}

// deed is what a step does.
type deed uint8

const (
	takes   deed = iota // acquires, by one of two processes where that makes no difference
	both                // acquires for a user and a project, all or none
	adds                // to one of the leases that are open
	settles             // one of them
	releases
	looks  // peeks
	passes // time
	waits  // a millisecond less than the last denial said
	disturbs
)

// deeds are drawn from these.
var deeds = []deed{takes, takes, takes, takes, both, adds, settles, settles, releases, looks, passes, passes,
	waits, waits, disturbs}

// step is one of a history. Its numbers mean what its deed makes of them.
type step struct {
	deed     deed
	who      int   // of entities; or which of the leases, counted around
	rpm, tpm int64 // takes, adds, settles
	ms       int64 // passes
	shadow   bool  // takes, both: in shadow
	insists  bool  // takes: waits for as long as a denial says, and asks again
}

// drawHistory draws one whose limits yield whole millitokens in a millisecond, or not.
func drawHistory(whole bool) func(*rapid.T) *history {
	return func(t *rapid.T) *history {
		// Up to millions of tokens a float holds 10^-9 of one; to billions, thousandths, which is what odd rates
		// ask for.
		scales := []int64{1, 1, 1, 1000, 100_000}
		if !whole {
			scales = append(scales, 100_000_000)
		}
		h := &history{scale: rapid.SampledFrom(scales).Draw(t, "scale")}
		h.cascade = rapid.SampledFrom([]store.Cascade{
			store.CascadeAtomic, store.CascadeAtomic, store.CascadeCompensated, store.CascadeNone,
		}).Draw(t, "cascade")
		limit := func(what string) bucket.Limit {
			l := bucket.Limit{Burst: rapid.Int64Range(5, 40).Draw(t, what+" burst") * bucket.Milli * h.scale}
			l.Capacity = l.Burst
			if whole {
				l.Period = rapid.SampledFrom([]int64{1, 7, 1000}).Draw(t, what+" period")
				l.Refill = h.scale * l.Period * rapid.SampledFrom([]int64{1, 1, 2, 20, 333, 5000}).Draw(t, what+" per ms")
				return l
			}
			l.Period = rapid.SampledFrom([]int64{7, 1000, 11_000, 60_000, 86_400_000}).Draw(t, what+" period")
			l.Refill = rapid.SampledFrom([]int64{1, 7, 100, 1000}).Draw(t, what+" refill") * bucket.Milli * h.scale
			return l
		}
		h.user = []bucket.Limit{limit("user rpm"), limit("user tpm")}
		h.project = []bucket.Limit{limit("project rpm"), limit("project tpm")}
		h.steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			s := step{deed: rapid.SampledFrom(deeds).Draw(t, "deed"), who: rapid.IntRange(0, 5).Draw(t, "who")}
			switch s.deed {
			case takes, both, adds, settles:
				s.insists = rapid.IntRange(0, 3).Draw(t, "insists") == 0
				s.shadow = rapid.Bool().Draw(t, "shadow")
				s.rpm, s.tpm = rapid.Int64Range(0, 7).Draw(t, "rpm"), rapid.Int64Range(0, 8).Draw(t, "tpm")
			case passes:
				s.ms = rapid.SampledFrom([]int64{1, 1, 3, 3, 49, 50, 400, 400, 1000, 7777, 60_000, 1_000_000_000}).Draw(t,
					"ms")
			}
			return s
		}), 10, 80).Draw(t, "steps")
		return h
	}
}

// drawWindows draws one whose tpm has windows.
func drawWindows(t *rapid.T) *history {
	h := drawHistory(true)(t)
	some := []*bucket.Calendar{
		calendar(bucket.Day, berlin, 1, 30*time.Minute), calendar(bucket.Week, newYork, 1, 0),
		calendar(bucket.Month, tokyo, 31, 4*time.Hour), firstUse(time.Second), firstUse(5 * time.Hour),
	}
	if h.cascade == store.CascadeCompensated { // which may open windows by first use for calls that are refused
		some = some[:3]
	}
	h.schema = h.inWindows(rapid.SampledFrom(some).Draw(t, "user"), rapid.SampledFrom(some).Draw(t, "project"))
	return h
}

// histories are how they are drawn, by what their limits are.
var histories = []struct {
	name string
	draw func(*rapid.T) *history
}{{"whole rates", drawHistory(true)}, {"odd rates", drawHistory(false)}, {"windows", drawWindows}}

// tally is how often something became of a step.
type tally map[string]int

// note counts how an acquire ended.
func (t tally) note(err error) {
	_, denied := errors.AsType[*store.DeniedError](err)
	switch {
	case err == nil:
		t["admitted"]++
	case denied:
		t["denied"]++
	default:
		t["exceeding"]++
	}
}

// play plays h in w, whose entities nobody has used, and counts what becomes of it. n makes their names.
func (h *history) play(w *world, n int, counts tally) {
	w.Helper()
	named := func(s string) string { return fmt.Sprint(s, n) }
	one, two := limits.Project{ID: named("one-")}, limits.Project{ID: named("two-")}
	entities := []limits.GPT4Entity{
		limits.User{ID: named("a-"), Project: one}, limits.User{ID: named("b-"), Project: one},
		limits.User{ID: named("c-"), Project: two},
		limits.User{ID: named("a-"), Project: one}, one, two,
	}
	processes := []*limits.Limiter{w.Limiter, w.process()}
	if w.store.Remembers {
		processes[1] = w.Limiter
	}
	g := &game{world: w, history: h, counts: counts, entities: entities}
	for i, s := range h.steps {
		w.shadow = s.shadow
		switch s.deed {
		case takes:
			g.take(processes[i%2], s)
		case both:
			g.takeBoth(s, two)
		case adds:
			g.add(s)
		case settles, releases:
			g.end(s)
		case looks:
			w.peek(entities[s.who])
		case passes:
			w.store.Advance(time.Duration(s.ms) * time.Millisecond)
		case waits:
			w.store.Advance(max(0, g.wait-time.Millisecond))
			g.wait = 0
		case disturbs:
			if w.store.Disturb != nil {
				w.store.Disturb()
			}
		}
	}
	for _, who := range entities {
		w.peek(who)
	}
}

// game is a history at play.
type game struct {
	*world
	history  *history
	counts   tally
	entities []limits.GPT4Entity
	open     []*held       // leases not yet ended
	wait     time.Duration // RetryAfter of the last denial
}

// take acquires what s takes. If s insists, it acquires again after a denial's wait, and must succeed.
func (g *game) take(process *limits.Limiter, s step) {
	g.Helper()
	who, cost := g.entities[s.who], g.history.cost(s)
	lease, err := g.acquireIn(process, who, cost)
	g.counts.note(err)
	if denied, ok := errors.AsType[*store.DeniedError](err); ok {
		if g.wait = denied.RetryAfter; s.insists {
			g.store.Advance(g.wait)
			if lease, err = g.acquireIn(process, who, cost); err != nil {
				g.Fatalf("after the wait of %v that the denial asked for: %v", g.wait, err)
			}
			g.counts["waited"]++
		}
	}
	if lease != nil {
		g.open = append(g.open, lease)
	}
	if lease != nil && err != nil { // what becomes of it changes nothing
		g.counts["shadowed"]++
	}
}

// takeBoth acquires what s takes of two entities at once: a user's and other, or those of one root if the
// store wants that.
func (g *game) takeBoth(s step, other limits.GPT4Entity) {
	g.Helper()
	who := g.entities[s.who%4].(limits.User)
	switch {
	case !g.store.Rooted:
	case g.history.cascade == store.CascadeNone: // each is a root
		other = who
	default:
		other = who.Project
	}
	g.counts.note(g.all(g.history.cost(s), 0, who, other))
}

// add has an open lease take more, if there is one that can.
func (g *game) add(s step) {
	g.Helper()
	more := g.history.cost(s)
	if len(g.open) == 0 || more == cost(0, 0) {
		return
	}
	lease := g.open[s.who%len(g.open)]
	if lease.shadow { // what becomes of it, only an observer is told
		return
	}
	if g.more(lease, more) == nil {
		g.counts["added"]++
	} else {
		g.counts["not added"]++
	}
}

// end settles or releases an open lease, if there is one.
func (g *game) end(s step) {
	g.Helper()
	if len(g.open) == 0 {
		return
	}
	at := s.who % len(g.open)
	lease := g.open[at]
	g.open = append(g.open[:at:at], g.open[at+1:]...)
	if s.deed == releases {
		g.release(lease)
		g.counts["released"]++
		return
	}
	cost := g.history.cost(s)
	g.settle(lease, cost.RPM, cost.TPM)
	g.counts["settled"]++
}

// cost is what s takes.
func (h *history) cost(s step) limits.GPT4Cost { return cost(s.rpm*h.scale, s.tpm*h.scale) }

// runHistories plays random ones.
func runHistories(t *testing.T, store Store) {
	t.Helper()
	checks, few := flag.Lookup("rapid.checks"), false
	if given := checks.Value.String() != checks.DefValue; !given && !store.Server {
		some := longform.Histories(t, "histories of each kind", store.most(100, 24), 24)
		few = some < 100
		if err := checks.Value.Set(strconv.Itoa(some)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) })
	}
	n, counts := 0, tally{}
	for _, kind := range histories {
		t.Run(kind.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				h := kind.draw(t)
				n++
				h.play(newWorld(t, store, h.schema), n, counts)
			})
		})
	}
	t.Log(counts)
	all := []string{
		"admitted", "denied", "settled", "exceeding", "added", "not added", "released", "waited", "shadowed",
	}
	if few { // there may be none of others: the race detector plays eight short ones of each kind
		all = all[:1]
	}
	for _, what := range all {
		if counts[what] == 0 {
			t.Errorf("no call was %s: this is no test", what)
		}
	}
}
