package main

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/sluice-go/sluice/examples/gateway/limits"
	"github.com/sluice-go/sluice/runtime"
)

// account is what was done with one limit of one bucket, in its tokens.
type account struct {
	admitted int64 // reserved by calls that the table admitted
	denied   int64 // asked for by calls that this limit refused
	// asked for by calls that were admitted while the table did not answer: it has no record of them
	degraded int64
	settled  int64 // consumed in the end
}

// ledger is what the program knows: the books that the table is checked against.
type ledger struct {
	mu       sync.Mutex
	accounts map[accountKey]account
	// calls of who has this bucket that leave open whether they were charged, or for what: a reply was lost
	failed  map[place]int64
	largest map[place]int64 // of these calls: the most tokens that one reserved, or used
	bills   map[place]int64 // of orgs, what the model's provider charges for calls, in nano-units
}

type accountKey struct {
	place
	limit string
}

func newLedger() *ledger {
	return &ledger{accounts: map[accountKey]account{}, failed: map[place]int64{}, largest: map[place]int64{},
		bills: map[place]int64{}}
}

// completed books a call of gpt-4 by how it was answered, 0 being a client that hung up before it was.
// Denials are booked by observe, since only the limiters know which limit refused.
func (l *ledger) completed(t *tenant, status int, degraded bool, estimate, usage limits.GPT4Usage) {
	reserved, used := estimate.Input+estimate.Output, usage.Input+usage.Output
	l.asked(t, max(reserved, used))
	switch {
	case status != 0 && status != http.StatusOK && status != http.StatusBadGateway:
	case degraded:
		l.degrade(t, limits.GPT4RPM, 1)
		l.degrade(t, limits.GPT4TPM, reserved)
	case status == http.StatusBadGateway: // released
		l.admit(t, limits.GPT4RPM, 1, 0)
		l.admit(t, limits.GPT4TPM, reserved, 0)
	default:
		l.admit(t, limits.GPT4RPM, 1, 1)
		l.admit(t, limits.GPT4TPM, reserved, used)
		l.bill(t, usage)
	}
}

// embedded books a call of embeddings.
func (l *ledger) embedded(t *tenant, status int, degraded bool) {
	if status != http.StatusOK {
		return
	}
	l.change(textsOn(t.user.Project), limits.EmbeddingsRPS.String(), func(a *account) {
		if degraded {
			a.degraded++
			return
		}
		a.admitted++
		a.settled++
	})
}

// observe adds bookkeeping to an observer. A denial is booked to every limit that refused, in any bucket. A
// failed call is booked as unclear, unless it was contended and so not charged.
func (l *ledger) observe(o *runtime.Observer) *runtime.Observer {
	then := *o
	o.Denied = func(ctx context.Context, e runtime.Event) {
		then.Denied(ctx, e)
		if denied, ok := errors.AsType[*limits.DeniedError](e.Err); ok {
			for _, r := range denied.Refusals {
				l.change(place{r.Entity, r.Resource}, r.Limit, func(a *account) { a.denied += r.Requested })
			}
		}
	}
	o.Failed = func(ctx context.Context, e runtime.Event) {
		then.Failed(ctx, e)
		if _, contended := errors.AsType[*limits.ContendedError](e.Err); !contended {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.failed[place{e.Entity, e.Resource}]++
		}
	}
	return o
}

// asked notes how many tokens a call has to do with.
func (l *ledger) asked(t *tenant, tokens int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := t.charged()[0]
	l.largest[own] = max(l.largest[own], tokens)
}

// unclear returns by how much at most a bucket's consumption may be other than settled: for each call of by
// that failed, its own tokens.
func (l *ledger) unclear(limit string, by ...place) (sum int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, own := range by {
		each := int64(1)
		if limit == limits.GPT4TPM.String() {
			each = l.largest[own]
		}
		sum += l.failed[own] * each
	}
	return sum
}

// admit books to every bucket that the tenant's calls charge.
func (l *ledger) admit(t *tenant, limit runtime.LimitName, reserved, used int64) {
	l.each(t, limit, func(a *account) {
		a.admitted += reserved
		a.settled += used
	})
}

func (l *ledger) degrade(t *tenant, limit runtime.LimitName, n int64) {
	l.each(t, limit, func(a *account) { a.degraded += n })
}

func (l *ledger) each(t *tenant, limit runtime.LimitName, by func(*account)) {
	for _, at := range t.charged() {
		l.change(at, limit.String(), by)
	}
}

func (l *ledger) change(at place, limit string, by func(*account)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := accountKey{at, limit}
	a := l.accounts[key]
	by(&a)
	l.accounts[key] = a
}

// of returns the account of a bucket's limit.
func (l *ledger) of(at place, limit string) account {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.accounts[accountKey{at, limit}]
}
