package runtime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestBalances: what a lease says of its buckets is what the store is remembered to have, and moves with what
// it settles.
func TestBalances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, err := generated.New(limittest.Store(t))
		if err != nil {
			t.Fatal(err)
		}
		user := generated.User{ID: "1", Project: generated.Project{ID: "2"}}
		if balances := lim.GPT4.Lookup(user); balances != nil {
			t.Errorf("of what was never seen, %v is remembered", balances)
		}
		lease, err := lim.GPT4.Acquire(t.Context(), user, generated.GPT4Cost{TPM: 6_000})
		if err != nil {
			t.Fatal(err)
		}
		own, shared := bucket.Per(100, time.Minute), bucket.Per(1_000, time.Minute)
		tokens, all := bucket.Per(10_000, time.Minute).WithBurst(15_000),
			bucket.Per(100_000, time.Minute).WithBurst(150_000)
		want := []runtime.Balance{
			{Resource: "gpt-4", Entity: "user-1", Limit: "rpm", Params: own,
				Available: 99, Full: 600 * time.Millisecond},
			{Resource: "gpt-4", Entity: "user-1", Limit: "tpm", Params: tokens,
				Available: 9_000, Full: 36 * time.Second},
			{Resource: "gpt-4", Entity: "project-2", Limit: "rpm", Params: shared,
				Available: 999, Full: 60 * time.Millisecond},
			{Resource: "gpt-4", Entity: "project-2", Limit: "tpm", Params: all,
				Available: 144_000, Full: 3600 * time.Millisecond},
		}
		same := func(name string, got []runtime.Balance) {
			t.Helper()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		same("acquired", lease.Balances())
		same("remembered", lim.GPT4.Lookup(user))
		if err := lease.Settle(t.Context(), generated.GPT4Cost{TPM: 3_000}); err != nil {
			t.Fatal(err)
		}
		want[1].Available, want[1].Full = 12_000, 18*time.Second
		want[3].Available, want[3].Full = 147_000, 1800*time.Millisecond
		same("settled", lease.Balances())
		same("remembered", lim.GPT4.Lookup(user))
		if balances := lim.GPT4.Lookup(generated.User{ID: "#"}); balances != nil {
			t.Errorf("of an id that is none, %v", balances)
		}
		if (*generated.GPT4Lease)(nil).Balances() != nil || new(generated.GPT4Lease).Balances() != nil {
			t.Error("a lease of nothing has balances")
		}
	})
}

// TestBalanceOfClosedQuota: a region's quota of 0 is full at no time; more of it may be there in a window, as
// a denial says.
func TestBalanceOfClosedQuota(t *testing.T) {
	def := gpt4()
	def.spec.Regions = &store.Regions{Names: []string{"eu", "us"}, Floor: 1, Window: 10 * time.Second}
	limits := def.spec.Kinds[0].Limits
	quotas := []bucket.Limit{limits[0].Quota(30), limits[1].Quota(0)}
	store := &stub{after: &bucket.Image{Refilled: time.Now().UnixMilli(), Balances: bucket.Full(quotas),
		Missing: make([]bool, 2)}}
	b := runtime.NewBuilder(store, quiet())
	r := runtime.Bind[entity](b, def, toVector, fromVector)
	_, err := b.Limiter()
	check(t, err, "")
	want := []runtime.Balance{
		{Resource: "gpt-4", Entity: "user-1", Limit: "rpm", Params: quotas[0], Available: 30},
		{Resource: "gpt-4", Entity: "user-1", Limit: "tpm", Params: quotas[1], Full: 10 * time.Second},
	}
	if diff := cmp.Diff(want, acquire(t, r, user{"1"}, cost{}).Balances()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
