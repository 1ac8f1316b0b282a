package dynamo

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/known"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// These must hold beyond the single bucket: denials by a chain, transactions, and limits that change on the
// way.

// unfounded says which denial is not true, if any is not. Each of its refusals needs a reason: by the
// caller's clock, the tokens were missing at some moment of the call, or shortly before, while images may
// deny. If it is complete, so that retry after holds for the whole chain, it names every limit that is short
// at the call's end in any image of that time.
//
// If a lowered limit leaves a window less than nothing, a chain may be denied before that is written. Then
// changing says not to judge windows.
func unfounded(
	denials []denial, logs map[string][]commit, spec *store.Spec, complete, changing bool,
) string {
	for k := range denials {
		d := &denials[k]
		if len(d.refusals) == 0 {
			return fmt.Sprintf("denied from %d to %d without a refusal", d.began.UnixMilli(), d.ended.UnixMilli())
		}
		for _, r := range d.refusals {
			limit := slices.Index(spec.Limits, r.Limit)
			if short, _ := d.short(logs[r.Entity], limit); !short && !(changing && windowed(logs[r.Entity], limit)) {
				return fmt.Sprintf(
					"denied from %d to %d, skew %v, what %s had all the time: %v of %s",
					d.began.UnixMilli(),
					d.ended.UnixMilli(),
					time.Duration(d.by.clock.offsetClock),
					r.Entity,
					d.cost,
					r.Limit,
				)
			}
		}
		for _, b := range d.chain {
			for i, name := range spec.Limits {
				named := slices.ContainsFunc(
					d.refusals,
					func(r store.Refusal) bool { return r.Entity == b.Entity && r.Limit == name },
				)
				if _, always := d.short(logs[b.Entity], i); complete && always && !named {
					return fmt.Sprintf(
						"denied from %d to %d, skew %v, but not for the %d of %s that %s was short of whenever it was seen: %v",
						d.began.UnixMilli(),
						d.ended.UnixMilli(),
						time.Duration(d.by.clock.offsetClock),
						d.cost[i],
						name,
						b.Entity,
						d.refusals,
					)
				}
			}
		}
	}
	return ""
}

// isShortOf reports whether the bucket that c left has less than cost of a limit at an instant.
func (c *commit) isShortOf(cost []int64, limit int, at int64) bool {
	return !c.after.Missing[limit] &&
		bucket.Available(c.after.Balances[limit], c.after.Refilled, at) < cost[limit]
}

// remembered is for how long an image may refuse, by a clock that cuts off fractions of milliseconds.
const remembered = (known.TrustedFor + 1) * time.Millisecond

// short reports whether the bucket of that log was short of d's cost of a limit at some moment at which it
// may have been seen. The second result is whether it was so at every moment of the call.
func (d *denial) short(log []commit, limit int) (once, always bool) {
	if d.cost[limit] <= 0 {
		return false, false
	}
	began := d.began.Add(-remembered)
	first := sort.Search(len(log), func(k int) bool { return !log[k].at.Before(began) })
	always = first > 0 // else there was no bucket, which is a full one
	for k := max(first-1, 0); k < len(log) && !log[k].at.After(d.ended) && (always || !once); k++ {
		from := began
		if log[k].at.After(from) {
			from = log[k].at
		}
		shortAt := func(at time.Time) bool {
			return log[k].isShortOf(d.cost, limit, d.by.clock.at(at))
		}
		// A request behind others of its process is refused by what their write leaves when it is planned. Then it
		// stands right behind them in the order of instants.
		if c := &log[k]; c.tag.by == d.by && c.tag.included > 0 && c.tag.sent >= d.by.clock.at(began) {
			once = once || c.isShortOf(d.cost, limit, c.tag.sent)
		}
		once, always = once || shortAt(from), always && shortAt(d.ended)
	}
	return once, always
}

