package redisstore

import (
	"context"
	"iter"
	"time"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/audit"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/catalog"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/members"
	"github.com/sluice-go/sluice/runtime/store"
)

// Changes yields the records of changes that people have made to of since an instant, oldest first. It ends
// with the first error. Redis keeps the last 1,000 records of a place, until nothing has changed there for
// 400 days.
func (s *Store) Changes(
	ctx context.Context, of store.Audited, since time.Time,
) iter.Seq2[store.Change, error] {
	before := audit.Fields
	if of.Catalog != "" {
		before = catalog.Fields
	}
	return audit.List(ctx, &s.db, of, since, before)
}

// PlanPage is a page of OnPlan.
type PlanPage = members.PlanPage

// OnPlan yields the entities with this prefix of a kind that are on a plan. It visits all keys by SCAN, on
// each master of a cluster. It ends with the first error.
func (s *Store) OnPlan(ctx context.Context, prefix, plan string) iter.Seq2[PlanPage, error] {
	return (&members.Members{DB: &s.db}).OnPlan(ctx, prefix, plan)
}
