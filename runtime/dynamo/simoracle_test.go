package dynamo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
)

// The oracle of docs/design.md, "Model": it orders the committed writes by the instants at which they
// linearise, and replays them on an ideal token bucket. That must leave exactly the level that the table has.
// Above it tokens were forged, below it lost. Tokens that contended writers leave unclaimed on purpose are
// booked apart.
type findingsOf struct {
	forged, lost int64 // millitokens, summed
	left         int64 // the most that was left at once
	over         int   // acquires that the ideal bucket would have denied
	twice        int   // windows that were granted twice
	deleted      int   // buckets that were deleted in an open window
	first        string
}

func (v findingsOf) exact() bool {
	return v.forged == 0 && v.lost == 0 && v.over == 0 && v.twice == 0 && v.deleted == 0
}

func (v findingsOf) String() string {
	return fmt.Sprintf(
		"forged %d, lost %d, left %d, over-admitted %d, granted twice %d, deleted %d: %s",
		v.forged,
		v.lost,
		v.left,
		v.over,
		v.twice,
		v.deleted,
		v.first,
	)
}

// add books what was found of another bucket.
func (v *findingsOf) add(entity string, of findingsOf) {
	v.forged, v.lost, v.over = v.forged+of.forged, v.lost+of.lost, v.over+of.over
	v.twice, v.deleted = v.twice+of.twice, v.deleted+of.deleted
	v.left = max(v.left, of.left)
	if v.first == "" && of.first != "" {
		v.first = entity + ", " + of.first
	}
}

// Each limit is replayed by itself. A write that charges a limit, or claims its refill, linearises at its
// guard's instant. A write that only gives back has no guard there: any instant of its call will do. A write
// for several calls has an order: first settles give back, then acquires take, and last settles take, into
// debt if need be.
type entry struct {
	*commit
	limit   int
	instant int64
	free    bool

	given, taken int64
	settled      int64 // into debt if need be
	charged      int64 // in the end
}

func (e *entry) balance() bucket.Balance { return e.after.Balances[e.limit] }

// costs is what c charged, by limit.
func (c *commit) costs() []int64 {
	costs := make([]int64, len(c.after.Balances))
	for i, b := range c.after.Balances {
		if c.after.Missing[i] {
			continue
		}
		costs[i] = b.Consumed
		if c.before != nil {
			costs[i] -= c.before.Balances[i].Consumed
		}
	}
	return costs
}

// demand returns what the included requests wanted of c's bucket, if c was for that. A reshape may charge
// nothing, and a ttl is repaired by a write of its own.
func (c *commit) demand() (demand, bool) {
	d, ok := c.tag.wants[c.entity]
	acquires := slices.ContainsFunc(d.take, positive)
	if !ok || c.adjust && acquires ||
		!slices.ContainsFunc(c.costs(), func(n int64) bool { return n != 0 }) &&
			!(acquires && c.before != nil && c.before.Version == c.after.Version) {
		return demand{}, false
	}
	return d, true
}

// other says that c did something else than the included requests wanted. A process that has seen a limit
// removed gives nothing of it back, although a version that has it again may have added it since.
func (c *commit) other(removed []bool) string {
	d, ok := c.demand()
	if !ok {
		return ""
	}
	for i, cost := range c.costs() {
		change := d.change[i]
		if c.after.Missing[i] { // of a limit that is not there nothing is taken
			continue
		}
		if c.before == nil { // what is given back to a full bucket is there already
			change = max(change, 0)
		}
		if d.take[i]+change != cost && !(c.adjust && removed[i] && cost == 0) {
			return fmt.Sprintf(
				"%s was charged %d of limit %d at %d, for acquires of %d and settles of %d",
				c.entity,
				cost,
				i,
				c.at.UnixMilli(),
				d.take[i],
				d.change[i],
			)
		}
	}
	return ""
}

// charges reports that c includes an acquire that took something.
func (c *commit) charges() bool {
	d, ok := c.demand()
	return ok && slices.ContainsFunc(d.take, positive)
}

