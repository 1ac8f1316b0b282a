package bucketstore

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// LimitOf returns the limit that a field of a record has as its value, if it is one.
func LimitOf(field, value string) (l bucket.Limit, ok bool) {
	if field == "alias" || field == "buckets" { // names, which may be numbers
		return l, false
	}
	words := strings.Fields(value)
	into := [...]*int64{&l.Capacity, &l.Burst, &l.Refill, &l.Period}
	if len(words) != len(into) {
		return l, false
	}
	for i, word := range words {
		var err error
		if *into[i], err = strconv.ParseInt(word, 10, 64); err != nil {
			return l, false
		}
	}
	return l, true
}

// FieldText writes the value of a field of a record, or of an entry of a catalog. unit is the currency of the
// limit that it is of, "" for tokens.
func FieldText(field, value, unit string) string {
	l, isLimit := LimitOf(field, value)
	picos, err := strconv.ParseInt(value, 10, 64)
	switch {
	case value == "":
		return "-"
	case isLimit:
		return limitText(l, unit)
	case !strings.HasPrefix(field, "price ") || err != nil:
		return term.Escape(value)
	case picos == 0:
		return "0"
	}
	return gen.PriceText(picos)
}

// limitText writes a limit on one line.
func limitText(l bucket.Limit, unit string) string {
	columns := format.Limit(l, unit)
	if columns[0] == columns[1] {
		columns = slices.Delete(columns, 1, 2)
	} else {
		columns[1] = "burst " + columns[1]
	}
	return strings.Join(columns, ", ")
}

// UsedSince returns an entity whose bucket on resource was written since an instant, "" for none. On Redis, a
// window that is open counts as used.
func UsedSince(ctx context.Context, at Store, resource string, since time.Time) (string, error) {
	switch at := at.(type) {
	case *Table:
		return at.usedSince(ctx, resource, since.UnixMilli())
	case *Redis:
		return usedSince(ctx, at.Buckets, resource, since.UnixMilli())
	}
	return "", nil
}

func (s *Table) usedSince(ctx context.Context, resource string, since int64) (string, error) {
	for page, err := range operator.Buckets(ctx, s.items, s.Table, resource, "") {
		if err != nil {
			return "", err
		}
		for _, b := range page.Buckets {
			if b.Refilled >= since {
				return b.Entity, nil
			}
		}
	}
	return "", nil
}

// Check returns why at cannot store limits of s, although another store could.
func Check(at Store, spec *store.Spec, s store.Stored) error {
	if redis, ok := at.(*Redis); ok {
		return redis.Buckets.Overrides().Check(spec, s)
	}
	return nil
}

// inRedis is the part of Redis that lists records and entities on plans.
type inRedis struct{ from *redisstore.Store }

// Changes implements Store.
func (s inRedis) Changes(
	ctx context.Context, of store.Audited, since time.Time,
) iter.Seq2[store.Change, error] {
	return s.from.Changes(ctx, of, since)
}

// OnPlan implements Store.
func (s inRedis) OnPlan(ctx context.Context, kind *store.Kind, plan string) iter.Seq2[PlanPage, error] {
	return func(yield func(PlanPage, error) bool) {
		for page, err := range s.from.OnPlan(ctx, kind.Prefix, plan) {
			if !yield(PlanPage{Entities: page.Entities, Read: page.Read}, err) {
				return
			}
		}
	}
}

func usedSince(ctx context.Context, in *redisstore.Store, resource string, since int64) (string, error) {
	for page, err := range in.Buckets(ctx, resource, "") {
		if err != nil {
			return "", err
		}
		for _, b := range page.Buckets {
			if slices.ContainsFunc(b.Limits, func(l redisstore.StoredLimit) bool {
				return l.Refilled >= since || l.Ends >= since
			}) {
				return b.Entity, nil
			}
		}
	}
	return "", nil
}
