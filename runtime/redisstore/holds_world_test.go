package redisstore

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// margin is how long before the end of its first hold a lease ends, in ms.
const margin = 3000

// A world is a Redis, processes that hold leases of a few buckets, and what is to be true of them.
type world struct {
	t      testing.TB
	s      *server
	broken broken
	now    int64 // ms since t0
	ahead  int64 // of the server's clock, ms

	processes []*worker
	leases    []*lease
	fault     fault
	late      []late
	executed  func() // called when Redis has run the next command
	*connection

	capacity map[key]int64    // the largest that was in force, in millitokens
	used     map[key]usage    // by the settles that Redis has run
	lost     map[key][]hold   // holds of which a fail-over has lost the write
	left     map[key][]hold   // holds that may be there, and that no lease has
	resets   map[string]int64 // by entity, when its bucket was reset, in ms since t0
	versions map[string]store.Revision
	doing    string // the current step
}

// connection is what worlds on one server have in common.
type connection struct {
	raw, client *redis.Client // without faults, and of the processes
	reader      *Store
	world       *world // whose commands client sends
}

// late is a command that has not arrived yet.
type late struct {
	redis.Cmder

	executed func()
}

// key is one limit of a bucket.
type key struct {
	entity string
	limit  int
}

// hold is tokens that are held in an epoch.
type hold struct{ tokens, epoch int64 }

// usage is what is used of the window until end.
type usage struct{ end, used int64 }

// broken is a store without one of its parts.
type broken struct {
	part, instead string // of the script that charges
	reset         string // what the script that resets has instead of NewRing
	ownEpochs     bool   // processes go by their own clocks, not by the epochs of replies
	sweepsByOwn   bool   // and the script sweeps by these
}

// fault is what becomes of the next command that charges.
type fault int

const (
	none fault = iota
	lostRequest
	lostReply
	lateRequest
	failOver // and its write is lost
)

// worker is a process.
type worker struct {
	*process
	clock *handClock
	off   int64 // of its clock, ms
}

// lease is a call under way.
type lease struct {
	of       *worker
	chain    []store.Bucket  // each with its charges
	cost     []int64         // of all charges
	running  bool            // it was not told to stop
	until    int64           // when a hold is over that is in doubt, or was lost
	excepted map[string]bool // entities that were reset meanwhile
}

// history is a resource of a window whose holds come back, and of slots. There are few: they are often taken.
func history() *definition {
	def := gpt4()
	def.spec.Limits, def.spec.Held = []string{"usd", "parallel"}, []bool{true, true}
	for i := range def.spec.Kinds {
		k := &def.spec.Kinds[i]
		k.Limits = []bucket.Limit{bucket.InWindows(40, 5*time.Minute), bucket.InFlight(int64(4 + 2*i))}
		k.Windows = []*bucket.Calendar{{Unit: bucket.FirstUse, Length: 5 * minute}, nil}
	}
	return def
}

// chains are those that calls charge.
var chains = [][]store.Bucket{
	{{Entity: "user-a"}, {Entity: "project-p", Kind: 1}},
	{{Entity: "user-b"}, {Entity: "project-p", Kind: 1}},
	{{Entity: "project-p", Kind: 1}},
}

// entities are those of chains, by their kind.
var entities = map[string]int{"user-a": 0, "user-b": 0, "project-p": 1}

// connect returns clients of s that wait for as long as the machine takes.
func connect(t testing.TB, s *server) *connection {
	t.Helper()
	patient := func(o *redis.Options) { o.ReadTimeout = -1 }
	c := &connection{raw: s.client(t, patient), client: s.client(t, patient)}
	c.reader = New(c.raw, Prefix(s.prefix))
	c.client.AddHook(c)
	return c
}

func newWorld(t testing.TB, s *server, c *connection, b broken) *world {
	t.Helper()
	w := &world{t: t, s: s, broken: b, connection: c, capacity: map[key]int64{}, used: map[key]usage{},
		lost: map[key][]hold{}, left: map[key][]hold{}, resets: map[string]int64{},
		versions: map[string]store.Revision{}}
	c.world = w
	s.mini.FlushAll()
	s.at(0)
	for entity, kind := range entities {
		for i, l := range history().spec.Kinds[kind].Limits {
			w.capacity[key{entity, i}] = l.Burst
		}
	}
	for i := range 3 {
		w.processes = append(w.processes, nil)
		w.restart(i)
	}
	return w
}

