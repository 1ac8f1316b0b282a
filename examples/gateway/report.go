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

	"github.com/sluice-go/sluice/internal/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// report prints what each tenant got, what it cost, and the checks. It fails if a check does.
func (s *simulation) report(ctx context.Context, out io.Writer) error {
	// Costs come second in print but first in time: the other parts read, which costs.
	var tenants, costs, checks, bill strings.Builder
	err := s.reportCosts(&costs)
	if err == nil {
		err = s.checkBill(&bill)
	}
	err = errors.Join(err, s.reportTenants(ctx, &tenants))
	if err == nil {
		err = s.check(ctx, &checks)
	}
	_, failed := io.WriteString(out, tenants.String()+costs.String()+checks.String()+bill.String())
	return errors.Join(err, failed)
}

// reportTenants prints the table of tenants and limits.
func (s *simulation) reportTenants(ctx context.Context, out *strings.Builder) error {
	rows := [][]string{{"TENANT", "MANNER", "BUCKET", "LIMIT", "ADMITTED", "DENIED", "SETTLED", "LEFT"}}
	for i := range s.tenants {
		t := &s.tenants[i]
		left, err := s.left(ctx, t)
		if err != nil {
			return err
		}
		entity, resource, names := t.bucket()
		head := []string{t.name, t.manner, entity + " on " + resource}
		for j, name := range names {
			a := s.ledger.of(t, name)
			rows = append(rows, append(head, name, texttable.Count(a.admitted), texttable.Count(a.denied), texttable.Count(a.settled), texttable.Count(left[j])))
			head = []string{"", "", ""}
		}
	}
	fmt.Fprintln(out, "Each limit in its own tokens: reserved by admitted calls, refused to denied ones, consumed in the end, left now.")
	fmt.Fprintln(out)
	if err := texttable.Write(out, "", "llllrrrr", rows); err != nil {
		return err
	}
	out.WriteString("\n")
	return nil
}

// left peeks at the tenant's bucket; its limits are in schema order.
func (s *simulation) left(ctx context.Context, t *tenant) ([]int64, error) {
	if t.embeds {
		snap, err := s.limiters[0].Embeddings.Peek(ctx, t.user.Project)
		if err != nil {
			return nil, err
		}
		return []int64{snap.Available.RPS}, nil
	}
	snap, err := s.limiters[0].GPT4.Peek(ctx, t.user)
	if err != nil {
		return nil, err
	}
	return []int64{snap.Available.RPM, snap.Available.TPM}, nil
}

// The paths of calls to DynamoDB that acquires take, and that settles and releases do.
var (
	charges = []string{"create", "normal", "retry", "reshape", "read", "repair", "undo"}
	settles = []string{"settle", "adjust"}
)

// reportCosts prints calls to DynamoDB, their units and how long acquires took.
func (s *simulation) reportCosts(out *strings.Builder) error {
	c := s.meter.counts()
	rows := [][]string{{"CALLS TO DYNAMODB", "CALLS", "REFUSED", "READ UNITS", "WRITE UNITS"}}
	for _, path := range slices.Concat(charges, settles) {
		if u := s.meter.usage(path); u.calls > 0 {
			rows = append(rows, []string{path, texttable.Count(int64(u.calls)), texttable.Count(int64(u.refused)), units(u.read), units(u.write)})
		}
	}
	rows = append(rows, nil,
		perCall("per acquire", c.admitted+c.denied, s.meter.usage(charges...)),
		perCall("per settle or release", c.settled+c.released, s.meter.usage(settles...)))
	if err := texttable.Write(out, "", "lrrrr", rows); err != nil {
		return err
	}
	fmt.Fprintln(out)
	rows = [][]string{{"ACQUIRE", "COUNT", "P50", "P99"}}
	for _, way := range []string{"admitted", "denied"} {
		n, p50, p99 := s.meter.percentiles(way)
		rows = append(rows, []string{way, texttable.Count(int64(n)), millis(p50), millis(p99)})
	}
	if err := texttable.Write(out, "", "lrrr", rows); err != nil {
		return err
	}
	out.WriteString("\n")
	return nil
}

func perCall(name string, n int, u usage) []string {
	each := func(total float64) string { return strconv.FormatFloat(total/float64(max(n, 1)), 'f', 2, 64) }
	return []string{name, each(float64(u.calls)), each(float64(u.refused)), each(u.read), each(u.write)}
}

// units writes capacity units, of which reads have halves.
func units(n float64) string {
	if whole := int64(n); float64(whole) == n {
		return texttable.Count(whole)
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}

// check compares the table with the books, to the millitoken. Calls that failed leave open whether they were charged, so
// that it can only hold the table between bounds then.
func (s *simulation) check(ctx context.Context, out *strings.Builder) error {
	after, err := s.consumed(ctx)
	if err != nil {
		return err
	}
	var sum, unclear int64
	checked, wrong := 0, 0
	for i := range s.tenants {
		t := &s.tenants[i]
		_, _, names := t.bucket()
		for _, name := range names {
			key, a := accountKey{t.name, name}, s.ledger.of(t, name)
			got, want := after[key]-s.before[key], a.settled*bucket.Milli
			checked++
			sum += got
			unclear += a.unclear
			if got < want || got > want+a.unclear*bucket.Milli {
				wrong++
				fmt.Fprintf(out, "check: %s, %s: the table has %d millitokens consumed, the program settled %d\n", t.name, name, got, want)
			}
		}
	}
	switch failed := s.meter.counts().failed; {
	case wrong > 0:
		return fmt.Errorf("%d of %d limits differ (%s failed)", wrong, checked, calls(failed))
	case unclear > 0:
		fmt.Fprintf(out, "check: ok: on all %d limits the table has as consumed what the program settled, "+
			"give or take %s that failed, of %s tokens\n", checked, calls(failed), texttable.Count(unclear))
	default:
		fmt.Fprintf(out, "check: ok: on all %d limits the table has as consumed what the program settled, %s millitokens in all\n",
			checked, texttable.Count(sum))
	}
	return nil
}

// checkBill compares the units of the calls, as DynamoDB's replies and the runtime's rules state them, with the engine's own
// meter, which bills as AWS does. Only the engine in the process has one.
func (s *simulation) checkBill(out *strings.Builder) error {
	if s.billed == nil {
		return nil
	}
	stated, billed := s.meter.usage(slices.Concat(charges, settles)...), s.billed()
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
