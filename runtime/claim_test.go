package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// A second resource, embeddings, for projects: 20 batches a second.

type embeddings = runtime.Resource[entity, batches]

type batches struct{ RPS int64 }

func openTwo(t *testing.T, store *fake, opts ...runtime.Option) (*runtime.Limiter, *resource, *embeddings) {
	t.Helper()
	def := tree(together, ofProject)
	def.spec.Resource, def.spec.Limits, def.spec.OnUnavailable = "embeddings", []string{"rps"}, runtime.Allow
	def.spec.Kinds[ofProject].Limits, def.spec.Kinds[ofProject].PerCall = []bucket.Limit{
		bucket.Per(20, time.Second),
	}, []int64{1}
	b := runtime.NewBuilder(store, append([]runtime.Option{quiet()}, opts...)...)
	gpt := runtime.Bind[entity](b, tree(together, ofUser, ofProject), toVector, fromVector)
	emb := runtime.Bind[entity](b, def, func(c batches, dst []int64) []int64 { return append(dst, c.RPS) },
		func(v []int64) batches { return batches{v[0]} })
	lim, err := b.Limiter()
	if err != nil {
		t.Fatal(err)
	}
	return lim, gpt, emb
}

func TestAcquireAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []report
		store := &fake{known: family()}
		lim, gpt, emb := openTwo(t, store, runtime.WithObserver(watch(&got)))
		user, project := typed("1", "", "3", ""), typed("1", "", "3", "")[ofProject:]
		a, b := gpt.Claim(lookedUp(ofUser, "1"), cost{TPM: 10}), gpt.Claim(user, cost{TPM: 500})
		c := emb.Claim(project, batches{})
		if a.Lease() != nil || c.Lease() != nil {
			t.Error("leases before AcquireAll")
		}
		check(t, lim.AcquireAll(t.Context(), a, b, c), "")
		want := []string{"member user-1", "member team-2",
			"acquire user-1,project-3,user-1,project-3,embeddings project-3"}
		if !slices.Equal(store.calls, want) {
			t.Errorf("calls\n\t%q\nwant\n\t%q", store.calls, want)
		}
		equal(t, "cost of a", a.Lease().Cost(), cost{TPM: 10})
		equal(t, "cost of b", b.Lease().Cost(), cost{TPM: 500})
		equal(t, "cost of c", c.Lease().Cost(), batches{1})
		equal(t, "remaining of a", a.Lease().Remaining(), cost{60, 5490})
		equal(t, "remaining of c", c.Lease().Remaining(), batches{19})

		// Each closes its own part.
		b.Lease().Release(t.Context())
		equal(t, "user without b", store.level("user-1").TPM, 5990)
		check(t, a.Lease().Settle(t.Context(), cost{TPM: 30}), "")
		check(t, c.Lease().Settle(t.Context(), batches{5}), "")
		equal(t, "user", store.level("user-1").TPM, 5970)
		equal(t, "project", store.level("project-3").TPM, 5970)
		equal(t, "embeddings", store.buckets["embeddings project-3"].Balances[0].Tokens, 15_000)

		of := func(which, resource, kind, entity string) report {
			return report{which, runtime.Event{Resource: resource, Kind: kind, Entity: entity}, ""}
		}
		events := []report{
			of("acquired", "gpt-4", "user", "user-1"), of("acquired", "gpt-4", "user", "user-1"),
			of("acquired", "embeddings", "project", "project-3"), of("released", "gpt-4", "user", "user-1"),
			of("settled", "gpt-4", "user", "user-1"), of("settled", "embeddings", "project", "project-3"),
		}
		if diff := cmp.Diff(events, got); diff != "" {
			t.Errorf("observer (-want +got):\n%s", diff)
		}
	})
}

// TestAcquireAllOrNone: the refusals of all claims come together, each claim's event has its own limit, and
// the claims can be used again.
func TestAcquireAllOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []report
		store := &fake{}
		lim, gpt, emb := openTwo(t, store, runtime.WithObserver(watch(&got)))
		acquire(t, gpt, typed("1", "", "3", ""), cost{TPM: 5500})
		got = nil
		a := gpt.Claim(typed("1", "", "4", ""), cost{TPM: 1000})
		b := gpt.Claim(typed("2", "", "4", ""), cost{TPM: 10})
		c := emb.Claim(typed("", "", "3", "")[ofProject:], batches{20})
		if _, err := emb.Acquire(t.Context(), typed("", "", "3", "")[ofProject:], batches{2}); err != nil {
			t.Fatal(err)
		}
		got = nil
		err := lim.AcquireAll(t.Context(), a, b, c)
		const text = "denied gpt-4 user-1 tpm 500/1000 5s"
		check(t, err, text)
		denied, _ := errors.AsType[*runtime.DeniedError](err)
		want := []runtime.Refusal{
			{Resource: "gpt-4", Entity: "user-1", Limit: "tpm", Requested: 1000, Available: 500,
				RetryAfter: 5 * time.Second},
			{Resource: "embeddings", Entity: "project-3", Limit: "rps", Requested: 20, Available: 18,
				RetryAfter: 100 * time.Millisecond},
		}
		if !slices.Equal(denied.Refusals, want) {
			t.Errorf("refusals %+v", denied.Refusals)
		}
		of := func(resource, kind, entity, limit string) report {
			return report{"denied", runtime.Event{Resource: resource, Kind: kind, Entity: entity, Limit: limit}, text}
		}
		events := []report{
			of("gpt-4", "user", "user-1", "tpm"), of("gpt-4", "user", "user-2", ""),
			of("embeddings", "project", "project-3", "rps"),
		}
		if diff := cmp.Diff(events, got); diff != "" {
			t.Errorf("observer (-want +got):\n%s", diff)
		}
		if a.Lease() != nil || b.Lease() != nil || c.Lease() != nil {
			t.Error("leases in spite of the denial")
		}
		equal(t, "user-2", store.level("user-2").TPM, 6000)
		elapse(denied.RetryAfter)
		check(t, lim.AcquireAll(t.Context(), a, b, c), "")
		equal(t, "user-1", store.level("user-1").TPM, 0)
	})
}

