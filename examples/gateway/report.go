package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// report prints what each tenant got, what it cost, and the checks. It fails if a check does.
func (s *simulation) report(ctx context.Context, out io.Writer) error {
	// Costs come second in print but first in time: the other parts read, which costs.
	var tenants, costs, checks, bill strings.Builder
	err := errors.Join(
		s.reportCosts(&costs), s.checkBill(&bill), s.reportTenants(ctx, &tenants), s.check(ctx, &checks))
	_, failed := io.WriteString(out, tenants.String()+costs.String()+checks.String()+bill.String())
	return errors.Join(err, failed)
}

// reportTenants prints the table of buckets and limits.
func (s *simulation) reportTenants(ctx context.Context, out *strings.Builder) error {
	rows := [][]string{{"BUCKET", "MANNER", "LIMIT", "ADMITTED", "DENIED", "DEGRADED", "SETTLED", "LEFT"}}
	for _, l := range lines(s.tenants) {
		left, err := s.left(ctx, l)
		if err != nil {
			return err
		}
		head := []string{l.entity + " on " + l.resource, l.manner}
		for i, name := range l.limits() {
			a := s.ledger.of(l.place, name)
			row := slices.Concat(head, []string{name})
			for _, n := range []int64{a.admitted, a.denied, a.degraded, a.settled, left[i]} {
				row = append(row, texttable.Count(n))
			}
			rows = append(rows, row)
			head = []string{"", ""}
		}
	}
	fmt.Fprintln(out,
		"Each limit in its own tokens: reserved by admitted calls, refused to denied ones, asked for by")
	fmt.Fprintln(out,
		"degraded ones, let through without an answer and not charged, consumed in the end, left now.")
	fmt.Fprintln(out)
	if err := texttable.Write(out, "", "lllrrrrr", rows); err != nil {
		return err
	}
	out.WriteString("\n")
	return nil
}

// left peeks at a bucket; its limits are in schema order.
func (s *simulation) left(ctx context.Context, l line) ([]int64, error) {
	if l.calls == nil {
		snap, err := s.limiters[0].Embeddings.Peek(ctx, l.project)
		if err != nil {
			return nil, err
		}
		return []int64{snap.Available.RPS}, nil
	}
	snap, err := s.limiters[0].GPT4.Peek(ctx, l.calls)
	if err != nil {
		return nil, err
	}
	own := snap.Buckets[0].Available // snap.Available has the least of it and the project's
	return []int64{own.RPM, own.TPM}, nil
}

// closing reports that a path is one of settles and releases; the others are of acquires.
func closing(path string) bool { return path == "settle" || path == "adjust" }

// reportCosts prints calls to DynamoDB, their units and how long acquires took.
func (s *simulation) reportCosts(out *strings.Builder) error {
	c := s.meter.counts()
	rows := [][]string{{"CALLS TO DYNAMODB", "CALLS", "REFUSED", "NO ANSWER", "READ UNITS", "WRITE UNITS"}}
	for _, path := range s.meter.takenPaths() {
		u := s.meter.usage(func(_, p string) bool { return p == path })
		rows = append(rows, []string{
			path, texttable.Count(int64(u.calls)), texttable.Count(int64(u.refused)),
			texttable.Count(int64(u.unanswered)),
			units(u.read), units(u.write),
		})
	}
	rows = append(rows, nil)
	for _, resource := range []string{limits.GPT4, limits.Embeddings} {
		acquires := s.meter.usage(func(r, p string) bool { return r == resource && !closing(p) })
		rows = append(rows, perCall("per acquire on "+resource, s.meter.acquires(resource), acquires))
	}
	closings := s.meter.usage(func(_, p string) bool { return closing(p) })
	rows = append(rows, perCall("per settle or release", c.settled+c.released, closings))
	if err := texttable.Write(out, "", "lrrrrr", rows); err != nil {
		return err
	}
	fmt.Fprintln(out)
	rows = [][]string{{"ACQUIRE", "COUNT", "P50", "P99"}}
	for _, way := range []string{"admitted", "denied", "degraded", waiting} {
		if n, p50, p99 := s.meter.percentiles(way); n > 0 {
			rows = append(rows, []string{way, texttable.Count(int64(n)), millis(p50), millis(p99)})
		}
	}
	if err := texttable.Write(out, "", "lrrr", rows); err != nil {
		return err
	}
	out.WriteString("\n")
	return nil
}

