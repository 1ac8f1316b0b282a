package conformance

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	budgets "github.com/sluice-go/sluice/gen/testdata/golden/money/out"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/money"
)

// wallet is a process that spends money.
type wallet struct {
	testing.TB
	*budgets.Limiter

	store Store
}

func newWallet(t testing.TB, store Store) *wallet {
	t.Helper()
	l, err := budgets.New(store.Store, runtime.WithClock(store.Clock))
	if err != nil {
		t.Fatal(err)
	}
	return &wallet{t, l, store}
}

// Entities of wallets.
var (
	team   = budgets.Project{ID: "p"}
	spends = []budgets.User{{ID: "a", Project: team}, {ID: "b", Project: team}, {ID: "c", Project: team}}
)

// acquire takes what u costs from the buckets of the first user and the team.
func (w *wallet) acquire(cost budgets.GPT4Cost) (*budgets.GPT4Lease, error) {
	return w.GPT4.Acquire(w.Context(), spends[0], cost, runtime.Budget(time.Minute))
}

// spent returns what is used up of the day's and of the month's budget of an entity.
func (w *wallet) spent(entity budgets.GPT4Entity) (day, month money.Amount) {
	w.Helper()
	seen, err := w.GPT4.Peek(w.Context(), entity)
	if err != nil {
		w.Fatal(err)
	}
	own := seen.Buckets[0]
	return own.Capacity.Day - own.Available.Day, own.Capacity.Month - own.Available.Month
}

// runMoney holds a store to the behaviours of limits of money.
func runMoney(t *testing.T, open Open) {
	t.Helper()
	for name, behaves := range map[string]func(*wallet){
		"a whole budget": wholeBudget, "callers at once": atOnce, "more": moreMoney, "random calls": randomSpending,
		"bad costs": badCosts, "overrides of money": moneyOverrides,
	} {
		t.Run(name, func(t *testing.T) { behaves(newWallet(t, open(t))) })
	}
}

// calls makes calls of a usage until one is denied, at most a number of them.
func (w *wallet) calls(u budgets.GPT4Usage, cost costing, most int) (n int, denied *budgets.DeniedError) {
	w.Helper()
	for ; n < most; n++ {
		_, err := w.acquire(cost(u))
		if errors.As(err, &denied) {
			return n, denied
		}
		if err != nil {
			w.Fatalf("call %d: %v", n+1, err)
		}
	}
	return n, nil
}

// wholeBudget: 2,500 calls at 0.004 are 10.00 to the last nano, and the next call is denied until the window
// ends.
func wholeBudget(w *wallet) {
	n, denied := w.calls(budgets.GPT4Usage{Call: 1}, budgets.GPT4Usage.Cost, 2_501)
	if n != 2_500 || denied == nil || denied.Limit != "day" || denied.Unit != "USD" || denied.Available != 0 ||
		denied.Requested != int64(4*money.Unit/1000) || len(denied.Refusals) != 1 {
		w.Fatalf("%d calls, then %+v", n, denied)
	}
	if day, month := w.spent(spends[0]); day != 10*money.Unit || month != day {
		w.Errorf("%v of the day and %v of the month are spent", day, month)
	}
	w.store.Advance(24 * time.Hour)
	if _, err := w.acquire(budgets.GPT4Usage{Call: 2_500}.Cost()); err != nil {
		w.Errorf("the next day: %v", err)
	}
	if day, month := w.spent(spends[0]); day != 10*money.Unit || month != 20*money.Unit {
		w.Errorf("the next day: %v of the day and %v of the month are spent", day, month)
	}
}

// atOnce: of 32 callers of two processes, the first that the entity has, 5 have 1.00 each of 5.00.
func atOnce(w *wallet) {
	other := newWallet(w.TB, w.store)
	admitted := make([]bool, 32)
	errs := make([]error, len(admitted))
	var done sync.WaitGroup
	for i := range admitted {
		process := []*wallet{w, other}[i%2]
		done.Go(func() {
			_, errs[i] = process.Small.Acquire(w.Context(), spends[0], budgets.SmallCost{Day: money.Unit},
				runtime.Budget(time.Minute))
			admitted[i] = errs[i] == nil
		})
	}
	done.Wait()
	n := 0
	for i, err := range errs {
		var denied *budgets.DeniedError
		if admitted[i] {
			n++
		} else if !errors.As(err, &denied) || denied.Available != 0 || denied.Unit != "USD" {
			w.Errorf("caller %d: %v", i, err)
		}
	}
	if n != 5 {
		w.Errorf("%d callers were admitted, want 5", n)
	}
}