// divided says which attempt charged some of its buckets and not the others, or them unequally, or, where an
// op may be applied only once, which one was more often. Attempts of one op may be for fewer and fewer
// requests.
func divided(log []commit, once bool, absent limitsOf) string {
	parts := map[string][]commit{}
	var ops []string
	for _, c := range log {
		if op := c.after.Op; c.tag.targets > 1 && c.charges() {
			if parts[op] == nil {
				ops = append(ops, op)
			}
			parts[op] = append(parts[op], c)
		}
	}
	for _, op := range ops {
		whole := parts[op]
		if n := whole[0].tag.targets; once && len(whole) > n {
			return fmt.Sprintf("op %s charged %d times, in a chain of %d", op, len(whole), n)
		}
		for len(whole) > 0 {
			n := whole[0].tag.targets
			if len(whole) < n {
				return fmt.Sprintf("op %s charged %d buckets of %d", op, len(whole), n)
			}
			if problem := unequal(op, whole[:n], absent); problem != "" {
				return problem
			}
			whole = whole[n:]
		}
	}
	return ""
}

// unequal says how one write charged buckets of one kind otherwise than those of another. Of each limit that
// both kinds have, what it takes of the children adds up to what it takes of their parents.
func unequal(op string, whole []commit, absent limitsOf) string {
	sums := map[string][]int64{}
	for _, c := range whole {
		if !c.at.Equal(whole[0].at) || c.tag.sent != whole[0].tag.sent {
			first := whole[0]
			return fmt.Sprintf("op %s charged %s at %v, and %s at %v", op, first.entity, first.at, c.entity, c.at)
		}
		kind, _, _ := strings.Cut(c.entity, "-")
		if sums[kind] == nil {
			sums[kind] = make([]int64, len(c.takes()))
		}
		for i, n := range c.takes() {
			sums[kind][i] += n
		}
	}
	kinds := slices.Sorted(maps.Keys(sums))
	for k, kind := range kinds {
		for _, other := range kinds[:k] {
			for i, n := range sums[kind] {
				if n != sums[other][i] && !absent(kind)[i] && !absent(other)[i] {
					return fmt.Sprintf("op %s charged %s %v and %s %v", op, other, sums[other], kind, sums[kind])
				}
			}
		}
	}
	return ""
}

// flapping says which shape a bucket was given twice, or that it was reshaped more often than its limits
// changed, since it was created.
func flapping(log []commit, changes int) string {
	reached, reshapes := map[int64]bool{}, 0
	for _, c := range log {
		cv := c.after.Version
		if c.before == nil {
			reached, reshapes = map[int64]bool{cv: true}, 0
			continue
		}
		if c.before.Version == cv {
			continue
		}
		if reached[cv] {
			return fmt.Sprintf("%s was given shape %d again at %d", c.entity, cv, c.at.UnixMilli())
		}
		reached[cv] = true
		if reshapes++; reshapes > changes {
			return fmt.Sprintf("%s was reshaped %d times for %d changes", c.entity, reshapes, changes)
		}
	}
	return ""
}

// affecting counts the changes of an entity's two levels.
func affecting(changes []change, entity string) int {
	kind, _, _ := strings.Cut(entity, "-")
	count := 0
	for _, c := range changes {
		if c.at == entity || c.at == kind {
			count++
		}
	}
	return count
}

