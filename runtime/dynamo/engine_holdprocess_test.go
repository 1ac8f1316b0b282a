//go:build unix

package dynamo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/gen/testdata/golden/inflight/out"
	processes "github.com/sluice-go/sluice/internal/test/child"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// speed is how much faster than time the clocks of these processes are: a minute takes 12 seconds. An
// extension, which has to succeed within half a minute, has six seconds on a busy machine.
const speed = 5

// fastClock is a clock of some processes.
type fastClock struct{ began time.Time }

func (c fastClock) Now() time.Time                         { return c.began.Add(speed * time.Since(c.began)) }
func (c fastClock) After(d time.Duration) <-chan time.Time { return time.After(d / speed) }

// holderVariable makes the test binary a process of TestHoldProcesses: a holderJob.
const holderVariable = "SLUICE_TEST_HOLDER"

// holderJob is what a process is to do.
type holderJob struct {
	Endpoint, Table string
	Began           int64 // of the clock, ns
	Callers         int
}

// holderLine is a line of a process: one of its callers has a slot, works with it, or was told to stop.
type holderLine struct {
	What   string
	Caller int
	At     int64 // when the caller began to look whether it may go on, or knew it, ns
}

// TestHolder is no test: it is a process of TestHoldProcesses. Its callers wait for a slot, work until they
// are told to stop, and wait again.
func TestHolder(t *testing.T) {
	var job holderJob
	if text := os.Getenv(holderVariable); text == "" {
		t.Skip("it is a process of TestHoldProcesses")
	} else if err := json.Unmarshal([]byte(text), &job); err != nil {
		t.Fatal(err)
	}
	client := memdynamo.New().Client(func(o *dynamodb.Options) {
		o.BaseEndpoint, o.HTTPClient = &job.Endpoint, http.DefaultClient
	})
	lim, err := inflight.New(newStore(client, job.Table), runtime.WithClock(fastClock{time.Unix(0, job.Began)}),
		runtime.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	say := func(what string, caller int, at time.Time) {
		mu.Lock()
		defer mu.Unlock()
		line, _ := json.Marshal(holderLine{what, caller, at.UnixNano()})
		fmt.Printf("%s\n", line)
	}
	var callers sync.WaitGroup
	for n := range job.Callers {
		callers.Go(func() {
			for {
				if err := work(t.Context(), lim, n, say); err != nil {
					say(err.Error(), n, time.Now())
				}
			}
		})
	}
	callers.Wait() // until the process is killed
}

// work waits for a slot, and works until it is told to stop. It reads the time before it looks whether it may
// work: a process that is stopped between that look and its line does not work after it was stopped.
func work(ctx context.Context, lim *inflight.Limiter, n int, say func(string, int, time.Time)) error {
	lease, err := lim.Slots.Wait(ctx, inflight.User{ID: "1"}, inflight.SlotsCost{}, runtime.MaxWait(time.Hour))
	if err != nil {
		return err
	}
	defer lease.Keep(ctx)
	say("has", n, time.Now())
	own := lease.Context(ctx)
	step := time.NewTicker(50 * time.Millisecond)
	defer step.Stop()
	for {
		select {
		case <-own.Done():
			say("told", n, time.Now())
			return nil
		case <-step.C:
			if at := time.Now(); own.Err() == nil {
				say("works", n, at)
			}
		}
	}
}

// holderProcess is a process as its parent sees it.
type holderProcess struct {
	*processes.Process
	mu    sync.Mutex
	rest  []byte // of the output, without the end of a line
	lines []holderLine
	other []string // lines that are none of a caller's
}

// Write implements io.Writer, for what the process says.
func (p *holderProcess) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = append(p.rest, b...)
	for {
		line, rest, ok := bytes.Cut(p.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		p.rest = rest
		var s holderLine
		if err := json.Unmarshal(line, &s); err != nil || s.At == 0 {
			p.other = append(p.other, string(line))
			continue
		}
		p.lines = append(p.lines, s)
	}
}

// holding returns how many callers have a slot, by what they said last.
func (p *holderProcess) holding() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := map[int]string{}
	for _, s := range p.lines {
		last[s.Caller] = s.What
	}
	for _, what := range last {
		if what == "has" || what == "works" {
			n++
		}
	}
	return n
}

// since returns what callers said from at on: how often of each.
func (p *holderProcess) since(at time.Time) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]int{}
	for _, s := range p.lines {
		if s.At >= at.UnixNano() {
			all[s.What]++
		}
	}
	return all
}

// holders are the processes, and their table.
type holders struct {
	t     *testing.T
	job   holderJob
	clock fastClock
	all   []*holderProcess
}

func newHolders(t *testing.T) *holders {
	t.Helper()
	clock := fastClock{time.Unix(0, time.Now().UnixNano())}
	engine := memdynamo.New(memdynamo.WithClock(clock))
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	if _, err := operator.CreateTable(t.Context(), engine.Client(), "slots"); err != nil {
		t.Fatal(err)
	}
	job := holderJob{Endpoint: server.URL, Table: "slots", Began: clock.began.UnixNano()}
	return &holders{t: t, clock: clock, job: job}
}

