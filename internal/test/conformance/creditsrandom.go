package conformance

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/conformance/prepaid"
	"github.com/sluice-go/sluice/internal/test/longform"
)

// grantsAtOnce: of many calls with few ids, by two processes, each id counts once, while others spend.
func grantsAtOnce(p *purse) {
	other := newPurse(p.TB, p.store)
	var done sync.WaitGroup
	errs, spent := make([]error, 24), make([]bool, 24)
	for i := range errs {
		by := []*purse{p, other}[i%2]
		done.Go(func() {
			id := fmt.Sprint("grant-", i%3)
			for range 20 { // many writers contend for the bucket
				errs[i] = by.Config.GPT4.Grant(by.Context(), buyer, prepaid.GPT4Cost{Credits: 100}, id)
				if _, contended := errors.AsType[*prepaid.ContendedError](errs[i]); !contended {
					break
				}
			}
			_, err := by.spend(7)
			spent[i] = err == nil
		})
	}
	done.Wait()
	left := int64(300)
	for i, err := range errs {
		if err != nil {
			p.Errorf("grant %d: %v", i, err)
		}
		if spent[i] {
			left -= 7
		}
	}
	newPurse(p.TB, p.store).has(left, 10)
}

// randomGrants: after grants that are repeated, charges, releases and settles, the balance is what the entity
// began with and was granted, less what it has used.
func randomGrants(p *purse) {
	calls := longform.Count(p, "calls of a purse", p.store.most(2_000, 150), 150)
	once := func(ledger map[string]int64, id string, n int64) { ledger[id] = n }
	if wrong := p.play(calls, once); wrong != "" {
		p.Error(wrong)
	}
}

// play makes random calls, and returns what is wrong with the balance. book notes a grant in a ledger.
func (p *purse) play(calls int, book func(ledger map[string]int64, id string, n int64)) string {
	p.Helper()
	random, ledger, used := rand.New(rand.NewPCG(3, 9)), map[string]int64{}, int64(0)
	for i := range calls {
		id, n := fmt.Sprint("g", random.IntN(1+i/4)), int64(0)
		for range len(id) {
			n = n*7 + 11 // one amount for an id, whenever it is granted
		}
		switch random.IntN(3) {
		case 0:
			p.grant(prepaid.GPT4Cost{Credits: n}, id)
			book(ledger, id, n)
		case 1:
			used += p.call(random)
		default:
			p.store.Advance(time.Duration(random.IntN(30)) * time.Hour)
		}
		granted := int64(0)
		for _, n := range ledger {
			granted += n
		}
		if got := p.left().Credits; got != max(0, granted-used) {
			return fmt.Sprintf("call %d: %d are left of %d granted and %d used", i, got, granted, used)
		}
	}
	return ""
}

// call makes one call, and returns what it has used.
func (p *purse) call(random *rand.Rand) (used int64) {
	p.Helper()
	n := 1 + random.Int64N(200)
	lease, err := p.spend(n)
	if _, denied := errors.AsType[*prepaid.DeniedError](err); denied {
		return 0
	}
	if err != nil {
		p.Fatal(err)
	}
	switch random.IntN(3) {
	case 0:
		lease.Release(p.Context())
		return 0
	case 1:
		actual := random.Int64N(2 * n)
		if err := lease.Settle(p.Context(), prepaid.GPT4Cost{Credits: actual}); err != nil {
			p.Fatal(err)
		}
		return actual
	}
	return n
}

// runCreditControls holds the suite to a store that counts each call of a grant.
func runCreditControls(t *testing.T, open Open) {
	t.Helper()
	t.Run("counted twice", func(t *testing.T) {
		n := 0
		wrong := newPurse(t, open(t)).play(150, func(ledger map[string]int64, id string, of int64) {
			n++
			ledger[fmt.Sprint(id, n)] = of // as if each counted
		})
		if wrong == "" {
			t.Error("a grant that counts whenever it is repeated would be noticed by nobody")
		}
	})
}
