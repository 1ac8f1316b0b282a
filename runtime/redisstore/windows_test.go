package redisstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/store"
)

// The first boundaries of days in UTC after the start of a simulated server, in ms since that.
const (
	hour     = int64(time.Hour / time.Millisecond)
	midnight = 16 * hour
	next     = midnight + 24*hour
)

// Whole tokens, in millitokens.
const token = bucket.Milli

// daily is a resource with a limit that refills, and one of 100 tokens in windows by c, here of days.
func daily(c *bucket.Calendar) *definition {
	if c == nil {
		c = &bucket.Calendar{Unit: bucket.Day}
	}
	limits := []bucket.Limit{bucket.Per(6000, time.Minute), bucket.InWindows(100, 24*time.Hour)}
	def := gpt4()
	def.spec.Limits = []string{"rpm", "usd"}
	for i := range def.spec.Kinds {
		def.spec.Kinds[i].Limits, def.spec.Kinds[i].Windows = limits, []*bucket.Calendar{nil, c}
	}
	return def
}

// spoilt is a process whose script for windows has something instead of a part of it.
func (d *process) spoilt(t testing.TB, part, instead string) *process {
	t.Helper()
	text := strings.Replace(windowsScript, part, instead, 1)
	if text == windowsScript {
		t.Fatalf("no %q in the script", part)
	}
	script := newScript(text)
	script.any = true
	*d.session.(*session).loops[windowed] = *script
	return d
}

// call is a call on user-alice's bucket.
func (d *process) call(cost, actual int64, charges ...bucket.Charge) *store.Call {
	return &store.Call{Parts: []store.Part{{
		Def:     d.session.(*session).resources[0].def,
		Buckets: []store.Bucket{{Entity: "user-alice", Charges: charges}},
		Cost:    []int64{0, cost * token}, Actual: []int64{0, actual * token},
	}}}
}

// spend acquires cost tokens of the windowed limit.
func (d *process) spend(t testing.TB, cost int64) (bucket.Charge, error) {
	t.Helper()
	call := d.call(cost, 0)
	err := d.session.Acquire(t.Context(), call)
	taken := bucket.Charge{Cost: call.Parts[0].Cost, Ends: make([]int64, 2)}
	if after := call.Parts[0].Buckets[0].After; after != nil {
		taken.Ends[1] = after.Balances[1].Ends
	}
	return taken, err
}

// charged is spend of a call that is to be admitted in the window until end, in ms since the server's start.
func (d *process) charged(t testing.TB, cost, end int64) bucket.Charge {
	t.Helper()
	c, err := d.spend(t, cost)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Ends[1] - t0; got != end {
		t.Errorf("charged to the window until %d ms, want %d ms", got, end)
	}
	return c
}

// settle settles charges to actual tokens.
func (d *process) settle(t testing.TB, actual int64, charges ...bucket.Charge) {
	t.Helper()
	cost := int64(0)
	for _, c := range charges {
		cost += c.Cost[1] / token
	}
	if err := d.session.Settle(t.Context(), d.call(cost, actual, charges...)); err != nil {
		t.Fatal(err)
	}
}