// restart kills the i-th process, and starts another one in its place.
func (w *world) restart(i int) {
	if old := w.processes[i]; old != nil {
		w.leases = slices.DeleteFunc(w.leases, func(l *lease) bool {
			if l.of == old {
				w.leave(l.chain)
			}
			return l.of == old
		})
	}
	next := &worker{clock: &handClock{}, off: int64(i-1) * 400}
	next.process = w.s.process(w.t, w.client, history(), runtime.WithClock(next.clock))
	if w.broken.part != "" {
		next.spoiltHolds(w.t, w.broken.part, w.broken.instead)
	}
	if w.broken.sweepsByOwn {
		clock := fmt.Sprintf("math.floor((now + %d) / 60000)", 100*next.off)
		next.spoiltHolds(w.t, "math.floor(now / 60000)", clock)
	}
	script := next.session.(*session).loops[holding]
	if err := w.raw.ScriptLoad(w.t.Context(), script.eval[1].(string)).Err(); err != nil {
		w.t.Fatal(err)
	}
	w.processes[i] = next
	w.setClocks()
}

// spoiltHolds is spoilt for the script for holds.
func (d *process) spoiltHolds(t testing.TB, part, instead string) {
	t.Helper()
	text := strings.Replace(holdsScript, part, instead, 1)
	if text == holdsScript {
		t.Fatalf("no %q in the script", part)
	}
	script := newScript(text)
	script.any = true
	*d.session.(*session).loops[holding] = *script
}

// setClocks sets all clocks to the world's time.
func (w *world) setClocks() {
	w.s.at(w.now + w.ahead)
	for _, d := range w.processes {
		if d != nil {
			d.clock.since.Store(int64(time.Duration(w.now+d.off) * time.Millisecond))
		}
	}
}

// pass lets time pass. A lease whose first hold ends soon, by its process's clock, is told to stop.
func (w *world) pass(ms int64) {
	w.now += ms
	w.s.mini.FastForward(time.Duration(ms) * time.Millisecond)
	w.setClocks()
	for _, l := range w.leases {
		l.running = l.running && t0+w.now+l.of.off < l.end()-margin
	}
}

// end is when the first hold of l ends.
func (l *lease) end() int64 {
	end := l.until
	for _, b := range l.chain {
		for _, c := range b.Charges {
			for i, epoch := range c.Epochs {
				if c.Cost[i] > 0 && epoch > 0 {
					end = min(end, bucket.EpochEnd(epoch))
				}
			}
		}
	}
	return end
}

// serverNow is the server's time, in ms.
func (w *world) serverNow() int64 { return t0 + w.now + w.ahead }

// DialHook implements redis.Hook.
func (*connection) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (*connection) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements redis.Hook: it has faults happen to commands.
func (c *connection) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		w := c.world
		if w.executed == nil || cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		executed, fault := w.executed, w.fault
		w.executed, w.fault = nil, none
		restore := w.snapshot()
		lost := func() error {
			cmd.SetErr(io.ErrUnexpectedEOF)
			return io.ErrUnexpectedEOF
		}
		switch fault {
		case lostRequest:
			return lost()
		case lateRequest:
			w.late = append(w.late, late{redis.NewCmd(ctx, cmd.Args()...), executed})
			return lost()
		}
		err := next(ctx, cmd)
		if executed(); fault == failOver {
			restore()
		}
		if fault == lostReply {
			return lost()
		}
		return err
	}
}

// snapshot returns what puts the hashes of buckets back to what they are now. A replica takes over that did
// not have the writes since.
func (w *world) snapshot() (restore func()) {
	type hash struct {
		fields map[string]string
		ttl    time.Duration
	}
	all, used := map[string]hash{}, maps.Clone(w.used)
	buckets := func() (keys []string) {
		return slices.DeleteFunc(w.s.mini.Keys(), func(key string) bool { return strings.Contains(key, "#") })
	}
	for _, key := range buckets() {
		h := hash{map[string]string{}, w.s.mini.TTL(key)}
		fields, _ := w.s.mini.HKeys(key)
		for _, f := range fields {
			h.fields[f] = w.s.mini.HGet(key, f)
		}
		all[key] = h
	}
	return func() {
		for _, key := range buckets() {
			w.s.mini.Del(key)
		}
		for key, h := range all {
			for f, v := range h.fields {
				w.s.mini.HSet(key, f, v)
			}
			w.s.mini.SetTTL(key, h.ttl)
		}
		w.used = used
	}
}

