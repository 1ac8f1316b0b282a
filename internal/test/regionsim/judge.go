package regionsim

import (
	"fmt"
	"hash"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region"
)

// Violation is something that may never happen.
type Violation struct {
	At     time.Duration
	Region string // in which it was seen
	What   string
}

// String writes v on a line.
func (v Violation) String() string {
	return fmt.Sprintf("at %v in %s: %s", v.At, v.Region, v.What)
}

// Result is what was seen of a World.
type Result struct {
	Violations []Violation // the first one ends the world
	Cycles     int         // of all regions
	Failed     int         // of these
	Writes     int         // quotas
	Beats      int
	Buckets    int   // read from tables
	Granted    int64 // millitokens, of all limits
	Gets, Puts int   // of snapshots
	Events     int   // that were judged
	Last       Sample
	Digest     uint64 // of all that was written: the same for the same World
}

// judge watches a world.
type judge struct {
	Result
	world    *world
	digest   hash.Hash64
	alive    []bool                 // by region: its quotas are in force
	epochs   []int64                // of which
	sampled  Result                 // as it was at the last sample
	triggers map[region.Trigger]int // since then
	put      [][]byte               // snapshots, by region, put since then
	books    []*books               // what they say, as of the last sample
}

func (j *judge) begin(w *world) {
	j.world, j.digest, j.triggers = w, fnv.New64a(), map[region.Trigger]int{}
	j.alive, j.epochs = make([]bool, len(w.regions)), make([]int64, len(w.regions))
	j.put, j.books = make([][]byte, len(w.regions)), make([]*books, len(w.regions))
	for _, s := range w.series {
		j.check(w.regions[0], s)
	}
}

// wrong notes a violation. s may be nil.
func (j *judge) wrong(h *home, s *series, what string) {
	if s != nil {
		what = fmt.Sprintf("%s on %s: %s", s.entity, s.place.resource, what)
	}
	j.Violations = append(j.Violations, Violation{j.world.now, h.name, what})
	j.world.trace(h, "VIOLATION: %s", what)
}

// check judges what is in force of s.
func (j *judge) check(h *home, s *series) {
	j.Events++
	for i, l := range j.world.Resources[s.resource].Limits {
		most, least := j.world.wholes(s, i)
		if sum, each := j.sum(s, i); sum > most {
			j.wrong(h, s, fmt.Sprintf("%s: quotas %v are in force, %d of %d", l.Name, each, sum, most))
		}
		e := &h.table.entries[s.index]
		quota := limitOf(e.terms, i)
		if quota == nil || e.operator {
			continue
		}
		if floor := j.world.keeps(bucket.Limit{Capacity: least * bucket.Milli, Burst: bucket.Milli, Refill: 1,
			Period: 1}); quota.Capacity < floor*bucket.Milli {
			j.wrong(h, s, fmt.Sprintf("%s: %d is less than the floor, %d", l.Name, quota.Capacity/bucket.Milli, floor))
		}
		if !slices.ContainsFunc(h.table.tolerated(s, i),
			func(whole bucket.Limit) bool { return *quota == whole.Quota(quota.Capacity/bucket.Milli) }) {
			j.wrong(h, s, fmt.Sprintf("%s: %v is no part of %v", l.Name, *quota, h.table.kinds[s.resource][i].Limit))
		}
	}
}

// served judges what all regions have served of a limit since the world began. It is at most the burst of all
// together and the refill since, as of one bucket. There is no such bound if limits change or an operator
// overrides some.
func (j *judge) served(s *series, limit int) {
	w, all := j.world, 0.0
	if slices.ContainsFunc(w.Faults, func(f Fault) bool { return f.Kind == Whole || f.Kind == Operator }) {
		return
	}
	for _, h := range w.regions {
		all += h.flows[s.index].served[limit]
	}
	whole := w.whole(s, limit)
	refill := float64(whole.Refill) / float64(whole.Period) * float64(w.now.Milliseconds())
	if most := float64(whole.Burst) + refill; all > most*(1+1e-9)+float64(len(w.regions)*bucket.Milli) {
		j.wrong(w.regions[0], s, fmt.Sprintf("%s: regions have served %.0f tokens, %.0f of which one bucket has",
			w.Resources[s.resource].Limits[limit].Name, all/bucket.Milli, most/bucket.Milli))
	}
}

