package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/examples/gateway/limits"
	"github.com/sluice-go/sluice/runtime/money"
)

// The price list of the model's provider, in trillionths of a dollar a token: 2.50 and 10 for a million. It
// bills each call in whole billionths, rounded up.
const (
	inputPrice  = 2_500_000
	outputPrice = 10_000_000
)

// bill adds what the provider charges for a call to the bill of the tenant's org.
func (l *ledger) bill(t *tenant, used limits.GPT4Usage) {
	picos := used.Input*inputPrice + used.Output*outputPrice
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bills[orgOn(t.user.Project.Org)] += (picos + 999) / 1000
}

// billed returns the bill of an org, in nano-units.
func (l *ledger) billed(org place) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bills[org]
}

// orgOn is the bucket of an org, which has its budget.
func orgOn(o limits.Org) place { return place{"org-" + o.ID, limits.GPT4} }

// payer is an org's bucket with a budget, and those of the users whose calls charge it.
type payer struct {
	place
	users []place
}

// payers returns the orgs of the tenants.
func payers(tenants []tenant) (all []payer) {
	for i := range tenants {
		t := &tenants[i]
		if t.embeds {
			continue
		}
		org := orgOn(t.user.Project.Org)
		at := slices.IndexFunc(all, func(p payer) bool { return p.place == org })
		if at < 0 {
			at, all = len(all), append(all, payer{place: org})
		}
		all[at].users = append(all[at].users, userOn(t.user))
	}
	return all
}

// checkBudgets holds what each org's budget was charged against the provider's bill, to the billionth. A call
// that failed leaves open whether it was charged.
func (s *simulation) checkBudgets(out *strings.Builder, got consumption) error {
	var sum, open money.Amount
	for _, org := range payers(s.tenants) {
		nanos, _ := got(org.place, limits.GPT4Month.String())
		unclear := s.ledger.unclear(limits.GPT4TPM.String(), org.users...) * outputPrice / 1000
		bill := s.ledger.billed(org.place)
		if nanos < bill-unclear || nanos > bill+unclear {
			fmt.Fprintf(out, "check: %s: the table has %v USD, the provider bills %v\n", org.entity,
				money.Amount(nanos), money.Amount(bill))
			return errors.New("a budget differs from its bill")
		}
		sum, open = sum+money.Amount(nanos), open+money.Amount(unclear)
	}
	if open > 0 {
		fmt.Fprintf(out, "ok: Projects have what their users were charged, and budgets the provider's bill: %v "+
			"USD,\ngive or take %v of calls that failed.\n", sum, open)
		return nil
	}
	fmt.Fprintf(out, "ok: Projects have what their users were charged, and budgets the provider's bill: %v "+
		"USD.\n", sum)
	return nil
}
