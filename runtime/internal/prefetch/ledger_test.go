package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// cell is one limit of one bucket.
type cell struct {
	entity string // as stored
	limit  int
}

// account has millitokens by cell.
type account map[cell]int64

// add adds tokens of an entity's bucket, times sign.
func (a account) add(entity string, tokens []int64, sign int64) {
	for i, n := range tokens {
		a[cell{entity, i}] += sign * n
	}
}

// ledger is the store of one process. It passes calls on, and knows of each charge and give-back whether the
// table has applied it, and whether the process was told.
type ledger struct {
	store.Store

	dead   *atomic.Bool      // the process was killed
	lost   float64           // the portion of calls that do not arrive, and of those whose answer does not
	sends  func(*store.Part) // breaks a rule of the process: changes a give-back before it is noted
	writes func(*store.Part) // breaks a rule of the table: changes a give-back that was noted

	mu  sync.Mutex
	rng *rand.Rand

	held       account // what the process took as far as it was told, less all that it gave back
	untold     account // what it took without being told
	unreturned account // what it gave back, but the table did not get
}

// Open implements store.Store.
func (l *ledger) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	inner, err := l.Store.Open(env, defs...)
	l.held, l.untold, l.unreturned = account{}, account{}, account{}
	return &kept{inner, l}, err
}

// kept is a session whose charges a ledger notes.
type kept struct {
	store.Session
	*ledger
}

// errNoAnswer is what a process sees of a request or a reply that is lost.
var errNoAnswer = errors.New("no answer")

// falls returns what befalls a call: whether it arrives, and whether its answer does.
func (l *ledger) falls() (arrives, answered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	arrives = l.rng.Float64() >= l.lost && !l.dead.Load()
	return arrives, l.rng.Float64() >= l.lost
}

// noAnswer returns the error of a call without an answer.
func noAnswer(call *store.Call) error {
	return &store.UnavailableError{Resource: call.Parts[0].Def.Spec().Resource, Attempts: 1, Err: errNoAnswer}
}

// note adds tokens to an account, times sign.
func (l *ledger) note(a account, entity string, tokens []int64, sign int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.add(entity, tokens, sign)
}

// Acquire implements store.Session.
func (k *kept) Acquire(ctx context.Context, call *store.Call) error {
	arrives, answered := k.falls()
	if !arrives {
		return noAnswer(call)
	}
	if err := k.Session.Acquire(ctx, call); err != nil {
		return err
	}
	into := k.held
	if !answered || k.dead.Load() {
		into = k.untold
	}
	for i := range call.Parts {
		part := &call.Parts[i]
		for j := range part.Buckets {
			b := &part.Buckets[j]
			k.note(into, b.Entity, part.Def.Spec().CostOf(b.Kind, part.Cost), 1)
		}
	}
	if !answered || k.dead.Load() {
		return noAnswer(call)
	}
	return nil
}

// Settle implements store.Session. It settles each bucket by a call of its own, as stores do by a write of
// its own.
func (k *kept) Settle(ctx context.Context, call *store.Call) error {
	if call.Later != nil { // of one bucket
		return k.settle(ctx, call)
	}
	var errs []error
	for i := range call.Parts {
		part := &call.Parts[i]
		for j := range part.Buckets {
			one := *part
			if one.Root == "" {
				one.Root = part.Buckets[len(part.Buckets)-1].Entity
			}
			one.Buckets = part.Buckets[j : j+1 : j+1]
			errs = append(errs, k.settle(ctx, &store.Call{
				Called: call.Called, Deadline: call.Deadline, Parts: []store.Part{one},
			}))
		}
	}
	return errors.Join(errs...)
}

// settle settles one bucket.
func (k *kept) settle(ctx context.Context, call *store.Call) error {
	part := &call.Parts[0]
	b := &part.Buckets[0]
	change := func() []int64 { return slices.Clone(part.Def.Spec().CostOf(b.Kind, part.Difference(b))) }
	if k.sends != nil {
		k.sends(part)
	}
	noted := change()
	k.note(k.held, b.Entity, noted, 1)
	arrives, answered := k.falls()
	ended := func(err error) error {
		if err != nil {
			k.note(k.unreturned, b.Entity, noted, -1)
			return err
		}
		if !answered || k.dead.Load() {
			return noAnswer(call)
		}
		return nil
	}
	if !arrives {
		return ended(noAnswer(call))
	}
	if k.writes != nil {
		k.writes(part)
	}
	later := call.Later
	if later != nil {
		call.Later = func(err error) { later(ended(err)) }
	}
	err := k.Session.Settle(ctx, call)
	if later != nil && call.Later == nil {
		return nil
	}
	call.Later = later
	return ended(err)
}

