package schema

import (
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

// Unlimited is the capacity of a limit that counts and denies nothing: the largest one. Such a limit refills
// at the largest rate, whatever its period.
const Unlimited = "unlimited"

// Unlimited reports whether n are those of a limit with the capacity unlimited.
func (n Numbers) Unlimited() bool {
	most := int64(maxTokens)
	if n.Currency != "" {
		most = maxMoney
	}
	return n.Capacity == most && n.Burst == most && (n.Refill == 0 || n.Refill == fastest(n.Period))
}

// fastest returns the most tokens that a limit refills every d, in the bounds of all numbers.
func fastest(d time.Duration) int64 { return min(maxTokens, maxPerMilli*d.Milliseconds()) }

// capacity reads the capacity of l: a number, or unlimited.
func (r moneyReader) capacity(l limit, e entry) count {
	switch {
	case e.value.Kind != yaml.ScalarNode:
		return r.number(l, e, "capacity")
	case e.value.Value != Unlimited:
		if near, ok := r.Nearest(e.value.Value, []string{Unlimited}); ok {
			c := count{own: true, pos: r.pos(e.value)}
			r.add(c.pos, rules.BadNumber, "capacity: %s is no number: did you mean %s?",
				hint.Quote(e.value.Value), near)
			return c
		}
		return r.number(l, e, "capacity")
	}
	c := count{n: maxTokens, ok: true, own: true, pos: r.pos(e.value), unlimited: true}
	if l.money {
		c.n = maxMoney
	}
	if l.money && r.redis {
		c.ok = false
		r.add(c.pos, rules.MoneyRedis, "capacity of %s is %s: with redis in stores it can be at most %s, up to "+
			"which scripts of Redis compute exactly; write that, or take redis out of stores", l.what, Unlimited,
			amount(maxMoneyRedis))
	}
	return c
}

// unlimited returns l, whose capacity is unlimited, with the largest rate. It reports a rate or burst of its
// own.
func (r moneyReader) unlimited(f fields, l limit) limit {
	l.refill = count{n: fastest(l.every.d), ok: l.every.ok, own: true, pos: l.capacity.pos}
	for _, key := range []string{"refill", "burst"} {
		if e, ok := f.get(key); ok {
			r.add(r.pos(e.key), rules.UnlimitedKeys, "%s of %s goes with a number as capacity: an unlimited one has "+
				"the largest rate and burst that there are, so remove %s", key, l.what, key)
		}
	}
	return l
}

// WrittenCapacity returns the capacity of n as limits.yaml has it: 10_000, or unlimited.
func (n Numbers) WrittenCapacity() string {
	if n.Unlimited() {
		return Unlimited
	}
	return n.Count(n.Capacity)
}
