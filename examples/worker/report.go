package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/examples/worker/limits"
	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// allowance is what a bucket lets through: its burst, and its rate for every second.
type allowance struct{ rate, burst int64 }

// over returns how many units it lets through in d, the first of which are its burst.
func (a allowance) over(d time.Duration) int64 {
	return a.burst + bucket.MulDiv(a.rate, d.Milliseconds(), 1000)
}

// account is what one bucket was charged.
type account struct {
	entity    string
	allowance allowance
	used      int64 // units, as the jobs say
	consumed  int64 // millitokens, as the table says
}

// accounts returns the tenants' accounts, and after them their fleet's.
func (s *shift) accounts(
	ctx context.Context, client *dynamodb.Client, jobs *limits.JobsResource,
) ([]account, error) {
	var own []account
	var fleet account
	for i, t := range s.tenants {
		seen, err := jobs.Peek(ctx, t.Tenant)
		if err != nil {
			return nil, err
		}
		for j, b := range seen.Buckets { // the tenant's, and the fleet's
			a := account{entity: b.Entity, allowance: allowance{b.Capacity.Units, b.Burst.Units}, used: s.used[i]}
			if a.consumed, err = consumed(ctx, client, b.Entity); err != nil {
				return nil, err
			}
			if j == 0 {
				own = append(own, a)
			} else {
				a.used += fleet.used
				fleet = a
			}
		}
	}
	return append(own, fleet), nil
}

// consumed returns what the table has as consumed by an entity, in millitokens.
func consumed(ctx context.Context, client *dynamodb.Client, entity string) (int64, error) {
	img, err := operator.Inspect(ctx, client, table, entity, limits.Jobs)
	if err != nil || img == nil {
		return 0, err
	}
	return img.Extra[0].Consumed, nil
}

// report writes the pictures, the totals and the checks, and fails if one of these does.
func (s *shift) report(out *strings.Builder, accounts []account) error {
	s.draw(out)
	s.drawUnits(out, accounts[len(accounts)-1].allowance)
	if err := s.totals(out, accounts); err != nil {
		return err
	}
	return s.check(out, accounts)
}

// totals writes a line for each bucket.
func (s *shift) totals(out *strings.Builder, accounts []account) error {
	rows := [][]string{{"BUCKET", "JOBS", "DONE", "FAILED", "TOO LATE", "STOPPED", "LEFT", "UNITS USED",
		"OF AT MOST"}}
	sums := make([]int, 5)
	for i, a := range accounts {
		own, manner := sums, ""
		if i < len(s.tenants) {
			c := s.counts[i]
			own, manner = []int{c[done], c[failed], c[late], c[abandoned], s.left[i]}, ", "+s.tenants[i].manner
		}
		row, jobs := []string{a.entity + manner, ""}, 0
		for j, n := range own {
			row = append(row, fmt.Sprint(n))
			jobs += n
			if i < len(s.tenants) {
				sums[j] += n
			}
		}
		row[1] = fmt.Sprint(jobs)
		rows = append(rows, append(row, fmt.Sprint(a.used), fmt.Sprint(a.allowance.over(s.ended.Sub(s.began)))))
	}
	if err := texttable.Write(out, "", "lrrrrrrrr", rows); err != nil {
		return err
	}
	out.WriteByte('\n')
	return nil
}

// check holds what the table says was consumed against what the jobs say they used, and both against the
// limits.
func (s *shift) check(out *strings.Builder, accounts []account) error {
	var wrong []error
	for _, a := range accounts {
		if a.consumed != a.used*bucket.Milli {
			wrong = append(wrong, fmt.Errorf("%s: the table has %d millitokens consumed, the jobs used %d units",
				a.entity, a.consumed, a.used))
		}
		if most := a.allowance.over(s.ended.Sub(s.began)); a.used > most {
			wrong = append(wrong, fmt.Errorf("%s: its jobs used %d units, its limit is %d in this time", a.entity,
				a.used, most))
		}
	}
	if n := s.sum(broken); n > 0 {
		wrong = append(wrong, fmt.Errorf("the limits of %d jobs could not be looked up, or settled", n))
	}
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	fmt.Fprintf(out,
		"check: ok: on all %d buckets as much was consumed as jobs used: what failed, came too late or was "+
			"stopped cost nothing\n",
		len(accounts))
	fmt.Fprintf(out, "check: ok: and nowhere more than the limit gives in %.1f s\n",
		s.ended.Sub(s.began).Seconds())
	return nil
}

// sum returns how many jobs ended so.
func (s *shift) sum(what phase) (n int) {
	for _, c := range s.counts {
		n += c[what]
	}
	return n
}