func perCall(name string, n int, u usage) []string {
	each := func(total float64) string { return strconv.FormatFloat(total/float64(max(n, 1)), 'f', 2, 64) }
	return []string{name, each(float64(u.calls)), each(float64(u.refused)), each(float64(u.unanswered)),
		each(u.read), each(u.write)}
}

// units writes capacity units, of which reads have halves.
func units(n float64) string {
	if whole := int64(n); float64(whole) == n {
		return texttable.Count(whole)
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}

// check compares the table with the books, to the millitoken, and projects with their users. Calls that
// failed leave open whether they were charged, so that it can only hold the table between bounds then.
func (s *simulation) check(ctx context.Context, out *strings.Builder) error {
	after, err := s.consumed(ctx)
	if err != nil {
		return err
	}
	got := func(at place, limit string) (milli int64, stored bool) {
		key := accountKey{at, limit}
		milli, stored = after[key]
		return milli - s.before[key], stored
	}
	return errors.Join(s.checkStreams(out), s.checkSettled(out, got), s.checkProjects(out, got))
}

// checkStreams holds what clients have read against what was sent: of each reply that was not broken off they
// have read all, or one of them has said so.
func (s *simulation) checkStreams(out *strings.Builder) error {
	c := s.audit.streams()
	fmt.Fprintf(out,
		"streams: %s ended, %d broke off in the model, %d in the client; %d failed before the first token\n",
		texttable.Count(int64(c.whole)), c.broken, c.hungUp, c.failed)
	if s.serve != "" {
		return nil // what its clients have read, they know
	}
	read, err := s.caller.seen()
	if err == nil && read > c.sent {
		err = fmt.Errorf("clients have read %d tokens of %d that were sent", read, c.sent)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out,
		"check: ok: of %s tokens sent, clients read %s: all of each reply that was not broken off\n",
		texttable.Count(c.sent), texttable.Count(read))
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
		fmt.Fprintf(out, "check: ok: on all %d limits as much was consumed as passed on the wire, "+
			"give or take %s that failed, of %s tokens\n", checked, calls(failed), texttable.Count(unclear))
	default:
		fmt.Fprintf(out, "check: ok: on all %d limits as much was consumed as passed on the wire, %s millitokens\n",
			checked, texttable.Count(sum))
	}
	return nil
}

// checkProjects holds what each project has as consumed against the sum of its users'.
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
	fmt.Fprintf(out, "check: ok: on all %d limits of projects as much was consumed as by their users together\n",
		checked)
	return nil
}

// checkBill compares the units of the calls, as DynamoDB's replies and the runtime's rules state them, with
// the engine's own meter, which bills as AWS does. Only the engine in the process has one.
func (s *simulation) checkBill(out *strings.Builder) error {
	if s.engine == nil {
		return nil
	}
	stated, billed := s.meter.usage(func(_, _ string) bool { return true }), s.engine.Consumed().Total().Total()
	if stated.lost > 0 && stated.read <= billed.Read && stated.write <= billed.Write {
		fmt.Fprintf(out,
			"bill: the engine billed %s read and %s write units, the calls above state %s and %s; of %s the reply "+
				"was lost\n",
			units(billed.Read), units(billed.Write), units(stated.read), units(stated.write), calls(stated.lost))
		return nil
	}
	if stated.read != billed.Read || stated.write != billed.Write {
		return fmt.Errorf("the calls state %s read and %s write units, the engine billed %s and %s",
			units(stated.read), units(stated.write), units(billed.Read), units(billed.Write))
	}
	fmt.Fprintf(out, "bill: ok: the engine billed what the calls above state, %s read and %s write units\n",
		units(billed.Read), units(billed.Write))
	return nil
}

// calls writes a number of calls.
func calls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return texttable.Count(int64(n)) + " calls"
}

// millis writes d in milliseconds.
func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64) + " ms"
}
