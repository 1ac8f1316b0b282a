package prefetch_test

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime"
)

// entry is tokens that a call got, after it had waited for its write, or gave back.
type entry struct {
	at     time.Time
	tokens int64
	waited time.Duration
}

// books are what the calls of a history got.
type books struct {
	mu       sync.Mutex
	got      map[string][]entry // by entity, as stored
	back     map[string][]entry
	net      map[string]int64 // got less back
	late     map[string]int64 // what calls got after their process was killed: nobody has it
	waited   time.Duration
	admitted int
	refused  int
	others   map[string]int
}

func newBooks() *books {
	return &books{
		got: map[string][]entry{}, back: map[string][]entry{}, net: map[string]int64{}, late: map[string]int64{},
		others: map[string]int{},
	}
}

// admit books the tokens of a call that was admitted, after it had waited.
func (b *books) admit(entity of, tokens int64, waited time.Duration) {
	b.mu.Lock()
	b.admitted++
	b.waited = max(b.waited, waited)
	b.mu.Unlock()
	b.add(entity, tokens, waited)
}

// refuse books a call that failed with err.
func (b *books) refuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, denied := errors.AsType[*runtime.DeniedError](err); denied {
		b.refused++
	} else {
		b.others[fmt.Sprintf("%T", err)]++
	}
}

// lose books the tokens of a call that was admitted after its process had been killed.
func (b *books) lose(entity of, tokens int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range entity.stored() {
		b.late[id] += tokens
	}
}

// add books tokens of the buckets of an entity, at now; negative ones were given back.
func (b *books) add(entity of, tokens int64, waited time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range entity.stored() {
		if b.net[id] += tokens; tokens >= 0 {
			b.got[id] = append(b.got[id], entry{time.Now(), tokens, waited})
		} else {
			b.back[id] = append(b.back[id], entry{time.Now(), -tokens, waited})
		}
	}
}

// excess returns by how many tokens a bucket's calls are beyond the bound in the worst interval, 0 or less
// for none. For d, the bound has the longest wait of calls up to the interval's end. Tokens that were given
// back count in the interval and for some time before it, since they may be on their way.
func (b *books) excess(entity string, rate, burst float64, ahead time.Duration) int64 {
	got, back := b.got[entity], b.back[entity]
	if len(got) == 0 {
		return math.MinInt64
	}
	began, longest := got[0].at, time.Duration(0)
	refill := func(at time.Time) float64 { return at.Sub(began).Seconds() * rate }
	var admitted, before, until float64
	least, worst := math.Inf(1), math.Inf(-1)
	i, j := 0, 0
	for _, e := range got {
		for ; i < len(back) && back[i].at.Before(e.at.Add(-3*(ahead+b.waited))); i++ {
			before += float64(back[i].tokens)
		}
		for ; j < len(back) && !back[j].at.After(e.at); j++ {
			until += float64(back[j].tokens)
		}
		longest = max(longest, e.waited)
		least = min(least, admitted-before-refill(e.at))
		admitted += float64(e.tokens)
		worst = max(worst, admitted-until-refill(e.at)-least-rate*(ahead+longest).Seconds())
	}
	return int64(math.Ceil(worst - burst))
}
