package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// process is a process of a history: its own store on the buckets of all. Its requests take time, some are
// lost, or late, or have no reply. Once it is dead it sends none.
type process struct {
	*fake

	faults  float64
	certain bool // takes an extension without a reply for one that was not applied

	mu     sync.Mutex
	random *rand.Rand
	dead   bool
}

func (p *process) Open(env *store.Env, _ ...store.Definition) (store.Session, error) {
	p.fake.env.Observer, p.fake.env.Logger = env.Observer, env.Logger
	return p, nil
}

var errNoReply = errors.New("no reply")

// send sends a request that apply applies.
func (p *process) send(ctx context.Context, apply func() error) error {
	p.mu.Lock()
	dead, fault, late := p.dead, p.random.Float64() < p.faults, p.random.IntN(3)
	before, after := p.random.IntN(200), p.random.IntN(200)
	p.mu.Unlock()
	if dead {
		return errNoReply
	}
	elapse(time.Duration(before) * time.Millisecond)
	if !fault {
		err := apply()
		elapse(time.Duration(after) * time.Millisecond)
		return err
	}
	switch late {
	case 0: // lost
	case 1: // without reply
		_ = apply()
	case 2: // late, and without reply
		time.AfterFunc(time.Second, func() { _ = apply() })
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
	return &runtime.UnavailableError{Resource: "jobs", Attempts: 1, Err: errNoReply}
}

// copied returns a call that the caller's buckets do not change by.
func copied(call *store.Call) *store.Call {
	own := *call
	own.Parts = append([]store.Part{}, call.Parts...)
	for i := range own.Parts {
		own.Parts[i].Buckets = append([]store.Bucket{}, call.Parts[i].Buckets...)
	}
	return &own
}

func (p *process) do(
	ctx context.Context, call *store.Call, f func(context.Context, *store.Call) error,
) error {
	own := copied(call)
	err := p.send(ctx, func() error { return f(context.WithoutCancel(ctx), own) })
	if _, lost := errors.AsType[*runtime.UnavailableError](err); !lost {
		for i := range call.Parts {
			copy(call.Parts[i].Buckets, own.Parts[i].Buckets)
		}
	}
	return err
}

func (p *process) Acquire(ctx context.Context, call *store.Call) error {
	return p.do(ctx, call, p.fake.Acquire)
}
func (p *process) Settle(ctx context.Context, call *store.Call) error {
	return p.do(ctx, call, p.fake.Settle)
}
func (p *process) Extend(ctx context.Context, call *store.Call) error {
	err := p.do(ctx, call, p.fake.Extend)
	if b := &call.Parts[0].Buckets[0]; err != nil && p.certain {
		b.Epochs = b.Charges[0].Epochs
		return nil
	}
	return err
}

// holdHistory is a history of callers of several processes, who all want slots of user 1.
type holdHistory struct {
	t        *testing.T
	givesUp  bool // when its context ends
	certain  bool // as in process
	mu       sync.Mutex
	running  int64 // callers that believe that they have a slot
	most     int64
	admitted int
	lost     int
	callers  sync.WaitGroup
}

func (h *holdHistory) run(n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running += n
	h.most = max(h.most, h.running)
}

// call is one caller's life: it takes a slot, maybe another one, and ends its lease in some way, or never.
func (h *holdHistory) call(p *process, r *resource, random *rand.Rand) {
	lease, err := r.Acquire(h.t.Context(), user{"1"}, cost{}, runtime.Budget(5*time.Second),
		runtime.OnUnavailable(runtime.Deny))
	if err != nil {
		elapse(time.Duration(random.IntN(5000)) * time.Millisecond)
		return
	}
	h.mu.Lock()
	h.admitted++
	h.mu.Unlock()
	slots := int64(1)
	ctx := lease.Context(h.t.Context())
	h.run(1)
	defer func() { h.run(-slots) }()
	if random.IntN(4) == 0 && lease.More(ctx, cost{RPM: 1}) == nil && ctx.Err() == nil {
		h.run(1)
		slots++
	}
	end := time.After(time.Duration(random.IntN(300)) * time.Second)
	lost := ctx.Done()
	if !h.givesUp {
		lost = nil
	}
	for done := false; !done; {
		select {
		case <-end:
			done = true
		case <-lost:
			done = true
			h.mu.Lock()
			h.lost++
			h.mu.Unlock()
		case <-time.After(time.Second):
			p.mu.Lock()
			done = p.dead
			p.mu.Unlock()
		}
	}
	h.run(-slots) // it has done its work, and gives its slots back
	slots = 0
	switch random.IntN(3) {
	case 0:
		lease.Keep(h.t.Context())
	case 1:
		lease.Release(h.t.Context())
	case 2:
		_ = lease.Settle(h.t.Context(), cost{})
	}
}

// history runs one of a seed, and returns the most callers that believed at once that they had a slot, and
// what was wrong with what is stored.
func (h *holdHistory) history(seed uint64, faults float64) (most int64, wrong []string) {
	backend := &fake{}
	_, _ = openSlots(h.t, backend)
	var lims []*runtime.Limiter
	for i := range uint64(4) {
		p := &process{fake: backend, faults: faults, certain: h.certain, random: rand.New(rand.NewPCG(seed, i))}
		skew := ahead(time.Duration(p.random.IntN(200)-100) * time.Millisecond)
		b := runtime.NewBuilder(p, quiet(), runtime.WithClock(skew))
		r := runtime.Bind[entity](b, slots(), toVector, fromVector)
		lim, err := b.Limiter()
		check(h.t, err, "")
		lims = append(lims, lim)
		dies := time.Duration(p.random.IntN(1200)) * time.Second // half of them die
		for caller := range uint64(10) {
			random := rand.New(rand.NewPCG(seed, 100*i+caller+10))
			h.callers.Go(func() {
				for start := time.Now(); time.Since(start) < 10*time.Minute; {
					p.mu.Lock()
					dead := p.dead
					p.mu.Unlock()
					if dead {
						return
					}
					h.call(p, r, random)
				}
			})
		}
		h.callers.Go(func() {
			if elapse(min(dies, 11*time.Minute)); dies < 11*time.Minute {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.dead = true
			}
		})
	}
	h.callers.Wait()
	for _, lim := range lims {
		check(h.t, lim.Close(h.t.Context()), "")
	}
	elapse(2 * time.Minute)
	if free := backend.free("user-1"); free != 20 {
		backend.wrong = append(backend.wrong, fmt.Sprint(free, " slots are free two minutes after the last death"))
	}
	return h.most, backend.wrong
}

// TestHoldHistories: whatever becomes of requests and processes, no more callers believe that they have a
// slot than there are, and all slots are back two minutes after the last death.
func TestHoldHistories(t *testing.T) {
	var all holdHistory
	for seed := range longform.Histories(t, "histories of holds", uint64(60), 8) {
		synctest.Test(t, func(t *testing.T) {
			h := &holdHistory{t: t, givesUp: true}
			most, wrong := h.history(seed, []float64{0.04, 0.3}[seed%2])
			if most > 20 || len(wrong) > 0 {
				t.Errorf("seed %d: %d callers at once, wrong: %q", seed, most, wrong)
			}
			all.admitted, all.lost, all.most = all.admitted+h.admitted, all.lost+h.lost, max(all.most, most)
		})
	}
	t.Logf("%d admitted, %d lost, %d at once", all.admitted, all.lost, all.most)
	if all.most != 20 || all.lost == 0 {
		t.Error("nothing was scarce, or nothing was lost")
	}
}

// TestHoldControls: what must not be done is seen.
func TestHoldControls(t *testing.T) {
	longform.NoRace(t, "controls, whose broken variants ship nowhere")
	for name, rules := range map[string]struct{ givesUp, certain bool }{
		"callers go on that have lost their lease":     {},
		"an extension in doubt is taken for a failure": {givesUp: true, certain: true},
	} {
		t.Run(name, func(t *testing.T) {
			seen := false
			for seed := uint64(0); seed < 40 && !seen; seed++ {
				synctest.Test(t, func(t *testing.T) {
					h := &holdHistory{t: t, givesUp: rules.givesUp, certain: rules.certain}
					most, wrong := h.history(seed, 0.3)
					seen = most > 20 || len(wrong) > 0
				})
			}
			if !seen {
				t.Error("nothing is wrong")
			}
		})
	}
}
