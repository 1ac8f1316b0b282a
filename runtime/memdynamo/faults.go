package memdynamo

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/engine"
)

// Faults are what an engine suffers from: none at first. Every method may be called at any time, while
// requests are under way too, and holds for those that come after it.
//
// A probability is of one request's suffering it, on its own; a value below 0 counts as 0, one above 1 as 1.
// Durations and rates below 0 count as 0, which is none.
//
// Chance repeats. The faults of the nth request on its way follow from the seed and n alone, regardless of
// other settings and other requests. Throttle, Conflict and Unprocessed draw in the order in which requests
// are worked on. A program that calls from one goroutine therefore gets the same faults again with the same
// seed. Others do as far as their requests come in the same order.
type Faults struct {
	seed   uint64
	number atomic.Uint64 // of requests so far
	down   atomic.Bool

	mu      sync.Mutex
	is      weather
	idle    time.Time      // RequestsPerSecond: when all requests that are under way will be done
	arrived map[string]int // by operation, for scripts
}

// weather is what can be set beside Down.
type weather struct {
	loseRequest, loseReply, duplicate, internalError, lateInternalError float64

	latency    Distribution
	perSecond  float64
	hold       time.Duration
	conditions engine.Conditions
	script     func(Request) Fault
}

// Fault is what a script does to one request.
type Fault uint8

// Faults of one request. They befall it beside what chance decides; they do as the methods of Faults of the
// same name say.
const (
	None Fault = iota
	LoseRequest
	LoseReply
	Duplicate
	InternalError
	LateInternalError
	Throttle
)

// Request is what a script sees of a request.
type Request struct {
	Operation string // as in UpdateItem
	Table     string // the request's TableName; empty where it has none, as of batches and transactions
	// of the requests with this Operation since the engine was made, from 1; each try of a client is one
	Number int
}

// Script has f decide on each request whose operation is known, ahead of chance; nil ends that. It is called
// on the goroutine that makes the request, concurrently if requests are. It may block, which keeps the
// request waiting regardless of its client's context. It may change the Faults, which then hold for this
// request too:
//
//	engine.Faults().Script(func(r memdynamo.Request) memdynamo.Fault {
//		if r.Operation == "UpdateItem" && r.Number == 3 {
//			return memdynamo.LoseReply
//		}
//		return memdynamo.None
//	})
func (f *Faults) Script(script func(Request) Fault) {
	f.set(func(w *weather) { w.script = script })
}

// Clear ends all faults.
func (f *Faults) Clear() {
	f.down.Store(false)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.is, f.idle = weather{}, time.Time{}
}

// Down makes the engine refuse connections, and break those under way. Its tables stay.
func (f *Faults) Down(down bool) { f.down.Store(down) }

// LoseRequests breaks the connection before the request has arrived: it is not applied.
func (f *Faults) LoseRequests(p float64) {
	f.set(func(w *weather) { w.loseRequest = probability(p) })
}

// LoseReplies breaks the connection after the request was applied. A client cannot tell it from a lost
// request.
func (f *Faults) LoseReplies(p float64) {
	f.set(func(w *weather) { w.loseReply = probability(p) })
}

// Duplicate makes the request arrive twice, at once one after the other. The reply is the first one's.
func (f *Faults) Duplicate(p float64) {
	f.set(func(w *weather) { w.duplicate = probability(p) })
}

// InternalErrors answers InternalServerError, status 500, and does nothing.
func (f *Faults) InternalErrors(p float64) {
	f.set(func(w *weather) { w.internalError = probability(p) })
}

// LateInternalErrors answers InternalServerError, status 500, after the request was applied. A client cannot
// tell it from the others.
func (f *Faults) LateInternalErrors(p float64) {
	f.set(func(w *weather) { w.lateInternalError = probability(p) })
}

// Throttle refuses the request for its throughput, and does nothing.
func (f *Faults) Throttle(p float64) {
	f.set(func(w *weather) { w.conditions.Throttle = probability(p) })
}

// Conflict makes a write, or a transaction, meet another transaction on its items, and so do nothing.
// HoldTransactions gives real ones.
func (f *Faults) Conflict(p float64) {
	f.set(func(w *weather) { w.conditions.Conflict = probability(p) })
}

// Unprocessed leaves an element of a batch undone, to be found in UnprocessedItems or UnprocessedKeys. p is
// each element's.
func (f *Faults) Unprocessed(p float64) {
	f.set(func(w *weather) { w.conditions.Unprocessed = probability(p) })
}

// Latency sets how long requests, and replies, take on their way: a round trip takes two of it, each drawn on
// its own. A nil Distribution is no time. A client that gives up meanwhile calls nothing back: the request
// arrives, and is applied.
func (f *Faults) Latency(d Distribution) {
	f.set(func(w *weather) { w.latency = d })
}

