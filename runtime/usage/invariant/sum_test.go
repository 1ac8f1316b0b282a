package invariant_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/usage"
)

// storm is a history of callers and readers at once.
type storm struct {
	calls  int  // of each caller in each phase
	lossy  bool // callers lose requests and replies too
	lambda bool // it reads the stream, and calls a function, in place of pollers
	broken
}

const (
	stormPhases  = 5
	stormCallers = 8
)

// TestSumOfWindows: hours, days, the table's stream, the buckets (expired ones too) and the callers' leases
// add up to the same consumption. Meanwhile limits change, leases are settled late, shards split, and readers
// are killed, start again, run beside each other and lose requests and replies.
func TestSumOfWindows(t *testing.T) {
	seeds, calls := longform.Count[uint64](t, "storms", 9, 3), longform.Count(t, "calls of each caller", 25, 10)
	switch {
	case dynamotest.OnLocal(t): // the more its stream has, the slower it writes
		seeds, calls = 3, 10
	case testing.Short():
		calls = 15
	}
	seen := map[string]int{}
	for seed := range seeds {
		s := storm{calls: calls, lossy: seed%2 == 1, lambda: seed%3 == 2}
		got, of := s.run(t, seed)
		for what, n := range of {
			seen[what] += n
		}
		if got.wrong != "" {
			t.Errorf("seed %d: %s", seed, got.wrong)
		}
	}
	t.Log(tell(seen))
	for _, what := range []string{
		"granted", "denied", "settled up", "settled down", "released", "reshapes", "coalesced", "expired", "late",
		"released to nothing", "settled to nothing", "kills", "redelivered", "reported", "answers lost", "splits",
	} {
		if seen[what] == 0 && (what != "splits" || !dynamotest.OnLocal(t)) {
			t.Errorf("%s: none: the storm is too weak", what)
		}
	}
}

// TestSumOfWindowsControls: a reader that counts twice, or not at all, or that counts what was not consumed,
// is noticed.
func TestSumOfWindowsControls(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	if !dynamotest.OnLocal(t) {
		longform.Only(t, "controls of package poll lose records, or count them twice, too")
	}
	const first, last = 100, 104
	calls, all := 6, controls()
	if dynamotest.OnLocal(t) {
		calls = 3
		maps.DeleteFunc(all, func(_ string, b broken) bool { return !b.onLocal })
	}
	for name, control := range all {
		var got outcome
		for seed := uint64(first); seed <= last && got.wrong == ""; seed++ {
			got, _ = storm{calls: calls, broken: control, lambda: control.goesOn}.run(t, seed)
		}
		if got.fault != control.want {
			t.Errorf("%s: the windows say that %s, want %s\n%s", name, got.fault, control.want, got.wrong)
		}
	}
	for _, lambda := range []bool{false, true} {
		if got, _ := (storm{calls: calls, lambda: lambda}).run(t, first); got.wrong != "" {
			t.Errorf("a reader that does nothing wrong is said to: %s", got.wrong)
		}
	}
}

// run plays a storm and says how the sums differ, and what was met.
func (s storm) run(t *testing.T, seed uint64) (got outcome, seen map[string]int) {
	t.Helper()
	b := &books{kept: sums{}, seen: map[string]int{}}
	inWorld(t, seed, func(t testing.TB, w *world) {
		t.Helper()
		s.play(t, w, b, rand.New(rand.NewPCG(seed, 1)))
		got = w.judge(t, b, s.lossy || b.seen["calls unanswered"] > 0)
		b.seen["expired"] = w.left
	})
	return got, b.seen
}

// play has phases of callers and readers at once; between them time passes.
func (s storm) play(t testing.TB, w *world, b *books, dice *rand.Rand) {
	t.Helper()
	if w.engine != nil {
		w.engine.Faults().Latency(memdynamo.Uniform(0, 10*time.Millisecond))
		w.engine.Faults().HoldTransactions(2 * time.Millisecond)
	}
	processes := s.processes(t, w, b, dice)
	operator := &caller{world: w, books: b, limiter: processes[0], dice: rand.New(rand.NewPCG(dice.Uint64(), 1)),
		lossy: s.mayFail(w)}
	// by the second, buckets would expire within a phase
	minutely := limits.EmbeddingsLimits{RPS: &runtime.Rate{Capacity: 60, Every: time.Minute}}
	if _, err := processes[0].Config.Embeddings.Kind(limits.Project{}).Set(t.Context(), minutely,
		""); err != nil {
		t.Fatal(err)
	}
	mapping := w.mapping(b, dice, s.broken)
	var open []*ticket
	for phase := range stormPhases {
		if phase > 0 {
			w.pass(t, []time.Duration{30 * time.Second, 150 * time.Second, 25 * time.Minute,
				25 * time.Minute}[dice.IntN(4)])
		}
		reading, stop := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		if s.lambda {
			readers.Go(func() { mapping.run(reading, t) })
		}
		for range 1 + dice.IntN(2) {
			if own := rand.New(rand.NewPCG(dice.Uint64(), 1)); !s.lambda {
				readers.Go(func() { w.read(reading, t, b, own, s.broken) })
			}
		}
		for _, l := range open {
			b.meet("late")
			operator.late(t, l)
			s.flush(t, w, processes)
		}
		open = s.call(t, w, b, dice, processes, operator, phase)
		s.flush(t, w, processes)
		stop()
		readers.Wait()
	}
	if s.lambda {
		mapping.drain(t)
	} else {
		w.drain(t, b, dice, s.broken)
	}
}