// once returns what changes the first give-back of the project's rpm, of all processes, by tokens: so much
// more is given back.
func once(tokens func(given int64) int64) func(*store.Part) {
	var first sync.Once
	return func(part *store.Part) {
		b := &part.Buckets[0]
		if given := -part.Difference(b)[0]; b.Entity == "project-hot" && given > 1 {
			first.Do(func() {
				part.Actual = slices.Clone(part.Actual)
				part.Actual[0] -= tokens(given)
			})
		}
	}
}

// imbalance returns by how many millitokens each account does not balance, without those that do:
//
//	processes  what processes took, as far as they were told, is what they gave back and what calls had of it
//	table      what the table charged is what processes took, as far as they were told, less what they gave
//	           back, and what was lost: taken without being told, or given back to a table that did not get it
//
// Processes hold nothing any more: they have closed, or tried to after they were killed. If replies of the
// table get lost, nobody knows of some calls whether it has applied them: these count as applied.
func (w *world) imbalance() (processes, table account) {
	processes, table = account{}, account{}
	for entity := range w.entities() {
		for i, limit := range []string{"rpm_tc", "tpm_tc"} {
			at := cell{entity, i}
			for _, l := range w.ledgers {
				processes[at] += l.held[at]
				table[at] -= l.held[at]
				if w.lost == 0 {
					table[at] -= l.untold[at] + l.unreturned[at]
				}
			}
			processes[at] -= (w.books.net[entity] + w.books.late[entity]) * bucket.Milli
			table[at] += stored(w.t, w.engine, entity, limit)
		}
	}
	balanced := func(_ cell, n int64) bool { return n == 0 }
	maps.DeleteFunc(processes, balanced)
	maps.DeleteFunc(table, balanced)
	return processes, table
}

// losses says how many tokens were lost, of both limits of all buckets: by kills, and by requests and replies
// that got lost.
func (w *world) losses() string {
	var late, untold, unreturned int64
	for _, n := range w.books.late {
		late += 2 * n
	}
	for _, l := range w.ledgers {
		for _, n := range l.untold {
			untold += n / bucket.Milli
		}
		for _, n := range l.unreturned {
			unreturned += n / bucket.Milli
		}
	}
	return fmt.Sprintf("lost: %d by calls that outlived their process, %d in flight, %d not given back", late,
		untold, unreturned)
}

// TestLeaksAreSeen breaks one rule of conservation once, by as little as one millitoken, in a history with
// kills. TestHistories would notice, for that reason alone.
func TestLeaksAreSeen(t *testing.T) {
	longform.Control(t)
	first := cell{"project-hot", 0}
	for name, c := range map[string]struct {
		sends, writes    func(given int64) int64
		processes, table int64 // millitokens; a 2 stands for more than one, and -2 for less than -1
	}{
		"a process keeps a millitoken of a give-back": {
			sends: func(int64) int64 { return -1 }, processes: 1,
		},
		"a process gives a millitoken back that it does not have": {
			sends: func(int64) int64 { return 1 }, processes: -1,
		},
		"a process forgets a give-back": {
			sends: func(given int64) int64 { return -given }, processes: 2,
		},
		"the table does not get a millitoken":  {writes: func(int64) int64 { return -1 }, table: 1},
		"the table gets a millitoken too much": {writes: func(int64) int64 { return 1 }, table: -1},
		"the table applies a give-back twice": {
			writes: func(given int64) int64 { return given }, table: -2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := histories()["kills"]
				h.lasts /= 2
				if c.sends != nil {
					h.sends = once(c.sends)
				}
				if c.writes != nil {
					h.writes = once(c.writes)
				}
				processes, table := h.play(t, 0).imbalance()
				for _, one := range []struct {
					of   string
					got  account
					want int64
				}{{"processes", processes, c.processes}, {"table", table, c.table}} {
					n := one.got[first]
					delete(one.got, first)
					if max(-2, min(n, 2)) != one.want || len(one.got) > 0 {
						t.Errorf("the account of %s is off by %d, and by %v; want about %d", one.of, n, one.got, one.want)
					}
				}
			})
		})
	}
}
