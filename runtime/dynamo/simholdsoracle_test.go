package dynamo

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/gen/testdata/golden/inflight/out"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// inflightResources returns the resources of these histories, by name.
func inflightResources(t testing.TB) map[string]codec.Resource {
	t.Helper()
	all, err := definitions.Of(inflight.New)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]codec.Resource{}
	for _, def := range all {
		byName[def.Spec().Resource], _ = codec.For(def, 0)
	}
	return byName
}

// holdMonth is the index of limit month in the vectors of resource calls.
const holdMonth = 1

// running is a call that runs and was not told to stop.
type running struct {
	buckets      []string
	slots        int64
	since, until time.Time
	over         bool
}

// settledSum is what settled calls come to in a bucket: at least, and at most.
type settledSum struct{ least, most int64 }

// holdJudge watches a holdHistory.
type holdJudge struct {
	table *simTable

	mu       sync.Mutex
	admitted int
	wrong    string
	running  []*running
	sums     map[string]*settledSum
	resets   map[string][]time.Time // when each bucket had been reset
}

// find keeps the first thing that is wrong.
func (j *holdJudge) find(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.wrong == "" {
		j.wrong = fmt.Sprintf(format, args...)
	}
}

// refused notes the error of an acquire. Only a denial, a lost race or a store that does not answer refuses.
func (j *holdJudge) refused(err error) {
	_, denied := errors.AsType[*runtime.DeniedError](err)
	_, unavailable := errors.AsType[*runtime.UnavailableError](err)
	_, contended := errors.AsType[*runtime.ContendedError](err)
	_, exceeds := errors.AsType[*runtime.CostTooLargeError](err) // an override lowered the capacity
	if !denied && !unavailable && !contended && !exceeds {
		j.find("a call failed: %v", err)
	}
}

// began notes that a call runs now.
func (j *holdJudge) began(buckets []string, slots int64) *running {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.admitted++
	r := &running{buckets: buckets, slots: slots, since: time.Now()}
	j.running = append(j.running, r)
	return r
}

// ended notes that a call does not run any more, or was told to stop.
func (j *holdJudge) ended(r *running) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !r.over {
		r.over, r.until = true, time.Now()
	}
}

// settled notes what a call comes to, and whether that is certain to be written.
func (j *holdJudge) settled(buckets []string, actual int64, certain bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, entity := range buckets {
		if j.sums[entity] == nil {
			j.sums[entity] = &settledSum{}
		}
		if j.sums[entity].most += actual; certain {
			j.sums[entity].least += actual
		}
	}
}

// reset notes that an operator has reset a bucket.
func (j *holdJudge) reset(entity string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.resets[entity] = append(j.resets[entity], time.Now())
}

// checkUse holds what a bucket says was used of its window against what settled calls came to. Reservations
// of dead processes have come back, or do so by the next sweep.
func (j *holdJudge) checkUse(entity string) {
	used := int64(0)
	for _, c := range j.table.log {
		if b := c.after.Balances[holdMonth]; c.entity == entity {
			used = (b.Burst - b.Tokens - b.Cells[0] - b.Cells[1]) / bucket.Milli
		}
	}
	sum := j.sums[entity]
	if sum == nil {
		sum = &settledSum{}
	}
	if used < sum.least || used > sum.most {
		j.find("%s: %d of the month used, for calls that came to %d to %d", entity, used, sum.least, sum.most)
	}
}

// replay holds each commit against the rules, and then the calls that ran against the capacity.
func (j *holdJudge) replay() {
	capacities := map[string][]capacity{}
	for _, c := range j.table.log {
		for i, b := range c.after.Balances {
			at := fmt.Sprintf("%s, limit %d at %v: %v, cells %d from %d", c.entity, i, c.at, b, b.Cells, b.Epoch)
			switch {
			case !b.Holds():
				continue
			case min(b.Cells[0], b.Cells[1]) < 0:
				j.find("a cell below 0: %s", at)
			case b.InFlight() && b.Tokens+b.Cells[0]+b.Cells[1] != b.Burst:
				j.find("forged or lost slots: %s", at)
			case b.Windowed() && b.Tokens+b.Cells[0]+b.Cells[1] > b.Burst:
				j.find("forged in a window: %s", at)
			case c.after.TTL*1000 < b.HeldUntil():
				j.find("expires before its holds: %s", at)
			}
			if b.InFlight() {
				capacities[c.entity] = append(capacities[c.entity], capacity{c.at, b.Burst / bucket.Milli})
			}
		}
	}
	for _, r := range j.running {
		for _, entity := range r.buckets {
			j.checkRunning(r, entity, capacities[entity])
		}
	}
}

// capacity is an in-flight limit's from an instant on.
type capacity struct {
	at    time.Time
	slots int64
}

// checkRunning checks the calls that run when r begins.
func (j *holdJudge) checkRunning(r *running, entity string, capacities []capacity) {
	var anew time.Time
	for _, at := range j.resets[entity] {
		if !at.After(r.since) {
			anew = at
		}
	}
	oldest, sum := r.since, int64(0)
	for _, other := range j.running {
		if !slices.Contains(other.buckets, entity) || other.since.After(r.since) || other.since.Before(anew) ||
			!other.until.After(r.since) {
			continue
		}
		if sum += other.slots; other.since.Before(oldest) {
			oldest = other.since
		}
	}
	most := int64(0)
	for k, c := range capacities {
		lasted := k+1 == len(capacities) || capacities[k+1].at.After(oldest.Add(-time.Second))
		if !c.at.After(r.since) && lasted {
			most = max(most, c.slots)
		}
	}
	if sum > most {
		j.find("%s: calls with %d slots run at %v, when there were %d", entity, sum, r.since, most)
	}
}
