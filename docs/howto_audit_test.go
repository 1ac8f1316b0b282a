package docs_test

import (
	"context"
	"testing"
	"time"

	plans "github.com/sluice-go/sluice/gen/testdata/golden/plans/out"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// bought is quoted in docs/how-to/audit.md.
func bought(ctx context.Context, lim *plans.Limiter, customer string) error {
	ctx = runtime.ChangedBy(ctx, "alice@example.com", "invoice 2026-117")
	return lim.SetPlan(ctx, plans.Org{ID: customer}, plans.PlanPro)
}

// TestAudit: docs/how-to/audit.md says whom a record names.
func TestAudit(t *testing.T) {
	const table = "rate_limits"
	client := memdynamo.New().Client()
	if _, err := operator.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	lim, err := plans.New(dynamo.New(client, table))
	if err != nil {
		t.Fatal(err)
	}
	if err := bought(t.Context(), lim, "7"); err != nil {
		t.Fatal(err)
	}
	n := 0
	of := store.Audited{Entity: "org-7"}
	for c, err := range operator.Changes(t.Context(), client, table, of, time.Time{}) {
		if n++; err != nil || c.By != "alice@example.com" || c.Reason != "invoice 2026-117" ||
			c.After["plan"] != "pro" {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}
