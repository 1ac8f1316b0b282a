package dynamo

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// refusing returns the bucket that lacks the tokens, nil where p admits. A bare write has not been made where another
// bucket refuses too; what it would leave lacks them.
func (p *plan) refusing() *bucket.Image {
	switch {
	case p.verdict == refuse:
		return p.img
	case p.bare:
		return p.predict("")
	}
	return nil
}

// predict returns the bucket as p leaves it, if nobody else has written meanwhile.
func (p *plan) predict(op string) *bucket.Image {
	after := &bucket.Image{Refilled: p.rf, Version: p.cv, TTL: p.ttl, Op: op}
	switch p.path {
	case create, reshape:
		after.Balances = bucket.Full(p.limits)
		after.Missing = make([]bool, len(p.limits))
		for i := range after.Balances {
			b, fill := &after.Balances[i], int64(0)
			if p.img != nil && !p.img.Missing[i] {
				b.Tokens, b.Consumed, fill = p.img.Balances[i].Tokens, p.img.Balances[i].Consumed, p.fill[i]
			}
			b.Tokens = bucket.Sub(bucket.Add(b.Tokens, fill), p.cost[i])
			b.Consumed = bucket.Add(b.Consumed, p.cost[i])
		}
		return after
	case normal:
	default: // refill stays unclaimed
		after.Refilled = p.img.Refilled
	}
	all := slices.Clone(balancesOf(p.img).all)
	for i := range all {
		all[i].Tokens = bucket.Sub(bucket.Add(all[i].Tokens, p.fill[i]), p.cost[i])
		all[i].Consumed = bucket.Add(all[i].Consumed, p.cost[i])
	}
	n := len(p.img.Balances)
	after.Balances, after.Missing = all[:n:n], p.img.Missing
	for i, named := range p.img.Extra {
		after.Extra = append(after.Extra, bucket.Named{Name: named.Name, Balance: all[n+i]})
	}
	return after
}

// expiry returns the ttl of a bucket with these balances at an instant: the latest that any limit asks for.
func expiry(after []bucket.Balance, at int64) int64 {
	var ttl int64
	for _, b := range after {
		ttl = max(ttl, bucket.Expiry(b, at))
	}
	return ttl
}

// shortLived reports that img, if there is one, could be deleted by its ttl before it is full.
func shortLived(img *bucket.Image) bool {
	if img == nil {
		return false
	}
	for _, b := range balancesOf(img).all {
		if full := bucket.ReadyAt(b, img.Refilled, b.Burst); img.TTL < bucket.LastExpiry && full > bucket.Mul(img.TTL, 1000) {
			return true
		}
	}
	return false
}