// mayFail reports whether calls may fail: DynamoDB Local may take longer to reply than an attempt lasts.
func (s storm) mayFail(w *world) bool { return s.lossy || w.engine == nil }

// processes starts those that callers are in: the second is lazy.
func (s storm) processes(t testing.TB, w *world, b *books, dice *rand.Rand) (all []*limits.Limiter) {
	t.Helper()
	for i := range 3 {
		client := w.client
		if s.mayFail(w) {
			own := &line{
				seen: func(what string) { b.meet("calls " + what) },
				dice: rand.New(rand.NewPCG(dice.Uint64(), 1)), left: -1,
			}
			if s.lossy {
				own.lost = 0.02
			}
			client = w.over(own)
		}
		all = append(all, w.process(t, client, b, i == 1))
	}
	return all
}

// flush has processes write what is lazy.
func (s storm) flush(t testing.TB, w *world, processes []*limits.Limiter) {
	t.Helper()
	for _, l := range processes {
		if err := l.Close(t.Context()); err != nil && !s.mayFail(w) {
			t.Error(err)
		}
	}
}

// call has callers at work, limits changed and shards split, and returns the leases that stay open.
func (s storm) call(
	t testing.TB, w *world, b *books, dice *rand.Rand, processes []*limits.Limiter, operator *caller, phase int,
) (open []*ticket) {
	t.Helper()
	var mu sync.Mutex
	var calling sync.WaitGroup
	for i := range stormCallers {
		c := &caller{world: w, books: b, limiter: processes[i%len(processes)],
			dice: rand.New(rand.NewPCG(dice.Uint64(), 1)), lossy: s.mayFail(w)}
		calling.Go(func() {
			for n := range s.calls {
				if l := c.call(t); l != nil {
					mu.Lock()
					open = append(open, l)
					mu.Unlock()
				}
				if i == 0 && n == s.calls/2 && phase%2 == 0 && w.engine != nil {
					if err := w.engine.SplitShards(w.table); err != nil {
						t.Error(err)
					}
					b.meet("splits")
				}
			}
		})
	}
	calling.Go(func() {
		for range 8 {
			operator.operate(t)
		}
	})
	calling.Wait()
	return open
}

// outcome is how the sums of a storm differ.
type outcome struct {
	wrong string // in words; "" if they do not
	fault fault  // of the readers
}

// judge says how the sums differ.
func (w *world) judge(t testing.TB, b *books, lossy bool) outcome {
	t.Helper()
	consumed := w.expired
	for _, live := range w.buckets(t) {
		consumed = consumed.plus(live)
	}
	var entities []string
	for at := range consumed {
		if !slices.Contains(entities, at.entity) {
			entities = append(entities, at.entity)
		}
	}
	streamed, hours, days := w.streamed(t), w.windows(t, usage.Hour, entities), w.windows(t, usage.Day, entities)
	got := outcome{fault: streamed.fault(hours)}
	if got.fault == noFault { // an hour and its day are written one after the other: one of them may be wrong
		got.fault = streamed.by(24 * time.Hour).fault(days)
	}
	var wrong []string
	for _, c := range []struct {
		name      string
		want, got sums
	}{
		{"hours, by the stream", streamed.consumed, hours},
		{"days, by the stream", streamed.consumed.by(24 * time.Hour), days},
		{"ever, by the buckets", consumed, hours.tokens().by(0)},
		{"by callers, of buckets", b.kept.by(0), consumed},
		{"hours, by callers", b.kept, w.dated(hours.tokens())},
	} {
		if diff := c.want.diff(c.got); diff != "" && (!lossy || !strings.Contains(c.name, "callers")) {
			wrong = append(wrong, fmt.Sprintf("%s (-want +got):\n%s", c.name, diff))
		}
	}
	if got.wrong = strings.Join(wrong, "\n"); got.wrong != "" && got.fault == noFault {
		got.fault = notOfReaders
	}
	return got
}

// dated returns s as callers have it.
func (w *world) dated(s sums) sums {
	if w.engine == nil {
		return s.by(0)
	}
	return s
}

func tell(seen map[string]int) string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		all = append(all, fmt.Sprintf("%s %d", what, seen[what]))
	}
	return strings.Join(all, ", ")
}
