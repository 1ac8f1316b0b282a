package redisstore

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/store"
)

// minute is an epoch, in ms. Those of a simulated server start with it.
const minute = bucket.EpochLength

// epoch returns the number of the n-th epoch that ends after the start of a simulated server.
func epoch(n int64) int64 { return t0/minute + n }

// Limits of jobs, in schema order, after one that refills.
const (
	perDay = 1 + iota
	usd
	parallel
	jobLimits
)

// jobs is a resource with all sorts of limits. One refills; there are 100 tokens a day, and 1000 an hour
// from the first use, whose holds come back; and 20 slots. A project has half of it again.
func jobs() *definition {
	def := gpt4()
	def.spec.Limits = []string{"rpm", "daily", "usd", "parallel"}
	def.spec.Held = []bool{false, false, true, true}
	for i := range def.spec.Kinds {
		more := int64(2 + i)
		k := &def.spec.Kinds[i]
		k.PerCall = make([]int64, jobLimits)
		k.Limits = []bucket.Limit{bucket.Per(3000*more, time.Minute), bucket.InWindows(50*more, 24*time.Hour),
			bucket.InWindows(500*more, time.Hour), bucket.InFlight(10 * more)}
		k.Windows = []*bucket.Calendar{nil, {Unit: bucket.Day},
			{Unit: bucket.FirstUse, Length: hour}, nil}
	}
	return def
}

// job is a call that costs so many tokens of each limit of jobs.
func (d *process) job(cost [jobLimits]int64, entities ...string) *store.Call {
	part := store.Part{Def: d.session.(*session).resources[0].def, Cost: make([]int64, jobLimits)}
	for i, n := range cost {
		part.Cost[i] = n * token
	}
	if entities == nil {
		entities = []string{"user-alice"}
	}
	for kind, entity := range entities {
		part.Buckets = append(part.Buckets, store.Bucket{Entity: entity, Kind: kind})
	}
	return &store.Call{Parts: []store.Part{part}}
}