// stored is what is stored of a limit of a bucket.
func (w *world) stored(k key) bucket.Balance {
	spec := history().spec
	b, err := w.reader.Inspect(w.t.Context(), spec.Resource, "", k.entity, spec.Limits[k.limit])
	if err != nil {
		w.t.Fatal(err)
	}
	limit := spec.Kinds[entities[k.entity]].Limits[k.limit]
	if b == nil {
		return bucket.Balance{Limit: limit, Tokens: limit.Burst}
	}
	return b.Limits[0].Balance(limit)
}

// wrong returns what is not as it is to be, "" if all is.
func (w *world) wrong() string {
	for entity := range entities {
		for i := range 2 {
			k := key{entity, i}
			if wrong := w.wrongOf(k, w.stored(k)); wrong != "" {
				limit := history().spec.Limits[i]
				return fmt.Sprintf("after %s at %d: %s of %s: %s", w.doing, w.now, limit, entity, wrong)
			}
		}
	}
	return ""
}

// wrongOf is wrong for one limit, which is stored as b.
func (w *world) wrongOf(k key, b bucket.Balance) string {
	now := w.serverNow()
	u := w.used[k]
	if got := used(b); b.Windowed() && b.Ends > now && b.Ends == u.end && got != u.used {
		return fmt.Sprintf("used are %d, want %d", got, u.used)
	}
	if b.Cells[0] < 0 || b.Cells[1] < 0 {
		return fmt.Sprintf("held are %d", b.Cells)
	}
	lost := int64(0)
	for _, h := range w.lost[k] {
		if h.epoch >= bucket.Epoch(now-1000) { // a replica's clock may differ
			lost += h.tokens
		}
	}
	running, held, most := w.held(k, b)
	if running > w.capacity[k]+lost {
		return fmt.Sprintf("%d run, capacity is %d", running, w.capacity[k])
	}
	for i, n := range b.Cells {
		epoch, soon := b.HeldIn(i), now+1000 // as above
		over := epoch < bucket.Epoch(soon) || b.Windowed() && b.Over(soon)
		if n > most[epoch] && !over {
			return fmt.Sprintf("%d are counted in epoch %d, but %d are held", n, epoch, most[epoch])
		}
	}
	for epoch, n := range held {
		counted := int64(0)
		if epoch == b.Epoch || epoch == b.Epoch+1 {
			counted = b.Cells[epoch&1]
		}
		if counted+lost < n {
			return fmt.Sprintf("%d of those that run are counted in epoch %d, want %d", counted, epoch, n)
		}
	}
	return ""
}

// held returns what leases that run hold of a limit that is stored as b: in all, and as far as they know its
// epoch, by epoch. most is what may be held, by epoch.
func (w *world) held(k key, b bucket.Balance) (running int64, held, most map[int64]int64) {
	held, most = map[int64]int64{}, map[int64]int64{}
	for _, h := range w.left[k] {
		most[h.epoch] += h.tokens
	}
	for _, l := range w.leases {
		for _, c := range l.chargesOf(k.entity) {
			if c.Epochs == nil || c.Cost[k.limit] == 0 {
				continue
			}
			tokens, epoch := c.Cost[k.limit], c.Epochs[k.limit]
			most[epoch] += tokens
			past := b.Windowed() && (c.Ends[0] != b.Ends || b.Over(w.serverNow()))
			if !l.running || l.excepted[k.entity] || past {
				continue
			}
			if running += tokens; epoch > 0 { // it is not in doubt
				held[epoch] += tokens
			}
		}
	}
	return running, held, most
}

// leave notes holds of the charges of a chain: their lease has ended, and they may be there.
func (w *world) leave(chain []store.Bucket) {
	for _, b := range chain {
		for _, c := range b.Charges {
			w.note(w.left, b.Entity, c.Cost, c.Epochs)
		}
	}
}

// note adds holds of a bucket to all.
func (w *world) note(all map[key][]hold, entity string, tokens, epochs []int64) {
	for i, epoch := range epochs {
		if epoch > 0 && tokens[i] > 0 {
			k := key{entity, i}
			all[k] = append(all[k], hold{tokens[i], epoch})
		}
	}
}

// taken notes what a command that has just run has taken of a bucket, or extended: no lease may have it.
func (w *world) taken(entity string, tokens []int64) {
	epochs := make([]int64, len(tokens))
	for i := range epochs {
		epochs[i] = max(bucket.Epoch(w.serverNow())+1, w.stored(key{entity, i}).Epoch)
	}
	w.note(w.left, entity, tokens, epochs)
}

// chargesOf returns the charges that l has of a bucket.
func (l *lease) chargesOf(entity string) []bucket.Charge {
	for _, b := range l.chain {
		if b.Entity == entity {
			return b.Charges
		}
	}
	return nil
}
