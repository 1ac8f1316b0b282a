package main

import (
	"errors"
	"sync"

	limits "github.com/sluice-go/sluice/generated"
)

// account is what was done with one limit of one bucket, in its tokens.
type account struct {
	admitted int64 // reserved by calls that the table admitted
	denied   int64 // asked for by calls that this limit refused
	degraded int64 // asked for by calls that were admitted while the table did not answer: it has no record of them
	settled  int64 // consumed in the end
	unclear  int64 // at most consumed besides, by calls that failed: their reply was lost
}

// ledger is what the program knows: the books that the table is checked against.
type ledger struct {
	mu       sync.Mutex
	accounts map[accountKey]account
}

type accountKey struct {
	place
	limit string
}

func newLedger() *ledger { return &ledger{accounts: map[accountKey]account{}} }

// completed books a call of gpt-4.
func (l *ledger) completed(t *tenant, reserved int64, reply answer, err error) {
	switch {
	case reply.degraded:
		l.degrade(t, limits.GPT4RPM, 1)
		l.degrade(t, limits.GPT4TPM, reserved)
	case reply.used > 0 && (err == nil || errors.Is(err, errBroken)): // settled
		l.admit(t, limits.GPT4RPM, 1, 1)
		l.admit(t, limits.GPT4TPM, reserved, reply.used)
	case reply.used > 0: // the settle failed: what was reserved stands, or what was used
		l.admit(t, limits.GPT4RPM, 1, 1)
		l.admit(t, limits.GPT4TPM, reserved, min(reserved, reply.used))
		l.doubt(t, limits.GPT4TPM, max(reserved, reply.used)-min(reserved, reply.used))
	case errors.Is(err, errModel): // released
		l.admit(t, limits.GPT4RPM, 1, 0)
		l.admit(t, limits.GPT4TPM, reserved, 0)
	default:
		l.refuse(t, err, map[string]int64{limits.GPT4RPM: 1, limits.GPT4TPM: reserved})
	}
}

// embedded books a call of embeddings.
func (l *ledger) embedded(t *tenant, degraded bool, err error) {
	switch {
	case degraded:
		l.degrade(t, limits.EmbeddingsRPS, 1)
	case err == nil:
		l.admit(t, limits.EmbeddingsRPS, 1, 1)
	default:
		l.refuse(t, err, map[string]int64{limits.EmbeddingsRPS: 1})
	}
}

// admit books to every bucket that the tenant's calls charge.
func (l *ledger) admit(t *tenant, limit string, reserved, used int64) {
	l.each(t, limit, func(a *account) {
		a.admitted += reserved
		a.settled += used
	})
}

func (l *ledger) degrade(t *tenant, limit string, n int64) {
	l.each(t, limit, func(a *account) { a.degraded += n })
}

func (l *ledger) doubt(t *tenant, limit string, n int64) {
	l.each(t, limit, func(a *account) { a.unclear += n })
}

// refuse books a denial to every limit that refused, of whichever bucket. A contended call was not charged; another error
// leaves open whether cost was.
func (l *ledger) refuse(t *tenant, err error, cost map[string]int64) {
	if denied, ok := errors.AsType[*limits.DeniedError](err); ok {
		for _, r := range denied.Refusals {
			l.change(place{r.Entity, r.Resource}, r.Limit, func(a *account) { a.denied += r.Requested })
		}
		return
	}
	if _, contended := errors.AsType[*limits.ContendedError](err); contended {
		return
	}
	for limit, n := range cost {
		l.doubt(t, limit, n)
	}
}

func (l *ledger) each(t *tenant, limit string, by func(*account)) {
	for _, at := range t.charged() {
		l.change(at, limit, by)
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