// takes is what acquires took.
func (c *commit) takes() []int64 {
	d, _ := c.demand()
	return d.take
}

// gives reports that c gave something back, if only to take more.
func (c *commit) gives() bool {
	d, ok := c.demand()
	return ok && slices.ContainsFunc(d.change, negative) || slices.ContainsFunc(c.costs(), negative)
}

// entry returns what c did to a limit.
func (c *commit) entry(limit int) entry {
	e := entry{commit: c, limit: limit, instant: c.after.Refilled, charged: c.costs()[limit]}
	if d, ok := c.demand(); ok {
		e.taken, e.settled, e.given = d.take[limit], max(d.change[limit], 0), max(-d.change[limit], 0)
	}
	if c.before == nil {
		e.given = 0
	}
	if rest := e.charged - (e.taken + e.settled - e.given); rest < 0 {
		// by nobody's write, such as an undo, or a broken one
		e.given -= rest
	} else {
		e.settled += rest
	}
	return e
}

// claims reports that e set the balance, or moved rf or parameters.
func (e *entry) claims() bool {
	return e.before == nil || e.before.Refilled != e.after.Refilled || e.before.Version != e.after.Version
}

// judge replays the log of one bucket.
func judge(log []commit) findingsOf {
	var v findingsOf
	if len(log) == 0 {
		return v
	}
	for limit := range log[0].after.Balances {
		if windowed(log, limit) {
			continue
		}
		for _, life := range lives(log, limit) {
			v.live(life, limit)
		}
	}
	return v
}

// lives are the runs of log in which the buckets have that limit. An added limit starts full. So does a limit
// that is missing in a bucket which took the place of an expired one: that was full.
func lives(log []commit, limit int) (all [][]commit) {
	var life []commit
	for k := range log {
		c := &log[k]
		switch missing := c.after.Missing[limit]; {
		case !missing:
			life = append(life, *c)
		case c.before != nil && !c.before.Missing[limit]:
			all, life = append(all, life), nil
		}
	}
	if len(life) > 0 {
		all = append(all, life)
	}
	return all
}

// live replays one limit for as long as it is there.
func (v *findingsOf) live(log []commit, limit int) {
	var entries []entry
	for k := range log {
		e := log[k].entry(limit)
		if !e.claims() {
			if e.free = e.taken+e.settled == 0; e.free && e.given == 0 {
				continue
			}
			e.instant = max(e.tag.called, e.after.Refilled)
		}
		// The last of the acquires, and so each of them, found what it took.
		if e.taken > 0 && bucket.Available(e.balance(), e.after.Refilled, e.instant)+e.settled < 0 {
			v.over++
		}
		entries = append(entries, e)
	}
	full := ideal{at: entries[0].instant, tokens: entries[0].balance().Burst, limit: entries[0].balance().Limit}
	x := ideals{recent: full, whole: full}
	for _, part := range clusters(entries) {
		x = v.replay(x, part)
	}
}

// clusters cuts entries into the shortest runs that no later entry is ordered into.
func clusters(entries []entry) [][]entry {
	least := make([]int64, len(entries)+1) // of all from here on
	least[len(entries)] = math.MaxInt64
	for k := len(entries) - 1; k >= 0; k-- {
		least[k] = min(least[k+1], entries[k].instant)
	}
	var parts [][]entry
	begin, most := 0, int64(math.MinInt64)
	for k, e := range entries {
		if most = max(most, e.instant); most <= least[k+1] {
			parts = append(parts, entries[begin:k+1])
			begin = k + 1
		}
	}
	return parts
}

// ideal is one limit of the ideal bucket.
type ideal struct {
	at     int64
	tokens int64
	limit  bucket.Limit
}

// advance refills up to an instant.
func (x *ideal) advance(to int64) {
	x.tokens = min(bucket.Add(x.tokens, bucket.Refill(x.limit, x.at, to)), x.limit.Burst)
	x.at = max(x.at, to)
}