// moreMoney: three More are one request with one slot, and charge what they ask for: a 0 is no per_call.
func moreMoney(w *wallet) {
	const step, seconds = 2_000, 10
	lease, err := w.acquire(budgets.GPT4Usage{Input: 77, Output: step, Call: 1}.Cost())
	if err != nil {
		w.Fatal(err)
	}
	job, err := w.Jobs.Acquire(w.Context(), team, budgets.JobsCost{})
	if err != nil {
		w.Fatal(err)
	}
	for range 3 {
		err := lease.More(w.Context(), budgets.GPT4Usage{Output: step}.Cost())
		if err = errors.Join(err, job.More(w.Context(), budgets.JobsUsage{Seconds: seconds}.Cost())); err != nil {
			w.Fatal(err)
		}
	}
	first := budgets.GPT4Usage{Input: 77, Output: step, Call: 1}.Cost()
	want := first.Day + 3*budgets.GPT4Usage{Output: step}.Cost().Day
	if day, month := w.spent(spends[0]); day != want || month != want || lease.Cost().Day != want {
		w.Errorf("%v and %v are spent, the lease has %v, want %v", day, month, lease.Cost(), want)
	}
	if got := lease.Cost().RPM; got != 1 {
		w.Errorf("%d requests, want 1", got)
	}
	wantJob := 25*money.Cent + 3*budgets.JobsUsage{Seconds: seconds}.Cost().Month
	seen, err := w.Jobs.Peek(w.Context(), team)
	if err != nil {
		w.Fatal(err)
	}
	if left := seen.Available; left.Parallel != 2 || left.Month != 5*money.Unit-wantJob {
		w.Errorf("%+v are left, want 2 slots and 5 less %v", left, wantJob)
	}
	used := budgets.GPT4Usage{Input: 77, Cached: 12, Output: 4*step - 3, Call: 1}
	if err := lease.Settle(w.Context(), used.Cost()); err != nil {
		w.Error(err)
	}
	if day, _ := w.spent(spends[0]); day != used.Cost().Day {
		w.Errorf("%v is spent after the settle, want %v", day, used.Cost().Day)
	}
	job.Release(w.Context())
	if seen, err := w.Jobs.Peek(w.Context(), team); err != nil || seen.Available.Month != 5*money.Unit {
		w.Errorf("after the release: %+v, %v", seen, err)
	}
}

// bill is what calls were charged, and what they cost exactly.
type bill struct {
	exact     big.Int // in pico-units
	roundings int64
}

// add adds a cost that was rounded once.
func (b *bill) add(u budgets.GPT4Usage) {
	b.exact.Add(&b.exact, exactly(u))
	b.roundings++
}

// check returns what is wrong with a charge: exact <= charged < exact + n nano.
func (b *bill) check(charged money.Amount) string {
	above := new(big.Int).Mul(big.NewInt(int64(charged)), big.NewInt(1000))
	above.Sub(above, &b.exact)
	switch most := big.NewInt(1000 * b.roundings); {
	case above.Sign() < 0:
		return "less than the exact sum"
	case b.roundings > 0 && above.Cmp(most) >= 0:
		return "a nano or more a call above the exact sum"
	}
	return ""
}

// randomSpending: after settles up and down, releases and More, each user has the charge of its calls, and
// the team has the sum.
func randomSpending(w *wallet) {
	calls := longform.Count(w, "calls of a wallet", w.store.most(5_000, 200), 200)
	if wrong := w.spend(budgets.GPT4Usage.Cost, calls); wrong != "" {
		w.Error(wrong)
	}
}

// spend makes random calls, with costs by costing, and returns what is wrong with the charges.
func (w *wallet) spend(cost costing, calls int) string {
	w.Helper()
	w.richer()
	random := rand.New(rand.NewPCG(7, 7))
	bills := make([]bill, len(spends))
	for range calls {
		i := random.IntN(len(spends))
		w.call(random, spends[i], cost, &bills[i])
		w.store.Advance(time.Second) // tokens come back by the minute
	}
	var sum money.Amount
	for i, user := range spends {
		day, month := w.spent(user)
		if wrong := bills[i].check(day); wrong != "" || day != month {
			return fmt.Sprintf("user %s: %v of the day and %v of the month are %s", user.ID, day, month, wrong)
		}
		sum += day
	}
	if day, month := w.spent(team); day != sum || month != sum {
		return fmt.Sprintf("the team has %v and %v, its users %v", day, month, sum)
	}
	return ""
}

// call makes one call, which may take more, and ends in one of all ways.
func (w *wallet) call(random *rand.Rand, user budgets.User, cost costing, b *bill) {
	w.Helper()
	usage := func() budgets.GPT4Usage {
		return budgets.GPT4Usage{Input: random.Int64N(200_000), Cached: random.Int64N(200_000),
			Output: random.Int64N(64_000), Call: 1}
	}
	reserved := []budgets.GPT4Usage{usage()}
	lease, err := w.GPT4.Acquire(w.Context(), user, cost(reserved[0]), runtime.Budget(time.Minute))
	if err != nil {
		w.Fatal(err)
	}
	for range random.IntN(3) {
		more := budgets.GPT4Usage{Output: 1 + random.Int64N(2_000)}
		if err := lease.More(w.Context(), cost(more)); err != nil {
			w.Fatal(err)
		}
		reserved = append(reserved, more)
	}
	switch random.IntN(4) {
	case 0:
		lease.Release(w.Context())
	case 1:
		lease.Keep(w.Context())
		for _, u := range reserved {
			b.add(u)
		}
	default:
		actual := usage()
		if err := lease.Settle(w.Context(), cost(actual)); err != nil {
			w.Fatal(err)
		}
		b.add(actual)
	}
}