// TestPartsInOneBucketExceedIt: together they can never be served, though each could.
func TestPartsInOneBucketExceedIt(t *testing.T) {
	var got []report
	store := &fake{}
	lim, gpt, emb := openTwo(t, store, runtime.WithObserver(watch(&got)))
	one, two := typed("1", "", "3", ""), typed("2", "", "3", "")
	err := lim.AcquireAll(t.Context(), gpt.Claim(one, cost{TPM: 4000}), gpt.Claim(two, cost{TPM: 4000}),
		emb.Claim(one[ofProject:], batches{}))
	check(t, err, "exceeds burst gpt-4 project-3 tpm 8000/6000")
	limits := []string{got[0].Event.Limit, got[1].Event.Limit, got[2].Event.Limit}
	if want := []string{"tpm", "tpm", ""}; !slices.Equal(limits, want) {
		t.Errorf("limits of the events %q, want %q", limits, want)
	}
}

func TestBadClaims(t *testing.T) {
	lim, gpt, emb := openTwo(t, &fake{})
	other, _, _ := openTwo(t, &fake{})
	user := typed("1", "", "3", "")
	good, used := emb.Claim(user[ofProject:], batches{}), gpt.Claim(user, cost{TPM: 1})
	check(t, lim.AcquireAll(t.Context(), used), "")
	lease := used.Lease()
	var missing *runtime.Claim[cost]
	for _, test := range []struct {
		name   string
		lim    *runtime.Limiter
		claims []runtime.AnyClaim
		want   string
	}{
		{"none", lim, nil, "invalid claims are missing: AcquireAll takes at least one"},
		{"nil", lim, []runtime.AnyClaim{good, nil}, "invalid claim 2 is nil"},
		{"nil of a type", lim, []runtime.AnyClaim{missing, good}, "invalid claim 1 is nil"},
		{"not made by Claim", lim, []runtime.AnyClaim{&runtime.Claim[cost]{}},
			"invalid claim 1 is empty: make it with the resource's Claim"},
		{"twice", lim, []runtime.AnyClaim{good, gpt.Claim(user, cost{}), good},
			"invalid embeddings claim 3 is there twice: make one for each part"},
		{"used", lim, []runtime.AnyClaim{good, used},
			"invalid gpt-4 claim 2 has been admitted before: make a new one for each AcquireAll"},
		{"of another limiter", other, []runtime.AnyClaim{good},
			"invalid embeddings claim 1 is of another Limiter: acquire it there"},
		{"bad option", lim, []runtime.AnyClaim{good, gpt.With(runtime.OnUnavailable(0)).Claim(user, cost{TPM: 1})},
			`invalid gpt-4 option "OnUnavailable(0)" is out of range: want Allow, Deny or Local`},
		{"bad id", lim, []runtime.AnyClaim{good, gpt.Claim(typed("1", "", "", ""), cost{TPM: 1})},
			"invalid gpt-4 id project is empty, and calls of kind user need it: " +
				"give the whole chain, or an entity whose parents are looked up"},
		{"nil entity", lim, []runtime.AnyClaim{gpt.Claim(nil, cost{TPM: 1}), good}, "invalid gpt-4 entity is nil"},
		{"no cost", lim, []runtime.AnyClaim{good, gpt.Claim(user, cost{})},
			"invalid gpt-4 cost is empty: set at least one limit's cost"},
		{"the first of several", lim, []runtime.AnyClaim{gpt.Claim(user, cost{}), gpt.Claim(user, cost{TPM: -1})},
			"invalid gpt-4 cost is empty: set at least one limit's cost"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.lim.AcquireAll(t.Context(), test.claims...)
			checkReason(t, err, test.want)
			if _, ok := errors.AsType[*runtime.InvalidError](err); !ok {
				t.Errorf("error is a %T", err)
			}
			if good.Lease() != nil || used.Lease() != lease {
				t.Error("a lease has changed")
			}
		})
	}
	check(t, lim.AcquireAll(t.Context(), good), "") // in spite of all that
}

