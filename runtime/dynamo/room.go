package dynamo

import (
	"math"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
)

// room is what acquires may take of one bucket, by limit.
type room struct {
	whole, left []int64
	most        []int64 // bursts
}

// room returns what is there at now, as far as is known.
func (l *leg) room(now int64) room {
	img := l.view.Image
	whole, most := make([]int64, len(l.shape.Limits)), make([]int64, len(l.shape.Limits))
	for i, limit := range l.shape.Limits {
		whole[i], most[i] = limit.Burst, limit.Burst
	}
	switch {
	case img == nil:
	case plan.Outdated(img, &l.shape.Shape):
		p := plan.NewReshape(make([]int64, len(whole)), img, &l.shape.Shape, now)
		for i, b := range p.Predict("").Balances {
			whole[i] = b.Tokens
		}
	default:
		for i, b := range img.Balances {
			whole[i], most[i] = math.MaxInt64, math.MaxInt64 // of a limit that is missing nothing is taken
			if !img.Missing[i] {
				whole[i], most[i] = bucket.Available(b, img.Refilled, now), b.Burst
			}
		}
	}
	if l.shape.Ceiling != nil {
		for i := range whole {
			if _, none := l.shape.ExceedsQuota(img, i, 1); none {
				whole[i], most[i] = 0, 0
			}
		}
	}
	return room{whole, slices.Clone(whole), most}
}

// add counts what settles among all give back: it is there for those who take.
func (m *room) add(all []*request, i int) {
	back := make([]int64, len(m.left))
	for _, r := range all {
		for j, c := range r.wants(i) {
			if r.settle {
				back[j] = bucket.Sub(back[j], c)
			}
		}
	}
	for j, b := range back {
		m.left[j] = min(bucket.Add(m.left[j], max(b, 0)), m.most[j])
	}
}

// has reports whether cost fits into what is left, and whether it would fit into the whole.
func (m *room) has(cost []int64) (left, whole bool) {
	left, whole = true, true
	for j, c := range cost {
		left, whole = left && (c <= 0 || c <= m.left[j]), whole && (c <= 0 || c <= m.whole[j])
	}
	return left, whole
}

func (m *room) take(cost []int64) {
	for j, c := range cost {
		m.left[j] = bucket.Sub(m.left[j], c)
	}
}