// richer raises the day's budget of users.
func (w *wallet) richer() {
	w.Helper()
	more := budgets.GPT4Limits{Day: new(1_000_000 * money.Unit)}
	if _, err := w.Config.GPT4.Kind(spends[0]).Set(w.Context(), more, ""); err != nil {
		w.Fatal(err)
	}
}

// badCosts: what a negative or enormous count becomes is refused, in an acquire and in a settle, and a cost
// above the budget is too large.
func badCosts(w *wallet) {
	invalid := func(what string, err error) {
		w.Helper()
		if _, ok := errors.AsType[*budgets.InvalidError](err); !ok {
			w.Errorf("%s: %v, want an *InvalidError", what, err)
		}
	}
	lease, err := w.acquire(budgets.GPT4Usage{Call: 1}.Cost())
	if err != nil {
		w.Fatal(err)
	}
	for what, u := range map[string]budgets.GPT4Usage{
		"a negative count":           {Input: -1, Output: 100},
		"one without a price":        {Image: -1},
		"a product beyond 10^17":     {Output: math.MaxInt64},
		"two counts that would wrap": {Input: math.MaxInt64, Output: math.MaxInt64},
	} {
		_, err := w.acquire(u.Cost())
		invalid(what, err)
		invalid(what+", settled", lease.Settle(w.Context(), u.Cost()))
	}
	_, err = w.acquire(budgets.GPT4Usage{Call: 2_501}.Cost())
	var large *budgets.CostTooLargeError
	if !errors.As(err, &large) || large.Unit != "USD" || large.Burst != int64(10*money.Unit) {
		w.Errorf("%v, want a *CostTooLargeError", err)
	}
	if day, _ := w.spent(spends[0]); day != 4*money.Unit/1000 {
		w.Errorf("%v is spent", day)
	}
	if err := lease.Settle(w.Context(), budgets.GPT4Usage{Call: 2_501}.Cost()); err != nil {
		w.Errorf("a settle into debt: %v", err)
	}
	balances := lease.Balances()
	if got := lease.Remaining().Day; got != 0 || balances[2].Unit != "USD" || balances[1].Unit != "" {
		w.Errorf("%v is left of %+v", got, balances)
	}
}

// moneyOverrides: an override is in the currency, and usage of the open window stays.
func moneyOverrides(w *wallet) {
	if _, err := w.acquire(budgets.GPT4Usage{Call: 2_000}.Cost()); err != nil {
		w.Fatal(err)
	}
	override := w.Config.GPT4.Entity(spends[0])
	rev, err := override.Set(w.Context(), budgets.GPT4Limits{Day: new(8*money.Unit + money.Nano)}, "")
	if err != nil {
		w.Fatal(err)
	}
	got, _, err := override.Get(w.Context())
	if err != nil || got.Day == nil || *got.Day != 8*money.Unit+money.Nano || got.Month != nil {
		w.Errorf("%v, %v", got, err)
	}
	_, err = w.acquire(budgets.GPT4Cost{Day: 2 * money.Nano})
	var denied *budgets.DeniedError
	if !errors.As(err, &denied) || denied.Available != 1 {
		w.Errorf("%v, want one nano left", err)
	}
	_, err = override.Set(w.Context(), budgets.GPT4Limits{Day: new(money.Unlimited + money.Nano)}, rev)
	if _, ok := errors.AsType[*budgets.InvalidError](err); !ok {
		w.Errorf("%v, want an *InvalidError", err)
	}
}

// runMoneyControls holds the suite to broken ways to charge money.
func runMoneyControls(t *testing.T, open Open) {
	t.Helper()
	for name, control := range map[string]struct {
		cost costing
		want string
	}{
		"cents":  {inCents, "less than the exact sum"},
		"parts":  {byPart, "a nano or more a call above the exact sum"},
		"floats": {inFloats, "less than the exact sum"},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := newWallet(t, open(t)).spend(control.cost, 200)
			if len(wrong) < len(control.want) || wrong[len(wrong)-len(control.want):] != control.want {
				t.Errorf("%q, want one that ends with %q", wrong, control.want)
			}
		})
	}
	t.Run("cents of one call", func(t *testing.T) {
		cost := func(u budgets.GPT4Usage) budgets.GPT4Cost {
			cost := inCents(u)
			cost.TPM = 1 // nothing else would be charged
			return cost
		}
		n, denied := newWallet(t, open(t)).calls(budgets.GPT4Usage{Call: 1}, cost, 2_501)
		if n != 2_501 || denied != nil {
			t.Errorf("%d calls, then %v: the whole budget would be noticed by nobody", n, denied)
		}
	})
}
