package breaker

import "errors"

// Variant is a Breaker, or one that is broken as a checker of breakers has to see.
type Variant struct {
	*Breaker

	Crowd  bool // counts each failure, whatever was answered during its call
	Deaf   bool // takes no note of answers
	Eager  bool // has a probe's place taken again at once
	Sticky bool // keeps the place of a probe that shows nothing
}

// ErrNeutral is the end of a call that shows nothing of the store.
var ErrNeutral = errors.New("neither a failure nor an answer")

// Enter reports whether a call is let through, and if so how to record what it shows of the store: an answer
// (nil), a failure, or nothing (ErrNeutral).
func (v *Variant) Enter() (leave func(shows error), ok bool) {
	p, ok := v.Breaker.Enter()
	if v.Eager && p.probe {
		v.Leave(p, false, nil)
		p.probe = false
	}
	return func(shows error) {
		if v.Crowd {
			p.answered = v.answered.Load()
		}
		failure := shows
		if errors.Is(shows, ErrNeutral) {
			failure = nil
			p.probe = p.probe && !v.Sticky
		}
		v.Leave(p, shows == nil && !v.Deaf, failure)
	}, ok
}

// Probes returns how many probes are under way.
func (b *Breaker) Probes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.probes
}