// usd returns how many tokens are left in the window, by a peek.
func (d *process) usd(t testing.TB) int64 {
	t.Helper()
	call := d.call(0, 0)
	if err := d.session.Peek(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	img := call.Parts[0].Buckets[0].After
	if img == nil {
		return 100
	}
	return img.Balances[1].Tokens / token
}

// usdKey is the key of user-alice's windowed limit.
func (s *server) usdKey() string {
	return database.Keys{Prefix: s.prefix}.Bucket("gpt-4", "usd", "user-alice", "user-alice")
}

// days is a simulated server and a process with daily windows.
func days(t *testing.T) (*server, *process) {
	t.Helper()
	s := simulated(t)
	return s, s.process(t, s.client(t), daily(nil), runtime.WithClock(&handClock{}))
}

// TestWindows: a window has the capacity, and the next one has it at its end, neither earlier nor later.
func TestWindows(t *testing.T) {
	s, d := days(t)
	d.charged(t, 60, midnight)
	d.charged(t, 40, midnight)
	for _, at := range []int64{0, midnight - 1} {
		s.at(at)
		_, err := d.spend(t, 1)
		denied, ok := errors.AsType[*store.DeniedError](err)
		if !ok {
			t.Fatalf("%v, want a denial", err)
		}
		wait := time.Duration(midnight-at) * time.Millisecond
		if denied.RetryAfter != wait || denied.Limit != "usd" ||
			!denied.Resets.Equal(time.UnixMilli(t0+midnight)) || !denied.Refusals[0].Resets.Equal(denied.Resets) {
			t.Errorf("%+v, want that usd resets in %v", denied, wait)
		}
	}
	s.at(midnight)
	if left := d.usd(t); left != 100 {
		t.Errorf("%d left after the end, want 100", left)
	}
	d.charged(t, 100, next)
}

// TestWindowAtOnce: 64 callers in three processes are served exactly what there is, before a boundary and
// after it.
func TestWindowAtOnce(t *testing.T) {
	s, d := days(t)
	all := []*process{d}
	for range 2 {
		all = append(all, s.process(t, s.client(t), daily(nil), runtime.WithClock(&handClock{})))
	}
	for _, at := range []int64{midnight - 1, midnight, next} {
		s.at(at)
		if n := served(t, all); n != 100/3 {
			t.Errorf("at %d ms %d calls of 3 tokens are served, want %d", at, n, 100/3)
		}
	}
}

// TestFirstUseAtOnce is TestWindowAtOnce on a real Redis too: the first of the callers opens the window.
func TestFirstUseAtOnce(t *testing.T) {
	s := newServer(t)
	var all []*process
	for range 3 {
		all = append(all, s.process(t, s.client(t), daily(&bucket.Calendar{Unit: bucket.FirstUse, Length: hour})))
	}
	if n := served(t, all); n != 100/3 {
		t.Errorf("%d calls of 3 tokens are served, want %d", n, 100/3)
	}
	if ttl := s.client(t).TTL(t.Context(), s.usdKey()).Val(); ttl > time.Hour+time.Minute || ttl < time.Hour {
		t.Errorf("the hash lives for %v, want an hour and a minute", ttl)
	}
}

// served returns how many of 64 calls of 3 tokens at once are admitted.
func served(t *testing.T, all []*process) (n int64) {
	t.Helper()
	var served atomic.Int64
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			if _, err := all[i%len(all)].spend(t, 3); err == nil {
				served.Add(1)
			} else if !isA[*store.DeniedError](err) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return served.Load()
}

// TestSettleOfAnEarlierWindow: it gives nothing back to the window after it.
func TestSettleOfAnEarlierWindow(t *testing.T) {
	const same = "if ARGV[i + 1] + 0 == ends[k] then"
	for _, test := range []struct {
		part string
		left int64
	}{{"", 40}, {same, 60}} { // the control gives back to whichever window is open
		s, d := days(t)
		if test.part != "" {
			d.spoilt(t, test.part, "if true then")
		}
		s.at(midnight - 1000)
		early := d.charged(t, 20, midnight)
		s.at(midnight + 1000)
		d.charged(t, 60, next)
		d.settle(t, 0, early)
		if left := d.usd(t); left != test.left {
			t.Errorf("without %q %d left, want %d", test.part, left, test.left)
		}
	}
}

// TestMoreAcrossABoundary: the newest charge is given back first, and what exceeds all charges is taken from
// the open window, which it opens if need be.
func TestMoreAcrossABoundary(t *testing.T) {
	for _, test := range []struct{ actual, left int64 }{
		{50, 80}, {40, 90}, {30, 100}, {10, 100}, {0, 100}, {60, 70}, {250, -120},
	} {
		s, d := days(t)
		first := d.charged(t, 30, midnight)
		s.at(midnight)
		more := d.charged(t, 20, next)
		d.settle(t, test.actual, first, more)
		if left := d.usd(t); left != test.left {
			t.Errorf("settled to %d: %d left, want %d", test.actual, left, test.left)
		}
	}
	s, d := days(t)
	first := d.charged(t, 30, midnight)
	s.at(midnight)
	d.settle(t, 45, first)
	if left := d.usd(t); left != 85 {
		t.Errorf("%d left of the window that a settle opened, want 85", left)
	}
	d.charged(t, 1, next)
}

// TestGiveBacksTogether: requests in one script call give back to windows of their own.
func TestGiveBacksTogether(t *testing.T) {
	s, d := days(t)
	first := d.charged(t, 30, midnight)
	s.at(midnight)
	second := d.charged(t, 20, next)
	var requests []*request
	for _, c := range []bucket.Charge{first, second, second, first} {
		r := d.session.(*session).newRequest(t.Context(), d.call(c.Cost[1]/token, c.Cost[1]/token-4, c),
			pathSettle, difference)
		if err := d.session.(*session).prepare(r); err != nil {
			t.Fatal(err)
		}
		r.done = make(chan struct{})
		requests = append(requests, r.encode())
	}
	p := &pipeline{queue: d.session.(*session).queues.single}
	for _, r := range requests {
		p.add(r)
	}
	p.send()
	for _, r := range requests {
		if err := r.result(); err != nil || len(p.calls) != 1 {
			t.Errorf("%v, in %d calls, want one", err, len(p.calls))
		}
	}
	if left := d.usd(t); left != 88 {
		t.Errorf("%d left, want 88: two give back 4", left)
	}
}

// TestRefundOfAnAbandonedCall: it names the window that the reply has shown.
func TestRefundOfAnAbandonedCall(t *testing.T) {
	_, d := days(t)
	r := d.session.(*session).newRequest(t.Context(), d.call(7, 0), pathAcquire,
		func(part *store.Part) []int64 { return part.Cost })
	if err := d.session.(*session).perform(r); err != nil {
		t.Fatal(err)
	}
	want := []any{"0", int64(0), int64(0), 1, int64(7 * token), t0 + midnight}
	if got := r.refundRequest().args; !slices.Equal(got, want) {
		t.Errorf("%#v, want %#v", got, want)
	}
}

// TestClockOff: the server's clock decides when windows end, whatever the clocks of processes say.
func TestClockOff(t *testing.T) {
	for _, off := range []time.Duration{-100 * time.Millisecond, 100 * time.Millisecond, -48 * time.Hour,
		48 * time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			s, clock := simulated(t), &handClock{}
			clock.pass(off)
			d := s.process(t, s.client(t), daily(nil), runtime.WithClock(clock))
			s.at(midnight - 50)
			clock.pass(time.Duration(midnight-50) * time.Millisecond)
			d.charged(t, 100, midnight)
			want := []string{"levels missing", "acquire applied"}
			if off > time.Hour { // the earlier boundaries may be missing
				want = []string{"levels missing", "acquire misdated", "acquire applied"}
			}
			d.calls(t, want...)
			if _, err := d.spend(t, 1); !isA[*store.DeniedError](err) {
				t.Errorf("%v, want a denial", err)
			}
			s.at(midnight)
			clock.pass(50 * time.Millisecond)
			d.charged(t, 100, next)
			d.calls(t, "acquire refused", "acquire applied") // a reply has shown how far the clock is off
		})
	}
}