// sum is the most that processes may use of a limit in all regions, and in each.
func (j *judge) sum(s *series, limit int) (sum int64, each []int64) {
	for _, h := range j.world.regions {
		most := h.table.most(s, limit)
		sum, each = sum+most, append(each, most)
	}
	return sum, each
}

// shared is told that an entry was written.
func (j *judge) shared(h *home, s *series) {
	j.Writes++
	_, _ = fmt.Fprintln(j.digest, j.world.now, h.index, s.index, inTokens(h.table.entries[s.index].limits))
	j.check(h, s)
}

// beaten is told that a heartbeat was written. Only one that brings quotas into force can break anything.
func (j *judge) beaten(h *home) {
	j.Beats++
	slow := j.world.millis(-j.world.Skew)
	if alive, epoch := j.alive[h.index], j.epochs[h.index]; !alive || epoch != h.table.beat.Epoch ||
		len(h.table.beat.past) > 0 && !h.table.beat.past[len(h.table.beat.past)-1].Alive(slow) {
		j.all(h)
	}
	j.alive[h.index], j.epochs[h.index] = true, h.table.beat.Epoch
}

// all judges every bucket.
func (j *judge) all(h *home) {
	for _, s := range j.world.series {
		j.check(h, s)
	}
}

// published is told that a snapshot is put.
func (j *judge) published(h *home, data []byte) {
	j.Puts++
	_, _ = j.digest.Write(data)
	j.put[h.index] = data
}

func (j *judge) called(about way) {
	if about == gets || about == peers {
		j.Gets++
	}
}

// reported is told how a cycle went.
func (j *judge) reported(h *home, r *region.Report, err error) {
	j.Cycles++
	if err != nil {
		j.Failed++
	}
	if r == nil {
		return
	}
	for _, p := range r.Peers {
		if j.world.Wrap == nil && p.Err != nil && strings.Contains(p.Err.Error(), " says that ") {
			j.wrong(h, nil, "sound accounts are refused: "+p.Err.Error())
		}
	}
	for _, w := range r.Writes {
		if len(w.Limits) > 0 {
			j.triggers[w.Limits[0].Trigger]++
		}
	}
}

func (j *judge) close() *Result {
	j.Digest = j.digest.Sum64()
	return &j.Result
}

// wholes returns the most and the least that all regions may have together of a limit, in tokens. After a
// change, the old limit counts until all regions have had the time to follow.
func (w *world) wholes(s *series, limit int) (most, least int64) {
	for n, h := range w.regions {
		for m, l := range h.table.tolerated(s, limit) {
			whole := l.Capacity / bucket.Milli
			if n == 0 && m == 0 {
				least = whole
			}
			most, least = max(most, whole), min(least, whole)
		}
	}
	return most, least
}

// tolerated returns what a limit of s is, and what it was as long as that counts.
func (t *table) tolerated(s *series, limit int) []bucket.Limit {
	k := &t.kinds[s.resource][limit]
	all := []bucket.Limit{k.Limit}
	for _, p := range k.past {
		if t.world.now < t.world.followed(p.until) {
			all = append(all, p.Limit)
		}
	}
	return all
}

// settle is for how many windows without a fault regions may take to follow a change.
const settle = 12

// followed returns when all regions have followed what changed at an instant: as soon as there were no faults
// for some time.
func (w *world) followed(at time.Duration) time.Duration {
	quiet := settle*w.Window + w.evict()
	end := at + quiet
	for again := true; again; {
		again = false
		for _, f := range w.Faults {
			over := f.At + f.For + 2*w.Window // those of syncs wait for the next cycle
			if f.At < end && over+quiet > end {
				end, again = over+quiet, true
			}
		}
	}
	return end
}

func (w *world) evict() time.Duration {
	if w.Evict == 0 {
		return 10 * w.Window
	}
	return w.Evict
}
