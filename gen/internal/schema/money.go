package schema

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/gen/internal/decimal"
	"github.com/sluice-go/sluice/gen/internal/goname"
	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/number"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

// The bounds of money, in nano-units and pico-units. Scripts of Redis compute with floats, which are exact up
// to 2^53, and usage may be above the capacity.
const (
	maxMoney      = 100_000_000 * nanos
	maxMoneyRedis = 9_000_000 * nanos
	maxPrice      = 1_000_000 * picos

	nanos = 1_000_000_000
	picos = 1_000_000_000_000
)

// Usage is something that a call consumes, such as input tokens.
type Usage struct {
	Name   string
	GoName string // input: Input; ASCII letters and digits
	Doc    string // "" if there is none; see Limit.Doc
	Price  int64  // of one unit, in pico-units of the currency; 0 for none
	Pos    Pos    // of its key in limits.yaml

	PricePos Pos // of key price, or Pos if there is none
}

// Written returns the price as limits.yaml may have it: 2.5/1M.
func (u *Usage) Written() string { return decimal.TextOfPrice(u.Price) }

// Money returns the currency of r's limits of money, "" if it has none.
func (r *Resource) Money() string {
	for _, l := range r.Limits {
		if l.Currency != "" {
			return l.Currency
		}
	}
	return ""
}

// Priced reports whether calls on r have prices: a usage costs something in a limit of money.
func (r *Resource) Priced() bool { return r.Usage != nil && r.Money() != "" }

// moneyReader reads limits of money, and usage with its prices.
type moneyReader struct{ *resourceReader }

func usageKeys() []string { return []string{"price", "doc", "go_name"} }

// exampleUsage is a usage for error messages.
const exampleUsage = "{input: {price: 2.50/1M}}"

// readUsage reads what a call consumes.
func (r moneyReader) readUsage(e entry) {
	entries, _ := r.mapping(e.value, "usage of "+r.what, "what a call consumes, such as "+exampleUsage)
	if emptyMapping(e.value) {
		r.add(r.pos(e.key), rules.Empty, "usage of %s is empty: write what a call consumes, such as %s, or leave "+
			"it out", r.what, exampleUsage)
	}
	r.usageUnknown = len(entries) == 0 || merges(e.value)
	for _, e := range entries {
		u := &Usage{Name: e.name, Pos: r.pos(e.key)}
		u.PricePos = u.Pos
		what := "usage " + hint.Quote(e.name) + " of " + r.what
		nameOK := r.identifier(u.Pos, what, e.name)
		if f, ok := r.fields(e.value, what, "{}, or its price, such as {price: 2.50/1M}", usageKeys(), nil); ok {
			u.Doc = r.doc(f)
			u.GoName = r.goName(f, u.Pos, what, e.name, nameOK)
			if e, ok := f.get("price"); ok {
				u.PricePos = r.pos(e.key)
				u.Price = r.price(e, what)
			}
		}
		r.res.Usage = append(r.res.Usage, u)
	}
}

// price reads the price of one unit, in pico-units. A wrong one is 0.
func (r moneyReader) price(e entry, what string) int64 {
	text, ok := r.scalar(e.value, "price of "+what, "a price, such as 2.50/1M, 10/1k or 0.01")
	if !ok {
		return 0
	}
	pos := r.pos(e.value)
	n, fraction, why := decimal.Price(text)
	switch {
	case fraction:
		r.add(pos, rules.PriceFraction, "price %s of %s %s", hint.Quote(text), what, why)
	case why != "":
		r.add(pos, rules.BadPrice, "price %s of %s %s", hint.Quote(text), what, why)
	case n == 0:
		r.add(pos, rules.ZeroNumber, "price of %s is 0: leave it out, as a usage without a price costs "+
			"nothing", what)
	case n > maxPrice:
		r.add(pos, rules.NumberRange, "price of %s is %s: it can be at most %s a unit", what, hint.Short(text),
			decimal.TextOfPrice(maxPrice))
	default:
		return n
	}
	return 0
}

// money reads the currency of l, which makes it a limit of money, and the usages that are added up for it.
func (r moneyReader) money(f fields, l limit) limit {
	e, ok := f.get("money")
	if l.money = ok; ok {
		text, ok := r.text(e.value, "money of "+l.what, "a currency, such as USD")
		switch {
		case !ok:
		case len(text) != 3 || !goname.Made(text, goname.Uppers, goname.Uppers):
			r.add(r.pos(e.value), rules.Currency, "money %s of %s is no currency: write its three capital letters, "+
				"such as USD", hint.Quote(text), l.what)
		default:
			l.currency = text
		}
		l.moneyPos = r.pos(e.key)
	}
	if e, ok := f.get("counts"); ok {
		l.counts = r.names(e.value, "counts of "+l.what, "a list, such as [input, output]")
		if e.value.Kind == yaml.SequenceNode && len(e.value.Content) == 0 {
			r.add(r.pos(e.key), rules.Empty, "counts of %s is empty: name the usages that are added up for it, or "+
				"leave it out", l.what)
		}
		if l.money {
			r.add(r.pos(e.key), rules.MoneyKeys, "counts of %s goes with tokens alone: a limit of money takes the "+
				"prices of all usage, so remove counts", l.what)
		}
	}
	return l
}