// TestClockOffSpoilt is the control of TestClockOff: without the instant from which the boundaries are all
// there are, a process that is two days ahead skips some.
func TestClockOffSpoilt(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	s, clock := simulated(t), &handClock{}
	clock.pass(48 * time.Hour)
	d := s.process(t, s.client(t), daily(nil), runtime.WithClock(clock)).
		spoilt(t, "if after < ARGV[w + 2] + 0 then", "if false then")
	d.charged(t, 100, midnight+48*hour)
}

// TestNoBoundary: a call that Redis can never place fails, and charges nothing.
func TestNoBoundary(t *testing.T) {
	s, d := days(t)
	d.spoilt(t, "if not to then", "if true then")
	_, err := d.spend(t, 1)
	if !isA[*store.UnavailableError](err) || !errors.Is(err, errMisdated) {
		t.Errorf("%v, want an UnavailableError", err)
	}
	d.calls(t, slices.Concat([]string{"levels missing"},
		slices.Repeat([]string{"acquire misdated"}, maxAttempts*(1+maxResends)-1))...) // the first sent the script
	if n := s.client(t).Exists(t.Context(), s.usdKey()).Val(); n != 0 {
		t.Error("something is charged")
	}
}

// TestFirstUse: the first call that asks something opens the window, and no other.
func TestFirstUse(t *testing.T) {
	s := simulated(t)
	d := s.process(t, s.client(t), daily(&bucket.Calendar{Unit: bucket.FirstUse, Length: hour}))
	call := d.call(0, 0)
	call.Parts[0].Cost[0] = token
	if err := d.session.Acquire(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if ends := call.Parts[0].Buckets[0].After.Balances[1].Ends; ends != 0 || s.mini.Exists(s.usdKey()) {
		t.Errorf("a call that asks nothing opens a window until %d", ends)
	}
	for _, at := range []int64{1000, 1000 + hour, 5 * hour} {
		s.at(at)
		d.charged(t, 90, at+hour)
		s.at(at + hour - 1)
		d.charged(t, 10, at+hour)
		if _, err := d.spend(t, 1); !isA[*store.DeniedError](err) {
			t.Errorf("%v, want a denial", err)
		}
	}
}

// TestMonths: windows follow the dates of a zone, to the last day of each month.
func TestMonths(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	s, clock := simulated(t), &handClock{}
	d := s.process(t, s.client(t), daily(&bucket.Calendar{Unit: bucket.Month, Date: 31, Zone: berlin}),
		runtime.WithClock(clock))
	for _, day := range []string{"2027-01-31", "2027-02-28", "2027-03-31", "2027-04-30", "2027-05-31"} {
		end, err := time.ParseInLocation(time.DateOnly, day, berlin)
		if err != nil {
			t.Fatal(err)
		}
		d.charged(t, 100, end.UnixMilli()-t0)
		s.at(end.UnixMilli() - t0)
		clock.since.Store(end.UnixMilli() - t0)
	}
}

// TestHalf: processes whose calendars differ open no short windows. The control has no half.
func TestHalf(t *testing.T) {
	for _, test := range []struct {
		part    string
		windows int
	}{{"", 3}, {"ends[k] + ARGV[w]", 4}} {
		s := simulated(t)
		east := time.FixedZone("an hour east", 3600)
		var all []*process
		for _, zone := range []*time.Location{nil, east} {
			d := s.process(t, s.client(t), daily(&bucket.Calendar{Unit: bucket.Day, Zone: zone}))
			if test.part != "" {
				d.spoilt(t, test.part, "0")
			}
			all = append(all, d)
		}
		opened := map[int64]bool{}
		for at := int64(0); at <= next+hour; at += hour {
			s.at(at)
			c, err := all[len(opened)%2].spend(t, 1) // in turn, they find a window over
			if err != nil {
				t.Fatal(err)
			}
			opened[c.Ends[1]] = true
		}
		if len(opened) != test.windows {
			t.Errorf("without %q %d windows, want %d", test.part, len(opened), test.windows)
		}
	}
}

// TestWindowsExpire: a hash lives for half a window after its end, whatever was charged since.
func TestWindowsExpire(t *testing.T) {
	s, d := days(t)
	for _, at := range []int64{0, hour, midnight} {
		s.at(at)
		end := midnight
		if at == midnight {
			end = next
		}
		d.charged(t, 1, end)
		want := time.Duration(end+12*hour-at) * time.Millisecond
		if got := s.client(t).PTTL(t.Context(), s.usdKey()).Val(); got != want {
			t.Errorf("at %d ms the hash lives for %v, want %v", at, got, want)
		}
	}
}

// TestChangedCapacity: a changed number counts at once, in the open window too, and keeps what was used.
func TestChangedCapacity(t *testing.T) {
	s, d := days(t)
	taken := d.charged(t, 60, midnight)
	revision := store.Revision("")
	for _, test := range []struct{ capacity, left int64 }{{150, 90}, {40, -20}, {100, 40}} {
		limit := bucket.InWindows(test.capacity, 24*time.Hour)
		var err error
		revision, err = d.session.Overrides().Set(t.Context(), d.session.(*session).resources[0].spec,
			store.Stored{At: "user-alice", Limits: []*bucket.Limit{nil, &limit}, Revision: revision})
		if err != nil {
			t.Fatal(err)
		}
		if left := d.usd(t); left != test.left {
			t.Errorf("%d left of %d, want %d", left, test.capacity, test.left)
		}
	}
	d.settle(t, 50, taken)
	if left := d.usd(t); left != 50 {
		t.Errorf("%d left, want 50", left)
	}
	s.at(midnight)
	d.charged(t, 100, next)
}

// TestReset: after a reset all is there, and leases from before give nothing back.
func TestReset(t *testing.T) {
	s, d := days(t)
	early := d.charged(t, 60, midnight)
	d.fill(t, daily(nil))
	if left := d.usd(t); left != 100 {
		t.Errorf("%d left after a reset, want 100", left)
	}
	d.charged(t, 50, midnight+1)
	d.settle(t, 0, early)
	if left := d.usd(t); left != 50 {
		t.Errorf("%d left after the settle of a lease from before, want 50", left)
	}
	if got, want := s.mini.TTL(s.usdKey()), time.Duration(midnight+1+12*hour)*time.Millisecond; got != want {
		t.Errorf("the hash lives for %v, want %v", got, want)
	}
	s.at(midnight + 1)
	d.fill(t, daily(nil)) // of no window
	d.charged(t, 100, next)
}

// TestResetRepairs: a reset removes a malformed hash, which calls and operators name until then.
func TestResetRepairs(t *testing.T) {
	for _, fields := range [][]any{{"used", "many", "end", t0 + hour}, {"used", "1"}, {"end", t0 + hour},
		{"used", 1, "end", "inf"}, {"used", "nan", "end", t0 + hour}} {
		s, d := days(t)
		if err := s.client(t).HSet(t.Context(), s.usdKey(), fields...).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := d.spend(t, 1); !isA[*store.SetupError](err) {
			t.Errorf("%v: %v, want a SetupError", fields, err)
		}
		_, err := d.store.Inspect(t.Context(), "gpt-4", "", "user-alice", "usd")
		if !isA[*store.SetupError](err) {
			t.Errorf("%v: an operator's look: %v, want a SetupError", fields, err)
		}
		d.fill(t, daily(nil))
		d.charged(t, 100, midnight)
	}
}

// TestInspectWindows: operators see what is used, and until when.
func TestInspectWindows(t *testing.T) {
	_, d := days(t)
	d.charged(t, 60, midnight)
	b, err := d.store.Inspect(t.Context(), "gpt-4", "", "user-alice", "rpm", "usd")
	want := []StoredLimit{{Name: "usd", Used: 60 * token, Ends: t0 + midnight}}
	if err != nil || b == nil || !slices.Equal(b.Limits, want) {
		t.Errorf("%+v, %v, want %+v", b, err, want)
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
}

// TestOwnWindows: the calendar of the call decides, which may be the entity's own and may change.
func TestOwnWindows(t *testing.T) {
	s, d := days(t)
	for _, test := range []struct{ at, hour, end int64 }{
		{0, 20, midnight - 4*hour}, {midnight - 4*hour, 20, next - 4*hour}, {next - 4*hour, 10, next + 10*hour},
	} {
		s.at(test.at)
		call := d.call(100, 0)
		call.Parts[0].Buckets[0].Windows = []*bucket.Calendar{nil,
			{Unit: bucket.Day, At: time.Duration(test.hour) * time.Hour}}
		if err := d.session.Acquire(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		if end := call.Parts[0].Buckets[0].After.Balances[1].Ends - t0; end != test.end {
			t.Errorf("until %d ms, want %d ms", end, test.end)
		}
	}
}

// TestWindowsWithOthers: a call charges resources with windows and without, all or nothing, and gives back to
// both.
func TestWindowsWithOthers(t *testing.T) {
	s, d := days(t)
	other := gpt4()
	other.spec.Resource = "gpt-5"
	env := *d.session.(*session).env
	opened, err := d.store.Open(&env, d.session.(*session).resources[0].def, other)
	if err != nil {
		t.Fatal(err)
	}
	both := func(cost, actual int64, charges ...bucket.Charge) *store.Call {
		call := d.call(cost, actual, charges...)
		call.Parts = append(call.Parts, store.Part{Def: other, Buckets: []store.Bucket{{Entity: "user-alice"}},
			Cost: []int64{cost * token, 0}, Actual: []int64{actual * token, 0}})
		return call
	}
	call := both(40, 0)
	if err := opened.Acquire(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	left := func(call *store.Call) [2]int64 {
		return [2]int64{call.Parts[0].Buckets[0].After.Balances[1].Tokens / token,
			call.Parts[1].Buckets[0].After.Balances[0].Tokens / token}
	}
	if got := left(call); got != [2]int64{60, 20} {
		t.Errorf("%d left, want 60 and 20", got)
	}
	ends := call.Parts[0].Buckets[0].After.Balances[1].Ends
	taken := bucket.Charge{Cost: call.Parts[0].Cost, Ends: []int64{0, ends}}
	d.charged(t, 50, midnight)
	denied := both(15, 0)
	err = opened.Acquire(t.Context(), denied)
	if !isA[*store.DeniedError](err) || left(denied) != [2]int64{10, 20} {
		t.Errorf("%v with %d left, want a denial with 10 and 20", err, left(denied))
	}
	settle := both(40, 10, taken)
	if err := opened.Settle(t.Context(), settle); err != nil || left(settle) != [2]int64{40, 50} {
		t.Errorf("%v with %d left, want 40 and 50", err, left(settle))
	}
	s.at(midnight)
	if err := opened.Settle(t.Context(), both(40, 10, taken)); err != nil || d.usd(t) != 100 {
		t.Errorf("%v with %d left, want 100 in the next window", err, d.usd(t))
	}
}

// TestEraseOfWindows: an entity's windows, and its calendar, are erased with it.
func TestEraseOfWindows(t *testing.T) {
	s, d := days(t)
	d.charged(t, 60, midnight)
	members := d.session.Members()
	if err := members.SetCalendar(t.Context(), "user-alice", time.UnixMilli(t0).UTC()); err != nil {
		t.Fatal(err)
	}
	got, err := members.Erase(t.Context(), "user-alice", store.Erasing{})
	if want := (store.Erased{Buckets: 1, Other: 1}); got != want || err != nil {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if left := s.mini.Keys(); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	d.charged(t, 100, midnight)
}

// TestCheckOfWindows: Check asks for the right to the command by which windows expire, where limits have
// windows.
func TestCheckOfWindows(t *testing.T) {
	for def, want := range map[*definition]bool{gpt4(): false, daily(nil): true} {
		s := newServer(t)
		client := s.client(t)
		var asked bool
		client.AddHook(scripts(func(text string) { asked = asked || strings.Contains(text, "PEXPIREAT") }))
		d := s.process(t, client, def)
		if err := d.Check(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		if asked != want {
			t.Errorf("asked for PEXPIREAT: %t, want %t", asked, want)
		}
	}
}

// scripts is a hook that is called with the text of each script that is sent. Redis has no script by its
// hash then, also if an earlier test has sent it.
type scripts func(text string)

// DialHook implements redis.Hook.
func (scripts) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (s scripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch cmd.Name() {
		case "eval":
			s(cmd.Args()[1].(string))
		case "evalsha":
			cmd.Args()[1] = strings.Repeat("0", 40)
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (scripts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