// start starts a process with so many callers.
func (h *holders) start(callers int) *holderProcess {
	h.t.Helper()
	h.job.Callers = callers
	job, err := json.Marshal(h.job)
	if err != nil {
		h.t.Fatal(err)
	}
	p := &holderProcess{}
	cmd := exec.Command(os.Args[0], "-test.run=^TestHolder$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), holderVariable+"="+string(job))
	cmd.Stdout, cmd.Stderr = p, p
	if p.Process, err = processes.Start(cmd); err != nil {
		h.t.Fatal(err)
	}
	h.all = append(h.all, p)
	h.t.Cleanup(func() {
		if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			h.t.Error(err)
		}
		if h.t.Failed() {
			h.t.Log(strings.Join(p.other, "\n"))
		}
	})
	return p
}

// signal sends p a signal.
func (h *holders) signal(p *holderProcess, signal syscall.Signal) {
	h.t.Helper()
	if err := syscall.Kill(p.Pid(), signal); err != nil {
		h.t.Fatal(err)
	}
}

// await waits until done, and returns how many seconds that took by the clock.
func (h *holders) await(ctx context.Context, what string, done func() bool) (seconds float64) {
	h.t.Helper()
	began := h.clock.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			h.t.Fatalf("%v, and still waiting until %s", context.Cause(ctx), what)
		}
	}
	seconds = h.clock.Now().Sub(began).Seconds()
	h.t.Logf("%.0f s until %s", seconds, what)
	return seconds
}

// stop is when a process was stopped, and told to go on.
type stop struct {
	process  *holderProcess
	from, to time.Time
}

// believers returns the most callers that believed at any instant that they have a slot. A process that is
// stopped believes nothing. A caller of it goes on by its first line after that, which may be that it was
// told to stop. Of a process that was killed, nothing counts after killed.
func (h *holders) believers(s stop, killed *holderProcess, at time.Time) (most int) {
	type change struct {
		at   int64
		more int
	}
	var all []change
	for _, p := range h.all {
		has, after := map[int]bool{}, map[int]bool{}
		for _, line := range p.lines {
			n := line.Caller
			if p == s.process && line.At >= s.to.UnixNano() && !after[n] {
				if after[n] = true; has[n] {
					all = append(all, change{s.from.UnixNano(), -1})
					if has[n] = line.What == "works"; has[n] {
						all = append(all, change{line.At, 1})
					}
				}
			}
			switch {
			case line.What == "has":
				has[n] = true
				all = append(all, change{line.At, 1})
			case line.What == "told" && has[n]:
				has[n] = false
				all = append(all, change{line.At, -1})
			}
		}
		for n := range has {
			if has[n] && p == killed {
				all = append(all, change{at.UnixNano(), -1})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	now := 0
	for _, c := range all {
		now += c.more
		most = max(most, now)
	}
	return most
}

// TestHoldProcesses has two processes share five slots. One is stopped in the 45th second of a minute, with
// holds until the end of the next one: then the other has its slots. When the first goes on, its callers are
// told before they work on. Then the other is killed: the first has its slots back two minutes later. At no
// instant do more callers believe that they have a slot than there are.
func TestHoldProcesses(t *testing.T) {
	skipOnLocal(t)
	longform.NoRace(t, "what it tests is in other processes")
	longform.Only(t, "TestHoldKills has processes die, and TestSimulationOfHolds cuts them off")
	t.Parallel()
	h := newHolders(t)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 4*time.Minute, errors.New("four minutes have passed"))
	defer cancel()
	first := h.start(3)
	h.await(ctx, "the first process has three slots", func() bool { return first.holding() == 3 })
	second := h.start(5)
	h.await(ctx, "the second has the other two", func() bool { return second.holding() == 2 })
	began := h.clock.Now()
	h.await(ctx, "both have held them for two minutes, and extended them 15 s ago", func() bool {
		now := h.clock.Now()
		return now.Sub(began) > 2*time.Minute && now.Second()/5 == 45/5
	})
	if a, b := first.holding(), second.holding(); a != 3 || b != 2 {
		t.Fatalf("%d and %d slots, want 3 and 2", a, b)
	}

	stopped := stop{process: first, from: time.Now()}
	h.signal(first, syscall.SIGSTOP)
	took := h.await(ctx, "the second has all five", func() bool { return second.holding() == 5 })
	if took < 50 || took > 125 { // a minute more would be 130
		t.Errorf("slots of the stopped process came back after %.0f s, want 70 to 75, or a bit later", took)
	}
	began = h.clock.Now()
	h.await(ctx, "another ten seconds have passed", func() bool {
		return h.clock.Now().Sub(began) > 10*time.Second
	})
	stopped.to = time.Now()
	h.signal(first, syscall.SIGCONT)
	h.await(ctx, "the callers of the first were told", func() bool {
		return first.since(stopped.to)["told"] == 3
	})
	if says := first.since(stopped.to); says["works"] > 0 || says["has"] > 0 {
		t.Errorf("the first went on by %v, want that all are told first", says)
	}

	killed := time.Now()
	if err := second.Kill(); err != nil {
		t.Fatal(err)
	}
	h.await(ctx, "the first has three slots again", func() bool { return first.holding() == 3 })
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	if most := h.believers(stopped, second, killed); most != 5 {
		t.Errorf("%d callers believed at once that they have a slot, want 5", most)
	}
	if early := h.believers(stop{process: first, from: time.Now(), to: time.Now()}, second, killed); early <= 5 {
		t.Errorf("with the stopped process's callers, %d believed: the check sees nothing", early)
	}
}
