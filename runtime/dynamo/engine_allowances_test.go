package dynamo

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	windows "github.com/sluice-go/sluice/gen/testdata/golden/windows/out"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
)

// mailer is a process with the limits of a package with windows.
type mailer struct {
	*windows.Limiter
	*events
}

func (e *engine) mailer(t testing.TB, api wire.API, opts ...runtime.Option) mailer {
	t.Helper()
	seen := &events{}
	l, err := windows.New(newStore(api, e.table), append(e.options(seen), opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return mailer{l, seen}
}

// mails are so many mails against the daily limit of 500, whose windows start at 00:30 in Berlin.
func mails(n int64) windows.MailCost { return windows.MailCost{Daily: n} }

// Instants in ms after t0, which is 2027-01-15 08:00 UTC: when the daily window of then ends, and the next.
const (
	endOfDay  = 15*3_600_000 + 1_800_000
	nextOfDay = endOfDay + 24*3_600_000
)

// org is the entity of these tests.
var org = windows.Org{ID: "1"}

// daily returns the daily limit of org's bucket as stored.
func (e *engine) daily(t testing.TB) bucket.Balance {
	t.Helper()
	img, err := operator.Inspect(t.Context(), e.client, e.table, "org-1", windows.Mail)
	if err != nil || img == nil {
		t.Fatalf("bucket %v, error %v", img, err)
	}
	for _, named := range img.Extra {
		if named.Name == "daily" {
			return named.Balance
		}
	}
	t.Fatal("the bucket has no daily limit")
	return bucket.Balance{}
}

// holdsDaily checks the daily limit as stored: whole tokens left, consumed, and the window's end in ms after
// t0.
func (e *engine) holdsDaily(t testing.TB, left, consumed, ends int64) {
	t.Helper()
	got := e.daily(t)
	want := got
	want.Tokens, want.Consumed, want.Ends = left*bucket.Milli, consumed*bucket.Milli, t0+ends
	if got != want {
		t.Errorf("%v until %d, want %v until %d", got, got.Ends-t0, want, ends)
	}
}

// sends acquires n mails, which must be admitted.
func (m mailer) sends(t testing.TB, n int64) *windows.MailLease {
	t.Helper()
	lease, err := m.Mail.Acquire(t.Context(), org, mails(n))
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// denied checks that n mails are refused until an instant in ms after t0.
func (m mailer) denied(t testing.TB, e *engine, n, left, until int64) {
	t.Helper()
	_, err := m.Mail.Acquire(t.Context(), org, mails(n))
	refused, ok := errors.AsType[*store.DeniedError](err)
	if !ok {
		t.Fatalf("got %v, want a denial", err)
	}
	now := e.clock.Now().UnixMilli() - t0
	if refused.Available != left || refused.RetryAfter != time.Duration(until-now)*time.Millisecond ||
		!refused.Resets.Equal(time.UnixMilli(t0+until)) || !refused.By(windows.MailDaily) {
		t.Errorf("%+v at %d, want %d left until %d", refused, now, left, until)
	}
}

// TestWindow follows one limit through three windows: each grants its capacity, and costs one unit a call.
func TestWindow(t *testing.T) {
	e := newEngine(t)
	m := e.mailer(t, e.client)
	m.sends(t, 100)
	m.calls(t, "member missing", "read missing", "create applied") // quarterly has the entity's own start
	e.holdsDaily(t, 400, 100, endOfDay)
	m.sends(t, 300)
	m.calls(t, "retry applied")
	m.denied(t, e, 101, 100, endOfDay)
	e.clock.set(endOfDay - 1)
	m.sends(t, 100)
	m.calls(t, "retry applied")
	e.holdsDaily(t, 0, 500, endOfDay)
	m.denied(t, e, 1, 0, endOfDay)
	e.clock.set(endOfDay)
	m.sends(t, 500)
	m.calls(t, "normal applied")
	e.holdsDaily(t, 0, 1000, nextOfDay)
	e.clock.set(nextOfDay + 5*3_600_000) // nobody called at the boundary
	m.sends(t, 1)
	e.holdsDaily(t, 499, 1001, nextOfDay+24*3_600_000)
}

// TestWindowRefusesOnce: of two processes, the second one's first write after a boundary is refused once. A
// call that does not use the limit opens no window.
func TestWindowRefusesOnce(t *testing.T) {
	e := newEngine(t)
	a, b := e.mailer(t, e.client), e.mailer(t, e.client)
	a.sends(t, 1)
	b.sends(t, 1)
	a.events.Paths, b.events.Paths = nil, nil
	e.clock.set(endOfDay + 1000)
	if _, err := b.Mail.Acquire(t.Context(), org, windows.MailCost{RPM: 1}); err != nil {
		t.Fatal(err)
	}
	e.holdsDaily(t, 498, 2, endOfDay)
	a.sends(t, 10)
	e.holdsDaily(t, 490, 12, nextOfDay)
	b.events.Paths = nil
	b.sends(t, 10)
	b.calls(t, "normal refused", "retry applied")
	b.sends(t, 10)
	b.calls(t, "retry applied")
	e.holdsDaily(t, 470, 32, nextOfDay)
}

// TestSettleAcrossWindows: what comes back from a window that is over counts in usage alone, and what exceeds
// the charge is taken from the window that is open then.
func TestSettleAcrossWindows(t *testing.T) {
	for name, test := range map[string]struct {
		actual         int64
		left, consumed int64
		ends           int64
		writes         []string
	}{
		"less, riding on nothing": {20, 400, 20, endOfDay, []string{"adjust applied"}},
		"as much":                 {100, 400, 100, endOfDay, nil},
		"more":                    {130, 470, 130, nextOfDay, []string{"settle applied"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			m := e.mailer(t, e.client)
			lease := m.sends(t, 100)
			m.events.Paths = nil
			e.clock.set(endOfDay + 500)
			if err := lease.Settle(t.Context(), mails(test.actual)); err != nil {
				t.Fatal(err)
			}
			m.calls(t, test.writes...)
			e.holdsDaily(t, test.left, test.consumed, test.ends)
		})
	}
}

// TestMoreAcrossWindows settles a lease of two windows: the newest charge comes back first, each part to its
// own window.
func TestMoreAcrossWindows(t *testing.T) {
	for name, test := range map[string]struct{ actual, left, consumed int64 }{
		"above both":        {150, 500 - 60 - 20, 150},
		"all of both":       {130, 500 - 60, 130},
		"part of the newer": {110, 500 - 60 + 20, 110},
		"all of the newer":  {70, 500, 70},
		"part of the older": {30, 500, 30},
		"nothing":           {0, 500, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			m := e.mailer(t, e.client)
			lease := m.sends(t, 70)
			e.clock.set(endOfDay)
			if err := lease.More(t.Context(), mails(60)); err != nil {
				t.Fatal(err)
			}
			e.holdsDaily(t, 440, 130, nextOfDay)
			if err := lease.Settle(t.Context(), mails(test.actual)); err != nil {
				t.Fatal(err)
			}
			e.holdsDaily(t, test.left, test.consumed, nextOfDay)
		})
	}
}

// TestResetOfAWindow: a filled window takes nothing back from leases of before.
func TestResetOfAWindow(t *testing.T) {
	e := newEngine(t)
	m := e.mailer(t, e.client)
	lease := m.sends(t, 100)
	if err := m.Config.Mail.Reset(t.Context(), org); err != nil {
		t.Fatal(err)
	}
	e.holdsDaily(t, 500, 100, endOfDay+1)
	m.sends(t, 200)
	if err := lease.Settle(t.Context(), mails(0)); err != nil {
		t.Fatal(err)
	}
	e.holdsDaily(t, 300, 200, endOfDay+1)
}

// TestReshapeOfAWindow: a raised limit has the difference at once, and a lowered one may be below 0.
func TestReshapeOfAWindow(t *testing.T) {
	e := newEngine(t)
	m := e.mailer(t, e.client)
	m.sends(t, 400)
	override, rev := m.Config.Mail.Entity(org), runtime.Revision("")
	for _, step := range []struct{ capacity, take, left, consumed int64 }{
		{600, 1, 199, 401},
		{300, 0, -101, 401},
		{1000, 0, 599, 401},
		{300, 0, -101, 401},
	} {
		var err error
		if rev, err = override.Set(t.Context(), windows.MailLimits{Daily: &step.capacity}, rev); err != nil {
			t.Fatal(err)
		}
		cost := mails(step.take)
		cost.RPM = 1
		if _, err := m.Mail.Acquire(t.Context(), org, cost); err != nil {
			t.Fatal(err)
		}
		e.holdsDaily(t, step.left, step.consumed, endOfDay)
	}
	m.denied(t, e, 1, 0, endOfDay)
}

// shifted is a clock that is off by a constant.
type shifted struct {
	store.Clock
	by time.Duration
}

func (c shifted) Now() time.Time { return c.Clock.Now().Add(c.by) }

// TestWindowByDynamoDBsTime: a process whose clock is off by more than a second goes by the dates of replies.
// An hour behind, it charges the new window; an hour ahead, it does not open the next one.
func TestWindowByDynamoDBsTime(t *testing.T) {
	e := newEngine(t)
	right := e.mailer(t, e.client)
	behind := e.mailer(t, e.client, runtime.WithClock(shifted{&e.clock, -time.Hour}))
	ahead := e.mailer(t, e.client, runtime.WithClock(shifted{&e.clock, time.Hour}))
	right.sends(t, 500)
	e.clock.set(endOfDay - 1_800_000)
	for range 2 { // the first call's reply sets the clock
		if _, err := ahead.Mail.Acquire(t.Context(), org, mails(1)); !isA[*store.DeniedError](err) {
			t.Errorf("the clock ahead: %v, want a denial", err)
		}
	}
	e.holdsDaily(t, 0, 500, endOfDay)
	e.clock.set(endOfDay + 2000)
	behind.sends(t, 1)
	e.holdsDaily(t, 499, 501, nextOfDay)
}

// TestMidnight: 64 processes that ask for more than there is at the boundary are admitted for the capacity.
func TestMidnight(t *testing.T) {
	e := newEngine(t)
	processes := make([]mailer, 64)
	for i := range processes {
		processes[i] = e.mailer(t, e.client)
	}
	processes[0].sends(t, 500)
	e.clock.set(endOfDay)
	var admitted atomic.Int64
	together(t, len(processes), func(i int) error {
		for range 3 {
			_, err := processes[i].Mail.Acquire(t.Context(), org, mails(5))
			for errors.As(err, new(*store.ContendedError)) {
				_, err = processes[i].Mail.Acquire(t.Context(), org, mails(5))
			}
			if _, denied := errors.AsType[*store.DeniedError](err); denied {
				continue
			}
			if err != nil {
				return err
			}
			admitted.Add(5)
		}
		return nil
	})
	if admitted.Load() != 500 {
		t.Errorf("%d admitted, want 500", admitted.Load())
	}
	e.holdsDaily(t, 0, 1000, nextOfDay)
}
