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

	"github.com/sluice-go/sluice/examples/gateway/limits"
	"github.com/sluice-go/sluice/internal/tool/texttable"
)

// report prints a sentence for each check that holds. Before these it prints tables, of what each tenant got
// and what it cost, if the settings say so. It fails if a check does.
func (s *simulation) report(ctx context.Context, out io.Writer) error {
	// Costs come second in print but first in time: the other parts read, which costs.
	var tenants, costs, checks, bill strings.Builder
	err := errors.Join(
		s.reportCosts(&costs), s.checkBill(&bill), s.reportTenants(ctx, &tenants), s.check(ctx, &checks))
	text := checks.String() + bill.String()
	if s.verbose || s.serve != "" {
		c := s.audit.streams()
		text = fmt.Sprintf("%s%sstreams: %s ended, %d broke off in the model, %d in the client; %d failed before "+
			"the first token\n\n%s", &tenants, &costs, texttable.Count(int64(c.whole)), c.broken, c.hungUp, c.failed,
			text)
	}
	_, failed := io.WriteString(out, text)
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