// begin acquires a job that is to be admitted. The call is its lease then.
func (d *process) begin(t testing.TB, cost [jobLimits]int64, entities ...string) *store.Call {
	t.Helper()
	call := d.job(cost, entities...)
	if err := d.session.Acquire(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	call.Parts[0].NoteCharges()
	return call
}

// end settles a job. It costs the slots that it took.
func (d *process) end(t testing.TB, lease *store.Call, actual [jobLimits]int64) {
	t.Helper()
	part := &lease.Parts[0]
	part.Actual = make([]int64, jobLimits)
	for i, n := range actual {
		part.Actual[i] = n * token
	}
	part.Actual[parallel] = part.Cost[parallel]
	if err := d.session.Settle(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}

// extend extends the holds of one charge of user-alice's bucket, and returns their epochs.
func (d *process) extend(t testing.TB, held bucket.Charge) []int64 {
	t.Helper()
	call := d.job([jobLimits]int64{})
	call.Parts[0].Buckets[0].Charges = []bucket.Charge{held}
	if err := d.session.Extend(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	return call.Parts[0].Buckets[0].Epochs
}

// leftOf compares what is left of a limit, and its cells, with want, by a peek.
func (d *process) leftOf(t testing.TB, limit int, tokens, even, odd int64) {
	t.Helper()
	call := d.job([jobLimits]int64{})
	if err := d.session.Peek(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	b := call.Parts[0].Buckets[0].After.Balances[limit]
	got, want := [3]int64{b.Tokens, b.Cells[0], b.Cells[1]}, [3]int64{tokens * token, even * token, odd * token}
	if got != want {
		t.Errorf("limit %d: left, and held in even and odd epochs, are %d, want %d", limit, got, want)
	}
}

// jobKey is the key of one of user-alice's limits.
func (s *server) jobKey(limit string) string {
	return database.Keys{Prefix: s.prefix}.Bucket("gpt-4", limit, "user-alice", "user-alice")
}

// working is a simulated server and a process with jobs.
func working(t testing.TB) (*server, *process) {
	t.Helper()
	s := simulated(t)
	return s, s.process(t, s.client(t), jobs(), runtime.WithClock(&handClock{}))
}

// inSlots is a cost of n slots alone.
func inSlots(n int64) [jobLimits]int64 { return [jobLimits]int64{parallel: n} }

// TestSlots: a call holds its slots in the epoch after the next, until it ends, whatever it settles to.
func TestSlots(t *testing.T) {
	_, d := working(t)
	first, second := d.begin(t, inSlots(12)), d.begin(t, inSlots(7))
	b := &second.Parts[0].Buckets[0]
	if want := []int64{0, 0, 0, epoch(2)}; !slices.Equal(b.Epochs, want) {
		t.Errorf("held in %d, want %d", b.Epochs, want)
	}
	if after := b.After.Balances[parallel]; after.Cells != [2]int64{19 * token, 0} || after.Epoch != epoch(1) ||
		after.Tokens != token || after.Held(t0) != 19*token {
		t.Errorf("after it: %+v", after)
	}
	err := d.session.Acquire(t.Context(), d.job(inSlots(2)))
	denied, ok := errors.AsType[*store.DeniedError](err)
	if !ok || denied.Limit != "parallel" || denied.RetryAfter != bucket.FullRetry || denied.Available != 1 ||
		!denied.Resets.IsZero() {
		t.Errorf("%+v, want a denial of 2 slots of 1 for a second", err)
	}
	d.end(t, first, inSlots(12))
	d.leftOf(t, parallel, 13, 7, 0)
	second.Parts[0].Actual = make([]int64, jobLimits) // a release
	if err := d.session.Settle(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	d.leftOf(t, parallel, 20, 0, 0)
	d.calls(t, "levels missing", "acquire applied", "acquire applied", "acquire refused", "settle applied",
		"peek found", "settle applied", "peek found")
}

// TestSlotsAtOnce: 64 callers in three processes get exactly the slots that there are, also on a real Redis.
func TestSlotsAtOnce(t *testing.T) {
	s, def := newServer(t), jobs()
	var all []*process
	for range 3 {
		all = append(all, s.process(t, s.client(t), def))
	}
	for range 3 {
		var mu sync.Mutex
		var leases []*store.Call
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				call := all[i%len(all)].job(inSlots(3))
				err := all[i%len(all)].session.Acquire(t.Context(), call)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					call.Parts[0].NoteCharges()
					leases = append(leases, call)
				} else if !isA[*store.DeniedError](err) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(leases) != 20/3 {
			t.Errorf("%d calls of 3 slots are admitted, want %d", len(leases), 20/3)
		}
		for _, lease := range leases {
			wg.Go(func() { all[0].end(t, lease, inSlots(3)) })
		}
		wg.Wait()
	}
	all[0].leftOf(t, parallel, 20, 0, 0)
	ttl := s.client(t).TTL(t.Context(), s.jobKey("parallel")).Val()
	if s.mini == nil && (ttl < time.Minute || ttl > 3*time.Minute) {
		t.Errorf("the hash lives for %v, want until a minute after the last hold", ttl)
	}
}

// TestLeasesHold: leases of a Limiter hold what they take until they end, with all that they took since.
func TestLeasesHold(t *testing.T) {
	s := newServer(t)
	d := s.process(t, s.client(t), history())
	lease, err := d.Acquire(t.Context(), alice, tokens2{10, 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.More(t.Context(), tokens2{5, 1}); err != nil {
		t.Fatal(err)
	}
	d.left(t, alice, tokens2{25, 0})
	if _, err := d.Acquire(t.Context(), alice, tokens2{0, 1}); !isA[*store.DeniedError](err) {
		t.Errorf("%v, want a denial", err)
	}
	if err := lease.Settle(t.Context(), tokens2{4, 0}); err != nil {
		t.Fatal(err)
	}
	d.left(t, alice, tokens2{36, 4})
	for _, end := range []func(*runtime.Lease[tokens2], context.Context){
		(*runtime.Lease[tokens2]).Keep, (*runtime.Lease[tokens2]).Release,
	} {
		if lease, err = d.Acquire(t.Context(), alice, tokens2{10, 4}); err != nil {
			t.Fatal(err)
		}
		end(lease, t.Context())
		d.left(t, alice, tokens2{26, 4})
	}
}

// TestSettleWithoutHolds: a settle that changes nothing is not written.
func TestSettleWithoutHolds(t *testing.T) {
	_, d := working(t)
	cost := [jobLimits]int64{1, 1, 0, 0}
	lease := d.begin(t, cost)
	if b := lease.Parts[0].Buckets[0]; b.Epochs != nil || b.Charges[0].Holds() {
		t.Errorf("%+v holds something", b.Charges)
	}
	d.end(t, lease, cost)
	d.calls(t, "levels missing", "acquire applied")
}

// TestHoldsOfTheDead: they come back at the end of their epoch, and no earlier, slots and tokens of a window.
// Those of a window that does not release them stay charged.
func TestHoldsOfTheDead(t *testing.T) {
	s, d := working(t)
	s.at(10_000)
	d.begin(t, [jobLimits]int64{10, 10, 10, 5})
	s.at(minute + 1)
	d.begin(t, [jobLimits]int64{10, 10, 10, 5})
	for _, test := range []struct{ at, usd, slots, even, odd int64 }{
		{2*minute - 1, 980, 10, 1, 1}, {2 * minute, 990, 15, 0, 1}, {3*minute - 1, 990, 15, 0, 1},
		{3 * minute, 1000, 20, 0, 0},
	} {
		s.at(test.at)
		d.leftOf(t, usd, test.usd, 10*test.even, 10*test.odd)
		d.leftOf(t, parallel, test.slots, 5*test.even, 5*test.odd)
		d.leftOf(t, perDay, 80, 0, 0)
	}
	d.leftOf(t, perDay, 80, 0, 0)
}

// TestSwept: the first write after an epoch tells observers what came back.
func TestSwept(t *testing.T) {
	s := simulated(t)
	var swept []int64
	d := s.process(t, s.client(t), jobs(), runtime.WithObserver(&store.Observer{
		Store: func(_ context.Context, e store.StoreEvent) {
			if e.Path == pathAcquire && e.Outcome != "unloaded" {
				swept = append(swept, e.Swept)
			}
		},
	}))
	d.begin(t, [jobLimits]int64{usd: 10, parallel: 5})
	s.at(2 * minute)
	d.leftOf(t, parallel, 20, 0, 0) // a peek writes nothing
	for _, n := range []int64{21, 20, 0} {
		_ = d.session.Acquire(t.Context(), d.job(inSlots(n)))
	}
	d.begin(t, [jobLimits]int64{usd: 1})
	if want := []int64{0, 5, 0, 10}; !slices.Equal(swept, want) {
		t.Errorf("swept are %d, want %d", swept, want)
	}
}

// TestSettleOfHeldTokens: a settle charges what it was, whatever has become of the hold.
func TestSettleOfHeldTokens(t *testing.T) {
	reserve := [jobLimits]int64{usd: 100}
	for name, test := range map[string]struct{ at, actual, left int64 }{
		"less":                    {0, 30, 970},
		"all":                     {0, 100, 900},
		"more":                    {0, 150, 850},
		"nothing":                 {0, 0, 1000},
		"less, of a lost hold":    {2 * minute, 30, 970},
		"more, of a lost hold":    {2 * minute, 150, 850},
		"nothing of a lost hold":  {2 * minute, 0, 1000},
		"less, in another window": {hour, 30, 1000},
		"more, in another window": {hour, 150, 950},
	} {
		s, d := working(t)
		lease := d.begin(t, reserve)
		s.at(test.at)
		d.end(t, lease, [jobLimits]int64{usd: test.actual})
		if d.leftOf(t, usd, test.left, 0, 0); t.Failed() {
			t.Fatalf("a settle for %s", name)
		}
	}
}

// TestSettleOfCharges: a lease with charges of several epochs and windows ends each, the newest gives back
// first.
func TestSettleOfCharges(t *testing.T) {
	s, d := working(t)
	lease := d.begin(t, [jobLimits]int64{usd: 100, parallel: 1})
	s.at(minute + 1)
	more := d.begin(t, [jobLimits]int64{usd: 40})
	d.leftOf(t, usd, 860, 100, 40)
	lease.Parts[0].Buckets[0].Charges = slices.Concat(lease.Parts[0].Buckets[0].Charges,
		more.Parts[0].Buckets[0].Charges)
	lease.Parts[0].Cost = slices.Clone(lease.Parts[0].Cost)
	lease.Parts[0].Cost[usd] += 40 * token
	s.at(2 * minute) // the older hold is over
	d.end(t, lease, [jobLimits]int64{usd: 90})
	d.leftOf(t, usd, 910, 0, 0)
	d.leftOf(t, parallel, 20, 0, 0)
}

// TestExtend: holds move on while their epoch is not over, and those of other leases stay.
func TestExtend(t *testing.T) {
	s, d := working(t)
	lease := d.begin(t, [jobLimits]int64{usd: 100, parallel: 5})
	d.begin(t, inSlots(2))
	held := lease.Parts[0].Buckets[0].Charges[0]
	if got := d.extend(t, held); got[usd] != epoch(2) || got[parallel] != epoch(2) {
		t.Errorf("with a minute to go, held until %d", got)
	}
	s.at(2*minute - 1)
	held.Epochs = d.extend(t, held)
	if want := []int64{0, 0, epoch(3), epoch(3)}; !slices.Equal(held.Epochs, want) {
		t.Errorf("held until %d, want %d", held.Epochs, want)
	}
	d.leftOf(t, parallel, 13, 2, 5)
	d.leftOf(t, usd, 900, 0, 100)
	s.at(2 * minute)
	d.leftOf(t, parallel, 15, 0, 5)
	lease.Parts[0].Buckets[0].Charges[0] = held
	d.end(t, lease, [jobLimits]int64{usd: 7})
	d.leftOf(t, parallel, 20, 0, 0)
	d.leftOf(t, usd, 993, 0, 0)
}

// TestExtendLost: what is over, in doubt or gone is not held again.
func TestExtendLost(t *testing.T) {
	s, d := working(t)
	lease := d.begin(t, inSlots(5))
	held := lease.Parts[0].Buckets[0].Charges[0]
	d.calls(t, "levels missing", "acquire applied")
	doubt := bucket.Charge{Cost: held.Cost, Epochs: []int64{0, 0, 0, bucket.Lost}}
	if got := d.extend(t, doubt); got[parallel] != bucket.Lost {
		t.Errorf("in doubt, held until %d", got)
	}
	d.calls(t)
	s.at(2 * minute)
	if got := d.extend(t, held); got[parallel] != bucket.Lost {
		t.Errorf("over, but held until %d", got)
	}
	d.calls(t, "extend applied")
	d.leftOf(t, parallel, 20, 0, 0)
	s.at(0)
	s.mini.Del(s.jobKey("parallel"))
	if got := d.extend(t, held); got[parallel] != bucket.Lost || s.mini.Exists(s.jobKey("parallel")) {
		t.Errorf("gone, but held until %d", got)
	}
}

// unsent is a hook that fails script calls with its error, without sending them.
type unsent struct{ err error }

func (unsent) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f unsent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		cmd.SetErr(f.err)
		return f.err
	}
}

func (unsent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestExtendFails: the epochs of an extension that Redis did not run are those from before. Without a reply
// nobody knows them.
func TestExtendFails(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		known bool
	}{
		"connection refused": {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		"no reply":           {io.EOF, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, d := working(t)
			held := d.begin(t, inSlots(5)).Parts[0].Buckets[0].Charges[0]
			d.store.db.Client.AddHook(unsent{test.err})
			call := d.job([jobLimits]int64{})
			call.Parts[0].Buckets[0].Charges = []bucket.Charge{held}
			err := d.session.Extend(t.Context(), call)
			if down, ok := errors.AsType[*store.UnavailableError](err); !ok || !errors.Is(down, test.err) {
				t.Errorf("%v, want that Redis is unavailable for %v", err, test.err)
			}
			if got := call.Parts[0].Buckets[0].Epochs; test.known != slices.Equal(got, held.Epochs) ||
				!test.known && got != nil {
				t.Errorf("held until %d", got)
			}
		})
	}
}

// TestServerClock: the session goes by Redis's clock, whichever way and whenever it is off.
func TestServerClock(t *testing.T) {
	s, d := working(t)
	for _, at := range []int64{0, 2 * minute, minute, minute + 500} {
		s.at(at)
		d.begin(t, inSlots(1))
		if off := d.session.Now(time.UnixMilli(t0)) - t0 - at; off < -1000 || off > 1000 {
			t.Errorf("it is %d ms ahead of Redis %d ms after the start", off, at)
		}
	}
}

// TestExtendAfterAFailover: a hold that a replica did not have counts again.
func TestExtendAfterAFailover(t *testing.T) {
	s, d := working(t)
	d.begin(t, inSlots(1))
	held := d.begin(t, inSlots(5)).Parts[0].Buckets[0].Charges[0]
	s.mini.HSet(s.jobKey("parallel"), "h0", "1000")
	s.at(minute)
	if got := d.extend(t, held); got[parallel] != epoch(3) {
		t.Errorf("held until %d, want %d", got, epoch(3))
	}
	d.leftOf(t, parallel, 15, 0, 5) // the other hold counts again when it is extended
}

// TestReturnAfterAFailover: a return takes no more than its cell has.
func TestReturnAfterAFailover(t *testing.T) {
	s, d := working(t)
	lease := d.begin(t, [jobLimits]int64{usd: 100, parallel: 5})
	s.mini.HSet(s.jobKey("parallel"), "h0", "1000")
	s.mini.HSet(s.jobKey("usd"), "h0", "1000")
	d.end(t, lease, [jobLimits]int64{usd: 30})
	d.leftOf(t, parallel, 20, 0, 0)
	d.leftOf(t, usd, 970, 0, 0)
}

// TestUnknownOutcome: neither an extension nor a settle without a reply is repeated.
func TestUnknownOutcome(t *testing.T) {
	s := simulated(t)
	client := s.client(t)
	d := s.process(t, client, jobs(), runtime.WithClock(&handClock{}))
	lease := d.begin(t, inSlots(5))
	held := lease.Parts[0].Buckets[0].Charges[0]
	d.calls(t, "levels missing", "acquire applied")
	s.at(minute)
	client.AddHook(&unanswered{})
	call := d.job(inSlots(0))
	call.Parts[0].Buckets[0].Charges = []bucket.Charge{held}
	err := d.session.Extend(t.Context(), call)
	if !isA[*store.UnavailableError](err) || call.Parts[0].Buckets[0].Epochs != nil {
		t.Errorf("%v, held until %d, want an UnavailableError", err, call.Parts[0].Buckets[0].Epochs)
	}
	d.calls(t, "extend unknown")
	lease.Parts[0].Actual = lease.Parts[0].Cost
	if err := d.session.Settle(t.Context(), lease); !isA[*store.UnavailableError](err) {
		t.Errorf("%v, want an UnavailableError", err)
	}
	d.calls(t, "settle unknown")
}

// unanswered is a hook of a client whose scripts run, but whose replies are lost.
type unanswered struct{ noReads }

// ProcessHook implements redis.Hook.
func (*unanswered) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "evalsha" {
			err = io.ErrUnexpectedEOF
			cmd.SetErr(err)
		}
		return err
	}
}

// TestRefundOfAnAbandonedHold: it names the epoch that the reply has shown.
func TestRefundOfAnAbandonedHold(t *testing.T) {
	_, d := working(t)
	r := d.session.(*session).newRequest(t.Context(), d.job([jobLimits]int64{1, 2, 3, 4}), pathAcquire,
		func(part *store.Part) []int64 { return part.Cost })
	if err := d.session.(*session).perform(r); err != nil {
		t.Fatal(err)
	}
	want := []any{"0", int64(-1), int64(0), 1, int64(2 * token), t0 + midnight,
		int64(0), 1, int64(0), t0 + hour, epoch(2), int64(3 * token),
		int64(0), 1, int64(0), int64(0), epoch(2), int64(4 * token)}
	if got := r.refundRequest().args; !slices.Equal(got, want) {
		t.Errorf("%#v, want %#v", got, want)
	}
	d.session.(*session).queues.single.pipelineOf(t, r.refundRequest())
	for limit, all := range []int64{6000, 100, 1000, 20} {
		d.leftOf(t, limit, all, 0, 0)
	}
}

// pipelineOf sends a request.
func (q *queue) pipelineOf(t testing.TB, r *request) {
	t.Helper()
	r.done = make(chan struct{})
	p := &pipeline{queue: q}
	p.add(r)
	p.send()
	if err := r.result(); err != nil {
		t.Error(err)
	}
}

// TestResetOfHolds: after a reset all is there, and leases from before give nothing back.
func TestResetOfHolds(t *testing.T) {
	s, d := working(t)
	def := d.session.(*session).resources[0].def.(*definition)
	early := d.begin(t, [jobLimits]int64{usd: 100, parallel: 15})
	d.fill(t, def)
	d.leftOf(t, usd, 1000, 0, 0)
	d.leftOf(t, parallel, 20, 0, 0)
	after := d.begin(t, [jobLimits]int64{usd: 200, parallel: 18})
	if got, want := after.Parts[0].Buckets[0].Epochs[parallel], epoch(2+bucket.NewRing); got != want {
		t.Errorf("held in %d, want %d: no lease from before has that", got, want)
	}
	if got := d.extend(t, early.Parts[0].Buckets[0].Charges[0]); got[parallel] != bucket.Lost {
		t.Errorf("held until %d", got)
	}
	d.end(t, early, [jobLimits]int64{usd: 50})
	d.leftOf(t, usd, 800, 200, 0)
	d.leftOf(t, parallel, 2, 18, 0)
	s.at(4*minute - 1)
	d.leftOf(t, parallel, 2, 18, 0)
	s.at(4 * minute)
	d.leftOf(t, parallel, 20, 0, 0)
	d.fill(t, def)
	d.fill(t, def) // of a limit whose cells begin later
	d.begin(t, inSlots(20))
	if ttl := s.mini.TTL(s.jobKey("parallel")); ttl < 7*time.Minute {
		t.Errorf("lives for %v, less than its holds may last", ttl)
	}
}

// TestResetRepairsHolds: a reset repairs a malformed hash, which calls and operators name until then.
func TestResetRepairsHolds(t *testing.T) {
	for _, fields := range [][]any{{"h0", "many", "h1", 0, "e", 1}, {"h0", 1}, {"e", 7}, {"h1", 1, "e", 7},
		{"h0", 0, "h1", "inf", "e", epoch(2)}, {"h0", 0, "h1", 0, "e", "inf"},
		{"h0", "nan", "h1", 1, "e", epoch(2)}} {
		s, d := working(t)
		if err := s.client(t).HSet(t.Context(), s.jobKey("parallel"), fields...).Err(); err != nil {
			t.Fatal(err)
		}
		if err := d.session.Acquire(t.Context(), d.job(inSlots(1))); !isA[*store.SetupError](err) {
			t.Errorf("%v: %v, want a SetupError", fields, err)
		}
		_, err := d.store.Inspect(t.Context(), "gpt-4", "", "user-alice", "parallel")
		if !isA[*store.SetupError](err) {
			t.Errorf("%v: an operator's look: %v, want a SetupError", fields, err)
		}
		d.fill(t, d.session.(*session).resources[0].def.(*definition))
		d.begin(t, inSlots(20))
	}
}

// TestChangedSlots: a higher capacity counts at once. Below a lower one calls go on, and none begins.
func TestChangedSlots(t *testing.T) {
	_, d := working(t)
	lease, revision := d.begin(t, inSlots(20)), store.Revision("")
	for _, test := range []struct{ capacity, left int64 }{{30, 10}, {12, -8}} {
		limit := bucket.InFlight(test.capacity)
		var err error
		revision, err = d.session.Overrides().Set(t.Context(), d.session.(*session).resources[0].spec,
			store.Stored{At: "user-alice", Limits: []*bucket.Limit{nil, nil, nil, &limit}, Revision: revision})
		if err != nil {
			t.Fatal(err)
		}
		d.leftOf(t, parallel, test.left, 20, 0)
	}
	if err := d.session.Acquire(t.Context(), d.job(inSlots(1))); !isA[*store.DeniedError](err) {
		t.Errorf("%v, want a denial", err)
	}
	d.end(t, lease, inSlots(20))
	d.begin(t, inSlots(12))
}

// TestOverrideOfAnotherSort: an override of a limit in flight cannot make it refill, and so the other way.
func TestOverrideOfAnotherSort(t *testing.T) {
	for limit, override := range map[string]string{"parallel": "1000 1000 1000 60000", "rpm": "1000 1000 0 1",
		"usd": "1000 1000 0 1", "daily": "1000 1000 1000 60000"} {
		s, d := working(t)
		key := database.Keys{Prefix: s.prefix}.Config("gpt-4", "user-alice")
		s.mini.HSet(key, "l_"+limit, override, "ver", "1")
		if err := d.session.Acquire(t.Context(), d.job(inSlots(1))); !isA[*store.SetupError](err) ||
			!strings.Contains(err.Error(), "malformed") {
			t.Errorf("%s: %v, want a SetupError", limit, err)
		}
	}
}

// TestInspectHolds: operators see what is held, in which epochs.
func TestInspectHolds(t *testing.T) {
	_, d := working(t)
	d.begin(t, [jobLimits]int64{usd: 60, parallel: 4})
	settled := d.begin(t, [jobLimits]int64{usd: 30})
	d.end(t, settled, [jobLimits]int64{usd: 25})
	b, err := d.store.Inspect(t.Context(), "gpt-4", "", "user-alice", "usd", "parallel")
	want := []StoredLimit{
		{Name: "parallel", Cells: [2]int64{4 * token, 0}, Epoch: epoch(1)},
		{Name: "usd", Used: 25 * token, Ends: t0 + hour, Cells: [2]int64{60 * token, 0}, Epoch: epoch(1)},
	}
	slices.SortFunc(b.Limits, func(a, b StoredLimit) int { return strings.Compare(a.Name, b.Name) })
	if err != nil || !slices.Equal(b.Limits, want) {
		t.Fatalf("%+v, %v, want %+v", b, err, want)
	}
	var listed []StoredLimit
	for page, err := range d.store.Buckets(t.Context(), "gpt-4", "user") {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, page.Buckets[0].Limits...)
	}
	if !slices.Equal(listed, want) {
		t.Errorf("%+v, want %+v", listed, want)
	}
	of := d.session.(*session).resources[0].spec.Kinds[0].Limits
	for i, left := range []int64{16, 915} {
		balance := b.Limits[i].Balance(of[parallel-i])
		later := bucket.Available(balance, 0, t0+2*minute)
		if balance.Tokens != left*token || later != balance.Tokens+want[i].Cells[0] {
			t.Errorf("%+v, want %d left, and with what is held in 2 minutes", balance, left)
		}
	}
}

// TestHoldsOfAnOldHash: a window that was stored without holds keeps what is used, gives back to leases from
// before, and begins to count where none of them can have held anything.
func TestHoldsOfAnOldHash(t *testing.T) {
	s, d := working(t)
	before := jobs()
	before.spec.Held = []bool{false, false, false, true}
	old := s.process(t, s.client(t), before, runtime.WithClock(&handClock{}))
	early := old.begin(t, [jobLimits]int64{usd: 100})
	d.leftOf(t, usd, 900, 0, 0)
	lease := d.begin(t, [jobLimits]int64{usd: 200})
	if got, want := lease.Parts[0].Buckets[0].Epochs[usd], epoch(2+bucket.NewRing); got != want {
		t.Errorf("held in %d, want %d", got, want)
	}
	d.leftOf(t, usd, 700, 200, 0)
	old.end(t, early, [jobLimits]int64{usd: 30})
	d.leftOf(t, usd, 770, 200, 0)
	d.end(t, lease, [jobLimits]int64{usd: 150})
	d.leftOf(t, usd, 820, 0, 0)
}

// TestHoldsOfAChain: a chain takes of all its buckets or of none, each in an epoch of its own.
func TestHoldsOfAChain(t *testing.T) {
	s, d := working(t)
	chain := []string{"user-alice", "project-p"}
	project := d.job(inSlots(0))
	project.Parts[0].Buckets = []store.Bucket{{Entity: "project-p", Kind: 1}}
	def := d.session.(*session).resources[0].def.(*definition)
	if err := d.session.Overrides().Fill(t.Context(), def.spec, 1, "project-p", "project-p"); err != nil {
		t.Fatal(err)
	}
	lease := d.begin(t, inSlots(15), chain...)
	for i, want := range []int64{epoch(2), epoch(2 + bucket.NewRing)} {
		if got := lease.Parts[0].Buckets[i].Epochs[parallel]; got != want {
			t.Errorf("held in %d of bucket %d, want %d", got, i, want)
		}
	}
	if err := d.session.Acquire(t.Context(), d.job(inSlots(6), chain...)); !isA[*store.DeniedError](err) {
		t.Errorf("%v, want a denial", err)
	}
	left := func() int64 {
		if err := d.session.Peek(t.Context(), project); err != nil {
			t.Fatal(err)
		}
		return project.Parts[0].Buckets[0].After.Balances[parallel].Tokens / token
	}
	if got := left(); got != 15 {
		t.Errorf("%d left of the project, want 15", got)
	}
	s.at(2 * minute)
	d.end(t, lease, inSlots(15))
	d.leftOf(t, parallel, 20, 0, 0)
	if got := left(); got != 30 {
		t.Errorf("%d left of the project, want 30", got)
	}
}

// TestHoldsOfOwnWindows: the calendar of the call decides, and its window's end clears the cells.
func TestHoldsOfOwnWindows(t *testing.T) {
	s, d := working(t)
	own := []*bucket.Calendar{nil, {Unit: bucket.Day}, {Unit: bucket.Day, At: 8*time.Hour + time.Minute}, nil}
	take := func() *store.Call {
		call := d.job([jobLimits]int64{usd: 600})
		call.Parts[0].Buckets[0].Windows = own
		if err := d.session.Acquire(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		call.Parts[0].NoteCharges()
		return call
	}
	early := take()
	if got := early.Parts[0].Buckets[0].Ends[usd]; got != t0+minute {
		t.Errorf("until %d ms, want a minute", got-t0)
	}
	s.at(minute)
	late := take()
	if b := late.Parts[0].Buckets[0].After.Balances[usd]; b.Cells != [2]int64{0, 600 * token} {
		t.Errorf("held are %d, want what the new window has", b.Cells)
	}
	d.end(t, early, [jobLimits]int64{usd: 10})
	d.end(t, late, [jobLimits]int64{usd: 20})
	d.leftOf(t, usd, 980, 0, 0)
}

// TestHoldsWithOthers: a call charges resources with holds and without, all or nothing.
func TestHoldsWithOthers(t *testing.T) {
	s, d := working(t)
	plainOne, windowedOne := gpt4(), daily(nil)
	plainOne.spec.Resource, windowedOne.spec.Resource = "gpt-5", "gpt-6"
	env := *d.session.(*session).env
	opened, err := d.store.Open(&env, d.session.(*session).resources[0].def, plainOne, windowedOne)
	if err != nil {
		t.Fatal(err)
	}
	all := func(n int64) *store.Call {
		call := d.job(inSlots(n))
		for _, def := range []*definition{plainOne, windowedOne} {
			call.Parts = append(call.Parts, store.Part{Def: def, Buckets: []store.Bucket{{Entity: "user-alice"}},
				Cost: []int64{n * token, n * token}, Actual: make([]int64, 2)})
		}
		return call
	}
	lease := all(15)
	if err := opened.Acquire(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if err := opened.Acquire(t.Context(), all(6)); !isA[*store.DeniedError](err) {
		t.Errorf("%v, want a denial", err)
	}
	for i := range lease.Parts {
		lease.Parts[i].NoteCharges()
	}
	lease.Parts[0].Actual = make([]int64, jobLimits)
	if err := opened.Settle(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{20, 60, 100} {
		of := []int{parallel, 0, 1}[i]
		if got := lease.Parts[i].Buckets[0].After.Balances[of].Tokens; got != want*token {
			t.Errorf("part %d: %d left, want %d", i, got/token, want)
		}
	}
	if got := s.mini.HGet(s.jobKey("parallel"), "h0"); got != "0" {
		t.Errorf("%s are held", got)
	}
}
