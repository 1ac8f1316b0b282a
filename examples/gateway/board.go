package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// way is how a call was answered, as its client sees it.
type way int

const (
	admitted way = iota
	denied       // 429
	degraded     // admitted while the table was down
	failed       // an error of the limiter
	ways     = 4
)

// wayOf reads an answer. One of a lease that the table granted has X-Ratelimit headers, also if the model
// then failed.
func wayOf(resp *http.Response) way {
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		return denied
	case resp.Header.Get("X-Ratelimit-Remaining-Requests") != "":
		return admitted
	case resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusBadGateway:
		return degraded
	}
	return failed
}

// cells is how many parts of the run a bar shows.
const cells = 46

// tally counts answers by way.
type tally [ways]int

// board has the answers that clients saw: of each tenant for each part of the run, and the first of each way.
type board struct {
	all time.Duration

	mu      sync.Mutex
	started time.Time
	bars    []bar
	first   [ways]*answer
	// when the table was down and up again, after the start; 0: not yet
	cut, up time.Duration
	report  func(text string) // of the outage; nil: none
	// the most calls of a user that ran at once
	peak func(user string) int
}

// bar has the answers to one tenant.
type bar struct {
	tenant *tenant
	cells  [cells]tally
}

// answer is one answer to a call of gpt-4.
type answer struct {
	tenant string
	after  time.Duration // of the start
	proto  string
	status string
	header http.Header
}

func newBoard(cast []tenant, all time.Duration) *board {
	b := &board{all: all, started: time.Now()}
	for i := range cast {
		b.bars = append(b.bars, bar{tenant: &cast[i]})
	}
	return b
}

// start notes that the run starts now.
func (b *board) start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.started = time.Now()
}

// elapsed is how much of the run is over.
func (b *board) elapsed() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Since(b.started)
}

// onOutage sets what is called when the outage begins and when it ends.
func (b *board) onOutage(report func(text string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.report = report
}

// outage notes that the outage begins or ends now.
func (b *board) outage(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, text := &b.up, "is up again"
	if down {
		at, text = &b.cut, "is down"
	}
	*at = time.Since(b.started)
	if b.report != nil {
		b.report(fmt.Sprintf("%.1f s: the table %s", at.Seconds(), text))
	}
}

// note books an answer to the tenant.
func (b *board) note(t *tenant, resp *http.Response) {
	b.mu.Lock()
	defer b.mu.Unlock()
	after, how := time.Since(b.started), wayOf(resp)
	for i := range b.bars {
		if b.bars[i].tenant == t {
			b.bars[i].cells[b.cell(after)][how]++
		}
	}
	if b.first[how] == nil && !t.embeds && (how == denied || resp.StatusCode == http.StatusOK) {
		b.first[how] = &answer{t.name, after, resp.Proto, resp.Status, resp.Header}
	}
}

// cell is the part of the run that an instant is in. Answers after its end are in the last.
func (b *board) cell(after time.Duration) int {
	return min(int(after*cells/b.all), cells-1)
}

// sum adds up a bar's cells.
func (b *bar) sum() (all tally) {
	for _, c := range b.cells {
		for how, n := range c {
			all[how] += n
		}
	}
	return all
}

// answers describes the first answer of each way that there was one of.
func (b *board) answers() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := []string{"The first answer of each kind, as its client saw it:"}
	line := func(a *answer, more string) {
		text = append(text,
			fmt.Sprintf("%5.1f s  %-8s %s %s%s", a.after.Seconds(), a.tenant, a.proto, a.status, more))
	}
	if a := b.first[admitted]; a != nil {
		line(a, "")
		text = append(text, a.headers("X-Ratelimit-Remaining-Requests", "X-Ratelimit-Remaining-Tokens"))
	}
	if a := b.first[denied]; a != nil {
		line(a, "")
		text = append(text, a.headers("Retry-After", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"))
	}
	if a := b.first[degraded]; a != nil {
		line(a, ", degraded: no X-Ratelimit header, since the table did not answer")
	}
	return text
}

// headers writes those of the names that the answer has.
func (a *answer) headers(names ...string) string {
	var all []string
	for _, name := range names {
		for _, value := range a.header.Values(name) {
			all = append(all, name+": "+value)
		}
	}
	return strings.Repeat(" ", 18) + strings.Join(all, "   ")
}