// TestBadClaimsAreObserved: one event for each claim, whichever is bad.
func TestBadClaimsAreObserved(t *testing.T) {
	var got []report
	lim, gpt, emb := openTwo(t, &fake{}, runtime.WithObserver(watch(&got)))
	user := typed("1", "", "3", "")
	err := lim.AcquireAll(t.Context(), emb.Claim(user[ofProject:], batches{}), gpt.Claim(user, cost{}))
	check(t, err, "invalid gpt-4 cost")
	var seen []string
	for _, event := range got {
		seen = append(seen, fmt.Sprintf("%s %s: %s", event.Which, event.Event.Entity, event.Err))
	}
	want := []string{"failed project-3: invalid gpt-4 cost", "failed user-1: invalid gpt-4 cost"}
	if !slices.Equal(seen, want) {
		t.Errorf("observer got %q, want %q", seen, want)
	}
}

func TestClaimsOfAnAbandonedCall(t *testing.T) {
	store := &fake{}
	lim, gpt, emb := openTwo(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	user := typed("1", "", "3", "")
	err := lim.AcquireAll(ctx, emb.Claim(user[ofProject:], batches{}), gpt.Claim(user, cost{TPM: 1}))
	check(t, err, "context canceled embeddings project-3")
	if !errors.Is(err, context.Canceled) {
		t.Error("not context.Canceled")
	}
	equal(t, "calls to the store", store.count(), 0)
}

func TestClaimsHaveTheShortestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left time.Duration
		backend := &fake{before: func(ctx context.Context, _ string, _ *store.Call) error {
			deadline, _ := ctx.Deadline()
			left = time.Until(deadline)
			return nil
		}}
		lim, gpt, emb := openTwo(t, backend)
		user := typed("1", "", "3", "")
		check(t, lim.AcquireAll(t.Context(), gpt.With(runtime.Budget(3*time.Second)).Claim(user, cost{TPM: 1}),
			emb.With(runtime.Budget(2*time.Second)).Claim(user[ofProject:], batches{})), "")
		equal(t, "budget", left, 2*time.Second)
		check(t, lim.AcquireAll(t.Context(), gpt.Claim(user, cost{TPM: 1})), "")
		equal(t, "budget", left, store.DefaultBudget)
	})
}

// TestClaimsMeetTheStrictestPolicy: embeddings is allow in the schema, gpt-4 has none, which is allow.
func TestClaimsMeetTheStrictestPolicy(t *testing.T) {
	const allow, deny, local = runtime.Allow, runtime.Deny, runtime.Local
	for _, test := range []struct {
		gpt, emb runtime.Policy // 0: the schema's
		want     runtime.Policy
	}{
		{0, 0, allow}, {allow, allow, allow}, {0, local, local}, {local, 0, local}, {deny, 0, deny},
		{0, deny, deny},
		{local, deny, deny}, {deny, local, deny}, {local, local, local},
	} {
		t.Run(fmt.Sprint(test.gpt, " and ", test.emb), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var degraded []string
				observer := &runtime.Observer{Degraded: func(_ context.Context, e runtime.Event) {
					degraded = append(degraded, fmt.Sprint(e.Entity, " ", e.Local, ": ", errtext.Of(e.Err)))
				}}
				const down = "unavailable gpt-4 1: reset"
				lim, gpt, emb := openTwo(t, &fake{before: func(context.Context, string, *store.Call) error {
					return &runtime.UnavailableError{Resource: "gpt-4", Attempts: 1, Err: errors.New("reset")}
				}}, runtime.WithObserver(observer))
				if test.gpt != 0 {
					gpt = gpt.With(runtime.OnUnavailable(test.gpt))
				}
				if test.emb != 0 {
					emb = emb.With(runtime.OnUnavailable(test.emb))
				}
				user := typed("1", "", "3", "")
				both := func() (*runtime.Lease[cost], *runtime.Lease[batches], error) {
					a, b := gpt.Claim(user, cost{TPM: 6000}), emb.Claim(user[ofProject:], batches{1})
					err := lim.AcquireAll(t.Context(), a, b)
					return a.Lease(), b.Lease(), err
				}
				a, b, err := both()
				if test.want == deny {
					check(t, err, down)
					return
				}
				check(t, err, "")
				equal(t, "degraded", a.Degraded() && b.Degraded(), true)
				if want := []string{"user-1 true: " + down, "project-3 true: " + down}; !slices.Equal(degraded, want) {
					t.Errorf("observer got %q, want %q", degraded, want)
				}
				_, _, err = both()
				if test.want == allow {
					check(t, err, "")
					return
				}
				check(t, err, "denied gpt-4 user-1 tpm 0/6000 1m0s")
				b.Release(t.Context()) // its own part alone
				_, _, err = both()
				check(t, err, "denied gpt-4 user-1 tpm 0/6000 1m0s")
				a.Release(t.Context())
				_, _, err = both()
				check(t, err, "")
			})
		})
	}
}