// RequestsPerSecond makes requests wait for each other: the engine works on so many a second, one after the
// other. A request whose client gives up keeps its place. 0 ends that.
func (f *Faults) RequestsPerSecond(n float64) {
	f.set(func(w *weather) { w.perSecond = rate(n) })
}

// HoldTransactions sets how long a TransactWriteItems has its items before it applies. Meanwhile writes and
// transactions on them conflict with it.
func (f *Faults) HoldTransactions(d time.Duration) {
	f.set(func(w *weather) { w.hold = max(0, d) })
}

// StaleReads makes eventually consistent reads see a table as it was that long ago.
func (f *Faults) StaleReads(d time.Duration) {
	f.set(func(w *weather) { w.conditions.StaleReads = max(0, d) })
}

// IndexLag makes reads of global secondary indexes see them as they were that long ago.
func (f *Faults) IndexLag(d time.Duration) {
	f.set(func(w *weather) { w.conditions.IndexLag = max(0, d) })
}

// TTLLag sets how long after their expiry items are deleted; without it that is at once. On AWS it takes up
// to days.
func (f *Faults) TTLLag(d time.Duration) {
	f.set(func(w *weather) { w.conditions.TTLLag = max(0, d) })
}

// PartitionThroughput throttles what goes beyond so many write and read units a second on one partition key:
// 1000 and 3000 are AWS's. A second's worth can be saved up.
func (f *Faults) PartitionThroughput(write, read float64) {
	f.set(func(w *weather) { w.conditions.PartitionWrite, w.conditions.PartitionRead = rate(write), rate(read) })
}

// TableThroughput throttles what goes beyond so many write and read units a second on each table.
func (f *Faults) TableThroughput(write, read float64) {
	f.set(func(w *weather) { w.conditions.TableWrite, w.conditions.TableRead = rate(write), rate(read) })
}

func (f *Faults) set(change func(*weather)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.is)
}

// probability returns the number nearest to p that is one. NaN is 0.
func probability(p float64) float64 {
	if !(p > 0) {
		return 0
	}
	return min(p, 1)
}

// rate returns a number a second. NaN is 0, no bound.
func rate(n float64) float64 {
	if !(n > 0) {
		return 0
	}
	return n
}

// conditions returns what the tables suffer from.
func (f *Faults) conditions() engine.Conditions {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.is.conditions
}

// held returns how long transactions hold their items.
func (f *Faults) held() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.is.hold
}

// fate is what will befall one request.
type fate struct {
	loseRequest, internalError, throttle, duplicate, lateInternalError, loseReply bool

	there, back time.Duration
	held        time.Duration
}

// instant reports that the request takes no time.
func (f *fate) instant() bool { return f.there <= 0 && f.back <= 0 && f.held <= 0 }

// decide asks the script, and then chance, about a request.
func (f *Faults) decide(operation string, input []byte, dice *dice) fate {
	script, number := f.arrive(operation)
	scripted := None
	if script != nil {
		scripted = script(Request{Operation: operation, Table: tableOf(input), Number: number})
	}
	f.mu.Lock()
	is := f.is
	f.mu.Unlock()
	// Each number is drawn whether it is needed or not, so that one fault does not change another's.
	to := fate{
		loseRequest:       dice.roll() < is.loseRequest || scripted == LoseRequest,
		internalError:     dice.roll() < is.internalError || scripted == InternalError,
		duplicate:         dice.roll() < is.duplicate || scripted == Duplicate,
		lateInternalError: dice.roll() < is.lateInternalError || scripted == LateInternalError,
		loseReply:         dice.roll() < is.loseReply || scripted == LoseReply,
		throttle:          scripted == Throttle,
		held:              is.hold,
	}
	if is.latency != nil {
		to.there, to.back = is.latency(dice.roll), is.latency(dice.roll)
	}
	return to
}

// queue returns how long a request waits that arrives then: until the engine has worked on those ahead of it,
// and on the request itself.
func (f *Faults) queue(arrives time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.is.perSecond == 0 {
		return 0
	}
	if f.idle.Before(arrives) {
		f.idle = arrives
	}
	f.idle = f.idle.Add(duration(float64(time.Second) / f.is.perSecond))
	return f.idle.Sub(arrives)
}

// arrive counts a request, and returns the script.
func (f *Faults) arrive(operation string) (script func(Request) Fault, number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.arrived == nil {
		f.arrived = map[string]int{}
	}
	f.arrived[operation]++
	return f.is.script, f.arrived[operation]
}

// tableOf returns the table that a request names, if it is one.
func tableOf(input []byte) string {
	var named struct{ TableName string }
	_ = json.Unmarshal(input, &named) // what is no JSON names none
	return named.TableName
}
