package conformance

import (
	"errors"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/conformance/prepaid"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// purse is a process that spends credits, and grants them.
type purse struct {
	testing.TB
	*prepaid.Limiter

	store Store
}

func newPurse(t testing.TB, store Store) *purse {
	t.Helper()
	l, err := prepaid.New(store.Store, runtime.WithClock(store.Clock))
	if err != nil {
		t.Fatal(err)
	}
	return &purse{t, l, store}
}

// Entities of purses.
var (
	customer = prepaid.Org{ID: "acme"}
	buyer    = prepaid.Key{ID: "1", Org: customer}
)

// runCredits holds a store to the behaviours of prepaid limits, and of grants.
func runCredits(t *testing.T, open Open) {
	t.Helper()
	for name, behaves := range map[string]func(*purse){
		"nothing comes back": nothingComesBack, "granted once": grantedOnce, "a window that is open": grantToWindow,
		"a window that is over": grantToNext, "more than the capacity": grantAbove, "bad grants": badGrants,
		"another capacity": restatedCredits, "money held by leases": heldFunds, "a reset": resetKeepsCredits,
		"erased": erasedGrants, "grants at once": grantsAtOnce, "random grants": randomGrants,
	} {
		t.Run(name, func(t *testing.T) { behaves(newPurse(t, open(t))) })
	}
}

// spend acquires so many credits of the buyer's.
func (p *purse) spend(n int64) (*prepaid.GPT4Lease, error) {
	return p.GPT4.Acquire(p.Context(), buyer, prepaid.GPT4Cost{RPM: 1, Credits: n}, runtime.Budget(time.Minute))
}

// must spends as spend does, and fails without it.
func (p *purse) must(n int64) *prepaid.GPT4Lease {
	p.Helper()
	lease, err := p.spend(n)
	if err != nil {
		p.Fatal(err)
	}
	return lease
}

// grant adds to the buyer's bucket.
func (p *purse) grant(more prepaid.GPT4Cost, id string) {
	p.Helper()
	if err := p.Config.GPT4.Grant(p.Context(), buyer, more, id); err != nil {
		p.Fatalf("grant %s: %v", id, err)
	}
}

// left returns what the buyer has.
func (p *purse) left() prepaid.GPT4Cost {
	p.Helper()
	seen, err := p.GPT4.Peek(p.Context(), buyer)
	if err != nil {
		p.Fatal(err)
	}
	return seen.Available
}

// has fails unless the buyer has so many credits, and so much of the day's budget.
func (p *purse) has(credits, day int64) {
	p.Helper()
	if got := p.left(); got.Credits != credits || got.Day != day {
		p.Errorf("%d credits and %d of the day are left, want %d and %d", got.Credits, got.Day, credits, day)
	}
}

// until returns the denial of a call for so many credits.
func (p *purse) until(n int64) *prepaid.DeniedError {
	p.Helper()
	_, err := p.spend(n)
	denied, ok := errors.AsType[*prepaid.DeniedError](err)
	if !ok {
		p.Fatalf("%d credits: %v, want a *DeniedError", n, err)
	}
	return denied
}

// nothingComesBack: a limit of 0 denies the first call already, whatever its cost, until a grant, and no
// instant brings anything. Wait denies at once.
func nothingComesBack(p *purse) {
	for _, n := range []int64{1, 1_000_000} {
		denied := p.until(n)
		if denied.RetryAfter != store.UntilGrant || !denied.Resets.IsZero() || denied.Available != 0 ||
			denied.Limit != "credits" || denied.Requested != n {
			p.Errorf("%+v", denied)
		}
	}
	p.store.Advance(400 * 24 * time.Hour)
	for name, opts := range map[string][]runtime.CallOption{
		"without a bound": nil, "with MaxWait": {runtime.MaxWait(time.Hour)},
	} {
		_, err := p.GPT4.Wait(p.Context(), buyer, prepaid.GPT4Cost{Credits: 1}, opts...)
		if _, ok := errors.AsType[*prepaid.DeniedError](err); !ok {
			p.Errorf("%s, Wait fails with %v", name, err)
		}
	}
	p.has(0, 10)
	lease := p.must(0)
	lease.Release(p.Context())
	seen, err := p.GPT4.Peek(p.Context(), customer)
	if err != nil || seen.Available.Credits != 5 {
		p.Errorf("the org begins with %+v, %v, want 5 credits", seen, err)
	}
}

// grantedOnce: a grant counts once for each id, whatever lies between, and its balance does not expire.
func grantedOnce(p *purse) {
	p.grant(prepaid.GPT4Cost{Credits: 100}, "invoice-1")
	p.must(30)
	p.grant(prepaid.GPT4Cost{Credits: 100}, "invoice-1")
	p.has(70, 10)
	p.grant(prepaid.GPT4Cost{Credits: 100}, "invoice-2")
	p.has(170, 10)
	err := p.Config.GPT4.Grant(p.Context(), buyer, prepaid.GPT4Cost{Credits: 101}, "invoice-1")
	if _, ok := errors.AsType[*prepaid.InvalidError](err); !ok {
		p.Errorf("the same id with another amount: %v", err)
	}
	p.store.Advance(90 * 24 * time.Hour)
	p.grant(prepaid.GPT4Cost{Credits: 100}, "invoice-1")
	other := newPurse(p.TB, p.store)
	other.has(170, 10)
	lease := other.must(170)
	if err := lease.Settle(p.Context(), prepaid.GPT4Cost{Credits: 150}); err != nil {
		p.Error(err)
	}
	p.has(20, 10)
	if err := p.Config.GPT4.Grant(p.Context(), customer, prepaid.GPT4Cost{Credits: 1}, "invoice-1"); err != nil {
		p.Errorf("the same id for another entity: %v", err)
	}
}

// grantToWindow: a refund in an open window lasts until its end.
func grantToWindow(p *purse) {
	take := func(n int64) error {
		_, err := p.GPT4.Acquire(p.Context(), buyer, prepaid.GPT4Cost{Day: n}, runtime.Budget(time.Minute))
		return err
	}
	if err := take(10); err != nil {
		p.Fatal(err)
	}
	p.grant(prepaid.GPT4Cost{Day: 4, Credits: 3}, "refund")
	p.grant(prepaid.GPT4Cost{Day: 4, Credits: 3}, "refund")
	p.has(3, 4)
	if err := take(5); err == nil {
		p.Error("5 of 4 were admitted")
	}
	if err := take(4); err != nil {
		p.Error(err)
	}
	p.has(3, 0)
	p.store.Advance(24 * time.Hour)
	p.has(3, 10)
}

// grantToNext: a grant opens a window that is over, once, and counts in it.
func grantToNext(p *purse) {
	p.grant(prepaid.GPT4Cost{Day: 5}, "first")
	p.has(0, 15)
	p.store.Advance(24 * time.Hour)
	p.grant(prepaid.GPT4Cost{Day: 7}, "second")
	p.grant(prepaid.GPT4Cost{Day: 7}, "second")
	p.has(0, 17)
	_, err := p.GPT4.Acquire(p.Context(), buyer, prepaid.GPT4Cost{Day: 2}, runtime.Budget(time.Minute))
	if err != nil {
		p.Fatal(err)
	}
	p.has(0, 15)
}

// grantAbove: a call may take more than the capacity in one piece if a grant has added that, and what it
// gives back stays. Control: without the grant it is too large for the window.
func grantAbove(p *purse) {
	cost := prepaid.GPT4Cost{Day: 14}
	_, err := p.GPT4.Acquire(p.Context(), buyer, cost, runtime.Budget(time.Minute))
	if _, ok := errors.AsType[*prepaid.CostTooLargeError](err); !ok {
		p.Errorf("control: %v, want a *CostTooLargeError", err)
	}
	p.grant(prepaid.GPT4Cost{Day: 5}, "more")
	lease, err := p.GPT4.Acquire(p.Context(), buyer, cost, runtime.Budget(time.Minute))
	if err != nil {
		p.Fatal(err)
	}
	p.has(0, 1)
	lease.Release(p.Context())
	p.has(0, 15)
	p.store.Advance(24 * time.Hour)
	_, err = p.GPT4.Acquire(p.Context(), buyer, cost, runtime.Budget(time.Minute))
	if _, ok := errors.AsType[*prepaid.CostTooLargeError](err); !ok {
		p.Errorf("the next day: %v, want a *CostTooLargeError", err)
	}
}

// badGrants: what is no grant is refused, and adds nothing.
func badGrants(p *purse) {
	for name, bad := range map[string]struct {
		more prepaid.GPT4Cost
		id   string
	}{
		"negative":       {prepaid.GPT4Cost{Credits: -1}, "a"},
		"one negative":   {prepaid.GPT4Cost{Credits: 5, Day: -1}, "b"},
		"a rate":         {prepaid.GPT4Cost{Credits: 5, RPM: 1}, "c"},
		"nothing":        {prepaid.GPT4Cost{}, "d"},
		"too much":       {prepaid.GPT4Cost{Credits: 1 << 62}, "e"},
		"no id":          {prepaid.GPT4Cost{Credits: 5}, ""},
		"an id with '#'": {prepaid.GPT4Cost{Credits: 5}, "a#b"},
		"a control":      {prepaid.GPT4Cost{Credits: 5}, "a\n"},
	} {
		err := p.Config.GPT4.Grant(p.Context(), buyer, bad.more, bad.id)
		if _, ok := errors.AsType[*prepaid.InvalidError](err); !ok {
			p.Errorf("%s: %v, want an *InvalidError", name, err)
		}
	}
	p.has(0, 10)
	slots := prepaid.JobsCost{Parallel: 1}
	err := p.Config.Jobs.Grant(p.Context(), customer, slots, "slots")
	if _, ok := errors.AsType[*prepaid.InvalidError](err); !ok {
		p.Errorf("slots: %v, want an *InvalidError", err)
	}
}

// restatedCredits: another capacity keeps what was granted and used, also of a bucket that a grant has made.
func restatedCredits(p *purse) {
	override := p.Config.GPT4.Entity(buyer)
	rev, err := override.Set(p.Context(), prepaid.GPT4Limits{Credits: new(int64(8))}, "")
	if err != nil {
		p.Fatal(err)
	}
	p.grant(prepaid.GPT4Cost{Credits: 20}, "first")
	p.has(28, 10)
	p.must(25)
	for _, to := range []int64{0, 50, 0, 8} {
		if rev, err = override.Set(p.Context(), prepaid.GPT4Limits{Credits: new(to)}, rev); err != nil {
			p.Fatal(err)
		}
		p.must(0)
		p.has(max(0, 3+to-8), 10)
	}
	p.has(3, 10)
}

// heldFunds: what a lease holds of granted money comes back, and a grant opens windows with holds.
func heldFunds(p *purse) {
	for _, id := range []string{"a", "a", "b"} {
		more := prepaid.JobsCost{Funds: 2 * money.Unit, Week: 5}
		if err := p.Config.Jobs.Grant(p.Context(), customer, more, id); err != nil {
			p.Fatal(err)
		}
	}
	lease, err := p.Jobs.Acquire(p.Context(), customer, prepaid.JobsUsage{Seconds: 14}.Cost(),
		runtime.Budget(time.Minute))
	if err != nil {
		p.Fatal(err)
	}
	p.funds(money.Unit/2, 30)
	if err := lease.Settle(p.Context(), prepaid.JobsUsage{Seconds: 5}.Cost()); err != nil {
		p.Error(err)
	}
	p.funds(2*money.Unit+75*money.Cent, 30)
	p.store.Advance(7 * 24 * time.Hour)
	if err := p.Config.Jobs.Grant(p.Context(), customer, prepaid.JobsCost{Week: 1}, "c"); err != nil {
		p.Fatal(err)
	}
	p.funds(2*money.Unit+75*money.Cent, 21)
}

// funds fails unless the customer has so much money, and so many of the week's tokens.
func (p *purse) funds(want money.Amount, week int64) {
	p.Helper()
	seen, err := p.Jobs.Peek(p.Context(), customer)
	if err != nil {
		p.Fatal(err)
	}
	if got := seen.Available; got.Funds != want || got.Week != week {
		p.Errorf("%v and %d are left, want %v and %d", got.Funds, got.Week, want, week)
	}
}

// resetKeepsCredits: a reset fills windows that end, and takes nothing of what was bought.
func resetKeepsCredits(p *purse) {
	p.grant(prepaid.GPT4Cost{Credits: 20}, "bought")
	cost := prepaid.GPT4Cost{Credits: 5, Day: 9}
	_, err := p.GPT4.Acquire(p.Context(), buyer, cost, runtime.Budget(time.Minute))
	if err != nil {
		p.Fatal(err)
	}
	if err := p.Config.GPT4.Reset(p.Context(), buyer); err != nil {
		p.Fatal(err)
	}
	p.has(15, 10)
}

// erasedGrants: with its entity a grant is forgotten.
func erasedGrants(p *purse) {
	p.grant(prepaid.GPT4Cost{Credits: 20}, "bought")
	if _, err := p.Entities().Erase(p.Context(), buyer); err != nil {
		p.Fatal(err)
	}
	other := newPurse(p.TB, p.store)
	other.has(0, 10)
	other.grant(prepaid.GPT4Cost{Credits: 30}, "bought")
	other.has(30, 10)
}