// apply does what e did.
func (x *ideal) apply(e *entry) {
	x.advance(e.instant)
	if e.before == nil || e.before.Version != e.after.Version {
		x.limit = e.balance().Limit
		x.tokens = min(x.tokens, x.limit.Burst)
	}
	x.tokens = min(x.tokens+e.given, x.limit.Burst) - e.taken - e.settled
}

// ideals are the ideal buckets of one limit. After each cluster recent is set to the table's level, so that
// every difference is seen by itself. whole is not, so that differences do not add up unseen.
type ideals struct {
	recent, whole ideal
	unclaimed     int64 // the most that any write so far may have left
}

// outcomeOf is what an order of a cluster leads to.
type outcomeOf struct {
	ideals
	here  int64 // what writes of the cluster may leave
	diff  int64 // the table's level less the recent ideal one
	total int64 // and less the whole one
}

func (o outcomeOf) fits() bool { return within(o.diff, o.here) && within(o.total, o.unclaimed) }

// within reports that diff is nothing forged, and no more than room left.
func within(diff, unclaimed int64) bool { return diff <= 0 && -diff <= unclaimed }

// replay runs one cluster on the ideal bucket and compares the levels at its end.
func (v *findingsOf) replay(start ideals, part []entry) ideals {
	last := &part[len(part)-1]
	var here int64
	for k := range part {
		here = max(here, part[k].unclaimed())
	}
	start.unclaimed = max(start.unclaimed, here)
	run := func(order []entry) outcomeOf {
		o := outcomeOf{ideals: start, here: here}
		o.diff = o.recent.compare(order, last)
		o.total = o.whole.compare(order, last)
		return o
	}
	best := run(ordered(part))
	if !best.fits() {
		for _, other := range alternatives(part) {
			if o := run(other); o.fits() {
				best = o
				break
			}
		}
	}
	v.book(best, part)
	best.recent.tokens += best.diff
	if !best.fits() { // said once
		best.whole = best.recent
	}
	return best.ideals
}

func (v *findingsOf) book(o outcomeOf, part []entry) {
	if o.fits() {
		v.left = max(v.left, -o.total)
		return
	}
	wrong := o.diff
	if within(o.diff, o.here) {
		wrong = o.total
	}
	v.forged += max(wrong, 0)
	v.lost += max(-wrong, 0)
	if v.first == "" {
		v.first = describe(part, wrong)
	}
}

// compare plays order and returns the table's level after last, less x's.
func (x *ideal) compare(order []entry, last *entry) int64 {
	for k := range order {
		x.apply(&order[k])
	}
	x.advance(last.after.Refilled)
	return bucket.Available(last.balance(), last.after.Refilled, x.at) - x.tokens
}

// ordered sorts by instant, ties in commit order.
func ordered(part []entry) []entry {
	part = slices.Clone(part)
	slices.SortStableFunc(part, func(a, b entry) int { return cmp.Compare(a.instant, b.instant) })
	return part
}

// alternatives are other orders that respect real time, which is commit order. If clocks disagree, an instant
// can lie beyond that of a later write that pinned the balance or the shape as it found it. Then it is
// lowered to that write's. A Retry's guard, once true, is true at any earlier instant since rf. A write that
// only gives back may stand anywhere among its neighbours.
func alternatives(part []entry) [][]entry {
	lowered := slices.Clone(part)
	next := int64(math.MaxInt64)
	for k := len(part) - 1; k >= 0; k-- {
		lowered[k].instant = min(lowered[k].instant, next)
		if lowered[k].pins() {
			next = lowered[k].instant
		}
	}
	var free []int
	early, late := make([]int64, len(part)), make([]int64, len(part))
	most := int64(math.MinInt64)
	for k, e := range lowered {
		early[k], late[k] = e.after.Refilled, max(most, e.after.Refilled)
		if e.free {
			free = append(free, k)
		} else {
			most = max(most, e.instant)
		}
	}
	commits := slices.Clone(part)
	least := int64(math.MaxInt64)
	for k := len(part) - 1; k >= 0; k-- {
		least = min(least, commits[k].instant)
		commits[k].instant = least
	}
	orders := [][]entry{ordered(lowered), commits}
	const exhaustive = 8
	for mask := range 1 << min(len(free), exhaustive) {
		order := slices.Clone(lowered)
		for n, k := range free {
			order[k].instant = early[k]
			if mask>>min(n, exhaustive-1)&1 == 1 {
				order[k].instant = late[k]
			}
		}
		orders = append(orders, ordered(order))
	}
	return orders
}