// outOfForce says which acquire went by limits that were in force at no instant from so long before its call
// to its write. One that was given back does not count.
func outOfForce(log []commit, changes []change, spec *store.Spec, cache time.Duration) string {
	for _, c := range log {
		stays := func(a *acquired) bool {
			a.undone[c.entity]--
			return a.undone[c.entity] < 0
		}
		if !c.charges() || !slices.ContainsFunc(c.tag.calls, stays) {
			continue
		}
		kind := spec.Kinds[slices.IndexFunc(spec.Kinds, func(k store.Kind) bool {
			return strings.HasPrefix(c.entity, k.Prefix)
		})]
		from := c.tag.began.Add(-cache - time.Millisecond)
		own, shared := said(changes, c.entity, spec, from, c.at), said(changes, kind.Name, spec, from, c.at)
		for i, b := range c.after.Balances {
			says := func(s store.Stored) bool { return s.Limits[i] != nil && *s.Limits[i] == b.Limit }
			silent := func(s store.Stored) bool { return s.Limits[i] == nil }
			if !slices.ContainsFunc(own, says) && !(slices.ContainsFunc(own, silent) &&
				(slices.ContainsFunc(shared, says) || slices.ContainsFunc(shared, silent) && b.Limit == kind.Limits[i])) {
				return fmt.Sprintf("%s was charged at %d by limit %d of %+v, which had not been in force for %v",
					c.entity, c.at.UnixMilli(), i, b.Limit, cache)
			}
		}
	}
	return ""
}

// said returns all that a level said between two instants.
func said(changes []change, level string, spec *store.Spec, from, to time.Time) []store.Stored {
	all := []store.Stored{{Limits: make([]*bucket.Limit, len(spec.Limits))}}
	for _, c := range changes {
		if c.at != level || c.when.After(to) {
			continue
		}
		stored, _, err := override.Decode(spec, level, c.item)
		if err != nil {
			panic(err)
		}
		if !c.when.After(from) {
			all = all[:0] // what was said before is over
		}
		all = append(all, stored)
	}
	return all
}

// TestSimTableTransactions checks what the store relies on. An applied token has no effect again, and on
// other writes it is an error. A transaction keeps all others from its items.
func TestSimTableTransactions(t *testing.T) {
	skipOnLocal(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := newSimTable(1, nil)
		table.quiet = true
		transact := func(token string, n int64, entities ...string) error {
			in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: &token}
			for _, entity := range entities {
				in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Update: &types.Update{
					Key: item.BucketKey(
						entity,
						"gpt-4",
					), ConditionExpression: aws.String("attribute_not_exists(n) OR n < :most"),
					UpdateExpression: aws.String(
						"ADD n :n",
					), ExpressionAttributeValues: codec.Item{":n": codec.N(n), ":most": codec.N(3)},
				}})
			}
			_, err := table.TransactWriteItems(t.Context(), in)
			return err
		}
		holds := func(entity string, want int64) {
			t.Helper()
			if item := table.items[keyOf(item.BucketKey(entity, "gpt-4"))]; item == nil || number(item["n"]) != want {
				t.Errorf("%s holds %v, want %d", entity, item, want)
			}
		}
		for range 2 {
			if err := transact("one", 3, "a-1", "b-1"); err != nil {
				t.Fatal(err)
			}
		}
		holds("a-1", 3)
		if _, ok := errors.AsType[*types.IdempotentParameterMismatchException](transact("one", 4, "a-1",
			"b-1")); !ok {
			t.Error("the token was taken for other writes")
		}
		cancelled, ok := errors.AsType[*types.TransactionCanceledException](transact("two", 1, "c-1", "a-1"))
		if !ok || *cancelled.CancellationReasons[0].Code != "None" ||
			*cancelled.CancellationReasons[1].Code != wire.ConditionFailed ||
			number(cancelled.CancellationReasons[1].Item["n"]) != 3 {
			t.Errorf("want the second item refused, with its image: %+v", cancelled)
		}
		if table.items[keyOf(item.BucketKey("c-1", "gpt-4"))] != nil {
			t.Error("half of a refused transaction was applied")
		}
		table.minDelay, table.maxDelay = 0, 1 // so that both arrive at once
		results := make(chan error)
		for _, token := range []string{"three", "four"} {
			go func() { results <- transact(token, 1, "d-1", "e-1") }()
		}
		if first, second := <-results, <-results; (first == nil) == (second == nil) {
			t.Errorf("one meets the other: %v, %v", first, second)
		}
		holds("d-1", 1)
	})
}