// checkWindowed reports money in a limit that has every or in_flight in place of window.
func (r moneyReader) checkWindowed(f fields, l limit) {
	_, refills := f.get("every")
	_, windowed := f.get("window")
	if !l.money || windowed || !refills && !l.inFlight {
		return
	}
	comesBack := "every gives back a part of it all the time"
	if l.inFlight {
		comesBack = "in_flight gives back what a call took when the call ends"
	}
	r.add(l.moneyPos, rules.MoneyRate, "money of %s needs window: a budget comes back at once when its window "+
		"ends, while %s; write window: month, or another one, instead", l.what, comesBack)
}

// checkMoney compares the resource's limits of money with each other, and its usage with its limits.
func (r moneyReader) checkMoney() {
	first, has := "", false
	for _, l := range r.limits {
		has = has || l.money
		switch {
		case l.currency == "" || l.currency == first:
		case first == "":
			first = l.currency
		default:
			r.add(l.moneyPos, rules.MoneyMixed, "money of %s is %s, and another limit's is %s: each price counts in "+
				"all limits of money, and nothing is converted, so keep one currency, or add another resource",
				l.what, l.currency, first)
		}
		r.checkCounts(l)
	}
	for _, u := range r.res.Usage {
		if u.PricePos != u.Pos && !has && r.limitsKnown {
			r.add(u.PricePos, rules.MoneyKeys, "price of usage %s of %s counts in no limit: add one of money, such "+
				"as month: {money: USD, capacity: 50, window: month}, or remove price", hint.Quote(u.Name), r.what)
		}
	}
}

// checkCounts reports the names in l's counts that are no usage.
func (r moneyReader) checkCounts(l limit) {
	var known []string
	for _, u := range r.res.Usage {
		known = append(known, u.Name)
	}
	for _, e := range l.counts {
		switch {
		case slices.Contains(known, e.name) || r.usageUnknown:
		case len(known) == 0:
			r.add(r.pos(e.value), rules.UnknownUsage, "%s in counts of %s is no usage, as %s has none: add usage: "+
				"{%s: {}}, or remove counts", hint.Quote(e.name), l.what, r.what, exampleLimit(e.name))
		default:
			r.add(r.pos(e.value), rules.UnknownUsage, "%s in counts of %s is no usage of %s: %s",
				hint.Quote(e.name), l.what, r.what, r.Cure(e.name, known))
		}
	}
}

// number reads a number of l: an amount if l is a limit of money, else tokens.
func (r moneyReader) number(l limit, e entry, name string) count {
	if !l.money {
		return r.countFrom(e, name, l.least(name), maxTokens)
	}
	c := count{own: true, pos: r.pos(e.value)}
	text, ok := r.scalar(e.value, name, "an amount, such as 50 or 0.25")
	if !ok {
		return c
	}
	n, why := decimal.Amount(text)
	switch {
	case why != "":
		r.add(c.pos, rules.BadNumber, "%s: %s %s", name, hint.Quote(text), why)
	case n == 0 && name == "per_call":
		r.add(c.pos, rules.ZeroNumber, "%s is 0: leave it out if a cost of 0 is to take nothing", name)
	case n == 0 && l.least(name) > 0:
		r.add(c.pos, rules.ZeroNumber, "%s is 0: it must be at least 0.000001", name)
	case n > maxMoney:
		r.add(c.pos, rules.NumberRange, "%s is %s: it can be at most %s", name, hint.Short(text), amount(maxMoney))
	case n > maxMoneyRedis && r.redis && name == "capacity":
		r.add(c.pos, rules.MoneyRedis, "capacity of %s is %s: with redis in stores it can be at most %s, up to "+
			"which scripts of Redis compute exactly; lower it, or take redis out of stores", l.what,
			hint.Short(text), amount(maxMoneyRedis))
	default:
		c.n, c.ok = n, true
	}
	return c
}

// written writes a number of l for a message.
func (l limit) written(n int64) string {
	if l.money {
		return amount(n)
	}
	return number.Grouped(n)
}

// amount writes an amount in nano-units as limits.yaml may have it: 10_000.5.
func amount(n int64) string { return decimal.Text(n, "_") }