// pins reports that e was written only because the balance, or the shape, was what its writer had seen.
func (e *entry) pins() bool {
	if e.before == nil || e.before.Version != e.after.Version {
		return true
	}
	return e.claims() &&
		e.after.Balances[e.limit].Tokens+e.charged-e.before.Balances[e.limit].Tokens < bucket.Refill(
			e.before.Balances[e.limit].Limit,
			e.before.Refilled,
			e.after.Refilled,
		)
}

// unclaimed returns how much e may have left on purpose. A contended Normal is known by what it claims, less
// than there was, and by guards that are not exact, yet no further apart than it may leave.
func (e *entry) unclaimed() int64 {
	if e.before == nil || e.before.Version != e.after.Version || !e.pins() {
		return 0
	}
	s := plan.Slack(e.balance().Limit)
	tk := e.before.Balances[e.limit].Tokens
	fill := e.balance().Tokens + e.charged - tk
	for name, v := range e.values {
		limit, ok := strings.CutSuffix(name, "_lo")
		if !ok || number(e.values[limit+"_net"])+number(e.values[limit+"_use"]) != fill ||
			number(e.values[limit+"_use"]) != e.charged {
			continue // another limit's
		}
		lo, hi := number(v), number(e.values[limit+"_hi"])
		if lo <= hi && bucket.Sub(hi, lo) <= s && (lo < hi || hi+fill+e.given < e.balance().Burst) {
			return s
		}
	}
	return 0
}

// repeated says which write was applied twice, if any was: whatever it is, with nothing in between, and what
// gives back at all. Requests that take go again without the included ones that give back.
func repeated(log []commit) string {
	refunds := map[string]bool{}
	for k := range log {
		c := &log[k]
		op := c.after.Op
		if k > 0 && op == log[k-1].after.Op {
			return fmt.Sprintf(
				"op %s was applied twice in a row, at %d and %d",
				op,
				log[k-1].at.UnixMilli(),
				c.at.UnixMilli(),
			)
		}
		if refunds[op] && c.gives() {
			return fmt.Sprintf("op %s, which gives back, was applied again at %d", op, c.at.UnixMilli())
		}
		refunds[op] = refunds[op] || c.gives()
	}
	return ""
}

func describe(part []entry, diff int64) string {
	var s strings.Builder
	fmt.Fprintf(&s, "limit %d off by %d after %d writes:", part[0].limit, diff, len(part))
	for k := range part {
		e := &part[k]
		fmt.Fprintf(
			&s,
			"\n  %d called %d instant %d given %d taken %d settled %d:",
			e.at.UnixMilli(),
			e.tag.called,
			e.instant,
			e.given,
			e.taken,
			e.settled,
		)
		for _, img := range []*bucket.Image{e.before, e.after} {
			if img == nil {
				s.WriteString(" none")
				continue
			}
			fmt.Fprintf(&s, " rf %d tk %d cv %d", img.Refilled, img.Balances[e.limit].Tokens, img.Version)
		}
		for name, v := range e.values {
			if strings.HasSuffix(name, "_lo") || strings.HasSuffix(name, "_hi") {
				fmt.Fprintf(&s, " %s %d", name, number(v))
			}
		}
	}
	return s.String()
}
