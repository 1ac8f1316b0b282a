package plan

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// DeniedImage returns the bucket that lacks the tokens, nil where p admits. A bare write has not been made where another
// bucket refuses too; what it would leave lacks them.
func (p *Plan) DeniedImage() *bucket.Image {
	switch {
	case p.Decision == Deny:
		return p.Image
	case p.Uncharged:
		return p.Predict("")
	}
	return nil
}

// Predict returns the bucket as p leaves it, if nobody else has written meanwhile.
func (p *Plan) Predict(op string) *bucket.Image {
	after := &bucket.Image{Refilled: p.Refilled, Version: p.Version, TTL: p.TTL, Op: op}
	switch p.Path {
	case Create, Reshape:
		after.Balances = bucket.Full(p.Limits)
		after.Missing = make([]bool, len(p.Limits))
		for i := range after.Balances {
			b, fill := &after.Balances[i], int64(0)
			if p.Image != nil && !p.Image.Missing[i] {
				b.Tokens, b.Consumed, fill = p.Image.Balances[i].Tokens, p.Image.Balances[i].Consumed, p.Fill[i]
			}
			b.Tokens = bucket.Sub(bucket.Add(b.Tokens, fill), p.Cost[i])
			b.Consumed = bucket.Add(b.Consumed, p.Cost[i])
		}
		return after
	case Normal:
	default: // refill stays unclaimed
		after.Refilled = p.Image.Refilled
	}
	all := slices.Clone(BalancesOf(p.Image).All)
	for i := range all {
		all[i].Tokens = bucket.Sub(bucket.Add(all[i].Tokens, p.Fill[i]), p.Cost[i])
		all[i].Consumed = bucket.Add(all[i].Consumed, p.Cost[i])
	}
	n := len(p.Image.Balances)
	after.Balances, after.Missing = all[:n:n], p.Image.Missing
	for i, named := range p.Image.Extra {
		after.Extra = append(after.Extra, bucket.Named{Name: named.Name, Balance: all[n+i]})
	}
	return after
}

// Expiry returns the ttl of a bucket with these balances at an instant: the latest that any limit asks for.
func Expiry(after []bucket.Balance, at int64) int64 {
	var ttl int64
	for _, b := range after {
		ttl = max(ttl, bucket.Expiry(b, at))
	}
	return ttl
}

// ExpiresTooSoon reports that img, if there is one, could be deleted by its ttl before it is full.
func ExpiresTooSoon(img *bucket.Image) bool {
	if img == nil {
		return false
	}
	for _, b := range BalancesOf(img).All {
		if full := bucket.ReadyAt(b, img.Refilled, b.Burst); img.TTL < bucket.LastExpiry && full > bucket.Mul(img.TTL, 1000) {
			return true
		}
	}
	return false
}

// Label is the path as observers see it, which know a settle that charges as one.
func (p *Plan) Label(settle bool) string {
	switch {
	case p.Reverses != "":
		return "undo"
	case p.RepairsTTL:
		return "repair"
	case settle && p.Path != Adjust:
		return "settle"
	}
	return p.Path.String()
}
