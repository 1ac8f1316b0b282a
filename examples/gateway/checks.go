package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// check compares the table with the books, to the millitoken, and projects with their users. Calls that
// failed leave open whether they were charged, so that it can only hold the table between bounds then.
func (s *simulation) check(ctx context.Context, out *strings.Builder) error {
	after, err := s.stored(ctx)
	if err != nil {
		return err
	}
	got := func(at place, limit string) (milli int64, stored bool) {
		key := accountKey{at, limit}
		b, stored := after[key]
		return b.Consumed - s.before[key].Consumed, stored
	}
	return errors.Join(s.checkStreams(out), s.checkSettled(out, got), s.checkProjects(out, got),
		s.checkBounds(out, after), s.checkSlots(out, after))
}

// checkStreams holds what clients have read against what was sent: of each reply that was not broken off they
// have read all, or one of them has said so.
func (s *simulation) checkStreams(out *strings.Builder) error {
	if s.serve != "" {
		return nil // what its clients have read, they know
	}
	c := s.audit.streams()
	read, err := s.caller.seen()
	if err == nil && read > c.sent {
		err = fmt.Errorf("clients have read %d tokens of %d that were sent", read, c.sent)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out,
		"ok: Clients read %s of the %s tokens sent, and all of each reply that did not break off.\n",
		texttable.Count(read), texttable.Count(c.sent))
	return nil
}

// consumption returns how much a bucket has as consumed of a limit, and whether there is such a bucket.
type consumption func(at place, limit string) (milli int64, stored bool)

// checkSettled holds what each bucket has as consumed against what was seen on the wire: prompts, and the
// tokens of replies. A bucket that expired meanwhile, as those of embeddings do two seconds after their last
// call, has taken that along; the engine in the process keeps them.
func (s *simulation) checkSettled(out *strings.Builder, got consumption) error {
	var sum, unclear int64
	checked, wrong := 0, 0
	for _, l := range lines(s.tenants) {
		for _, name := range l.limits() {
			a := s.ledger.of(l.place, name)
			has, stored := got(l.place, name)
			if !stored && s.engine == nil {
				fmt.Fprintf(out, "check: %s on %s, %s: the bucket has expired\n", l.entity, l.resource, name)
				continue
			}
			checked++
			sum += has
			open := s.ledger.unclear(name, l.callers()...)
			unclear += open
			if want := a.settled * bucket.Milli; has < want-open*bucket.Milli || has > want+open*bucket.Milli {
				wrong++
				fmt.Fprintf(out, "check: %s on %s, %s: the table has %d millitokens consumed, replies had %d\n",
					l.entity, l.resource, name, has, want)
			}
		}
	}
	switch failed := s.meter.counts().failed; {
	case wrong > 0:
		return fmt.Errorf("%d of %d limits differ (%s failed)", wrong, checked, calls(failed))
	case unclear > 0:
		fmt.Fprintf(out,
			"ok: The table charged what passed on the wire, give or take %s tokens of %s that failed.\n",
			texttable.Count(unclear), calls(failed))
	default:
		fmt.Fprintf(out, "ok: The table charged what passed on the wire, on all %d limits: %s millitokens.\n",
			checked, texttable.Count(sum))
	}
	return nil
}

// checkProjects holds what each project has as consumed against the sum of its users', and what each org has
// against its bill.
func (s *simulation) checkProjects(out *strings.Builder, got consumption) error {
	checked, wrong := 0, 0
	for _, l := range lines(s.tenants) {
		if len(l.users) == 0 {
			continue
		}
		for _, name := range l.limits() {
			var users, unclear int64
			for _, u := range l.users {
				own, _ := got(u, name)
				users += own
				unclear += s.ledger.unclear(name, u) * bucket.Milli
			}
			checked++
			if has, _ := got(l.place, name); has < users-unclear || has > users+unclear {
				wrong++
				fmt.Fprintf(out, "check: %s on %s, %s: the table has %d millitokens consumed, its users' sum is %d\n",
					l.entity, l.resource, name, has, users)
			}
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d sums over users differ", wrong, checked)
	}
	return s.checkBudgets(out, got)
}

// checkBounds holds what each bucket gave out and has left against what it can have had: its tokens before
// the run, and the refill since.
func (s *simulation) checkBounds(out *strings.Builder, after map[accountKey]balance) error {
	checked, wrong := 0, 0
	for _, l := range lines(s.tenants) {
		for _, name := range l.limits() {
			key := accountKey{l.place, name}
			b, stored := after[key]
			if !stored {
				continue // it gave nothing out, or has expired
			}
			checked++
			start, existed := s.before[key]
			if !existed { // a new bucket is full
				start.Tokens, start.refilled = b.Burst, s.began.UnixMilli()
			}
			got := b.Consumed - start.Consumed + b.Tokens
			if most := start.Tokens + bucket.Refill(b.Limit, start.refilled, b.refilled); got > most {
				wrong++
				fmt.Fprintf(out, "check: %s on %s, %s: consumed and left are %d millitokens, burst and refill %d\n",
					l.entity, l.resource, name, got, most)
			}
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d limits have forged tokens", wrong, checked)
	}
	if checked == 0 {
		return errors.New("no bucket is left to check")
	}
	fmt.Fprintf(out, "ok: No token was forged: consumed and left are within burst and refill, on all %d "+
		"limits.\n", checked)
	return nil
}

// checkBill compares the units of the calls, as DynamoDB's replies and the runtime's rules state them, with
// the engine's own meter, which bills as AWS does. Only the engine in the process has one.
func (s *simulation) checkBill(out *strings.Builder) error {
	if s.engine == nil {
		return nil
	}
	stated, billed := s.meter.usage(func(_, _ string) bool { return true }), s.engine.Consumed().Total().Total()
	lost := max(stated.lost, int(s.wire.lost.Load()))
	also := ""
	switch {
	case stated.read == billed.Read && stated.write == billed.Write:
	case lost > 0 && stated.read <= billed.Read && stated.write <= billed.Write:
		also = fmt.Sprintf(", and %s without a reply", calls(lost))
	default:
		return fmt.Errorf("the calls state %s read and %s write units, the engine billed %s and %s",
			units(stated.read), units(stated.write), units(billed.Read), units(billed.Write))
	}
	fmt.Fprintf(out, "ok: The engine billed what calls state%s: %s read and %s write units.\n", also,
		units(billed.Read), units(billed.Write))
	return nil
}
