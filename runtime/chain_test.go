package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Kinds of the chains below, nearest first.
const (
	ofUser = iota
	ofTeam
	ofProject
	ofOrg
)

// tree is gpt-4 for users of teams of projects of orgs, which all have its users' limits if they are charged.
func tree(cascade store.Cascade, charged ...int) definition {
	def := gpt4()
	limits := def.spec.Kinds[0].Limits
	def.spec.Cascade, def.spec.Kinds = cascade, nil
	for i, name := range []string{"user", "team", "project", "org"} {
		kind := store.Kind{Name: name, Prefix: name + "-", Parent: i + 1, PerCall: []int64{0, 0}}
		if i == ofOrg {
			kind.Parent = store.NoParent
		}
		if slices.Contains(charged, i) {
			kind.Limits = limits
		}
		def.spec.Kinds = append(def.spec.Kinds, kind)
	}
	return def
}

// links is an entity of any chain.
type links []store.Link

func (l links) Chain(dst []store.Link) []store.Link { return append(dst, l...) }
func (links) gpt4()                                 {}

// typed is the chain of a user that names all its ancestors.
func typed(user, team, project, org string) links {
	return links{{Kind: ofUser, ID: user}, {Kind: ofTeam, ID: team}, {Kind: ofProject, ID: project},
		{Kind: ofOrg, ID: org}}
}

// lookedUp is an entity whose ancestors are looked up.
func lookedUp(kind int, id string) links { return links{{Kind: kind, ID: id, Lookup: true}} }

// family is user-1 of team-2 of project-3 of org-4.
func family() map[string]store.Member {
	return map[string]store.Member{
		"user-1":    {Entity: "user-1", Parent: "team-2", Cascade: true},
		"team-2":    {Entity: "team-2", Parent: "project-3", Cascade: true},
		"project-3": {Entity: "project-3", Parent: "org-4", Cascade: true},
		"org-4":     {Entity: "org-4", Cascade: true},
	}
}

const (
	together    = store.CascadeAtomic
	compensated = store.CascadeCompensated
	none        = store.CascadeNone
)

func TestChains(t *testing.T) {
	const all = "user-1,team-2,project-3,org-4"
	for _, test := range []struct {
		name    string
		def     definition
		entity  links
		known   map[string]store.Member // family() if nil
		lookups string
		buckets string
	}{
		{"typed", tree(together, ofUser, ofTeam, ofProject, ofOrg), typed("1", "2", "3", "4"), nil, "", all},
		{"compensated is as long", tree(compensated, ofUser, ofTeam, ofProject, ofOrg), typed("1", "2", "3", "4"),
			nil, "", all},
		{"none", tree(none, ofUser, ofTeam, ofProject, ofOrg), typed("1", "2", "3", "4"), nil, "", "user-1"},
		{"ids of what is not charged may be empty", tree(together, ofUser, ofProject), typed("1", "", "3", ""), nil,
			"", "user-1,project-3"},
		{"ids of what is not charged may be anything", tree(together, ofUser, ofProject), typed("1", "#", "3", "#"),
			nil, "",
			"user-1,project-3"},
		{"none does not look at ancestors", tree(none, ofUser, ofProject), typed("1", "", "", ""), nil, "",
			"user-1"},
		{"the same id of two kinds", tree(together, ofUser, ofProject), typed("1", "", "1", ""), nil, "",
			"user-1,project-1"},
		{"from the middle", tree(together, ofUser, ofProject, ofOrg), typed("1", "2", "3", "4")[ofProject:], nil,
			"", "project-3,org-4"},

		{"looked up", tree(together, ofUser, ofTeam, ofProject, ofOrg), lookedUp(ofUser, "1"), nil,
			"user-1 team-2 project-3", all},
		{"past what is not charged", tree(together, ofUser, ofOrg), lookedUp(ofUser, "1"), nil,
			"user-1 team-2 project-3", "user-1,org-4"},
		{"to the last that is charged", tree(together, ofUser, ofTeam), lookedUp(ofUser, "1"), nil, "user-1",
			"user-1,team-2"},
		{"none looks nothing up", tree(none, ofUser, ofTeam), lookedUp(ofUser, "1"), nil, "", "user-1"},
		{"nothing above is charged", tree(together, ofUser), lookedUp(ofUser, "1"), nil, "", "user-1"},
		{"of the last kind", tree(together, ofUser, ofOrg), lookedUp(ofOrg, "4"), nil, "", "org-4"},
		{"typed to the project", tree(together, ofUser, ofProject, ofOrg),
			append(typed("1", "2", "", "")[:2], lookedUp(ofProject, "3")...), nil, "project-3",
			"user-1,project-3,org-4"},
		{"typed to a team that is not charged", tree(together, ofUser, ofOrg), append(typed("1", "", "", "")[:1],
			lookedUp(ofTeam, "2")...), nil,
			"team-2 project-3", "user-1,org-4"},
		{"a team of no use", tree(together, ofUser), append(typed("1", "", "", "")[:1], lookedUp(ofTeam, "")...),
			nil, "", "user-1"},
		{"no cascade", tree(together, ofUser, ofTeam), lookedUp(ofUser, "1"),
			map[string]store.Member{"user-1": {Entity: "user-1", Parent: "team-2"}}, "user-1", "user-1"},
		{"no cascade and no parent", tree(together, ofUser, ofTeam), lookedUp(ofUser, "1"),
			map[string]store.Member{"user-1": {Entity: "user-1"}}, "user-1", "user-1"},
		{"no cascade from the team", tree(together, ofUser, ofTeam, ofOrg), lookedUp(ofUser, "1"),
			map[string]store.Member{"user-1": family()["user-1"], "team-2": {Entity: "team-2", Parent: "project-3"}},
			"user-1 team-2", "user-1,team-2"},
		{"what is typed cascades", tree(together, ofUser, ofTeam), typed("1", "2", "", ""),
			map[string]store.Member{"user-1": {Entity: "user-1", Parent: "team-9"}}, "", "user-1,team-2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &fake{known: test.known}
				if store.known == nil {
					store.known = family()
				}
				_, r := openAs(t, store, test.def)
				lease := acquire(t, r, test.entity, cost{TPM: 10})
				lease.Release(t.Context())
				_, err := r.Peek(t.Context(), test.entity)
				check(t, err, "")
				_, err = r.Wait(t.Context(), test.entity, cost{TPM: 10})
				check(t, err, "")
				var lookups []string
				if test.lookups != "" {
					for of := range strings.FieldsSeq(test.lookups) {
						lookups = append(lookups, "member "+of)
					}
				}
				want := slices.Concat(lookups, []string{"acquire " + test.buckets, "settle " + test.buckets},
					lookups, []string{"peek " + test.buckets}, lookups, []string{"acquire " + test.buckets})
				if !slices.Equal(store.calls, want) {
					t.Errorf("calls\n\t%q\nwant\n\t%q", store.calls, want)
				}
			})
		})
	}
}

func TestChainErrors(t *testing.T) {
	member := func(entity, parent string) map[string]store.Member {
		return map[string]store.Member{entity: {Entity: entity, Parent: parent, Cascade: true}}
	}
	const setup = "setup: entity user-7 is stored with parent %q, which is no id of kind team | " +
		"store it again: sluice entity put user-7 --parent team-<id>"
	for _, test := range []struct {
		name   string
		def    definition
		entity links
		known  map[string]store.Member
		want   string
	}{
		{"empty id", tree(together, ofUser, ofProject), typed("", "2", "3", "4"), nil,
			"invalid gpt-4 id user"},
		{"empty id of what is charged", tree(together, ofUser, ofProject), typed("1", "2", "", "4"), nil,
			"invalid gpt-4 id project is empty, and calls of kind user need it: " +
				"give the whole chain, or an entity whose parents are looked up"},
		{"bad id of what is charged", tree(compensated, ofUser, ofOrg), typed("1", "2", "3", "a#b"), nil,
			`invalid gpt-4 id org "a#b"`},
		{"empty id to look up", tree(together, ofUser, ofOrg), append(typed("1", "", "", "")[:1],
			lookedUp(ofTeam, "")...), nil,
			"invalid gpt-4 id team is empty, and calls of kind user need it: " +
				"give the whole chain, or an entity whose parents are looked up"},
		{"unknown", tree(together, ofUser, ofProject), lookedUp(ofUser, "7"), nil,
			`invalid gpt-4 entity "user-7" is not known, and so its parent is not: ` +
				`store it (sluice entity put user-7 --parent team-<id>), or give its parent in the call`},
		{"unknown parent", tree(together, ofUser, ofProject), lookedUp(ofUser, "7"), member("user-7", "team-2"),
			`invalid gpt-4 entity "team-2" is not known, and so its parent is not: ` +
				`store it (sluice entity put team-2 --parent project-<id>), or give its parent in the call`},
		{"no parent", tree(together, ofUser, ofProject), lookedUp(ofUser, "7"), member("user-7", ""),
			`invalid gpt-4 entity "user-7" is stored without a parent, which its calls need: ` +
				`store it (sluice entity put user-7 --parent team-<id>), or give its parent in the call`},
		{"parent of another kind", tree(together, ofUser, ofTeam), lookedUp(ofUser, "7"),
			member("user-7", "project-3"),
			fmt.Sprintf(setup, "project-3")},
		{"its own parent", tree(together, ofUser, ofTeam), lookedUp(ofUser, "7"), member("user-7", "user-7"),
			fmt.Sprintf(setup, "user-7")},
		{"parent without id", tree(together, ofUser, ofTeam), lookedUp(ofUser, "7"), member("user-7", "team-"),
			fmt.Sprintf(setup, "team-")},
		{"parent with #", tree(together, ofUser, ofTeam), lookedUp(ofUser, "7"), member("user-7", "team-#"),
			fmt.Sprintf(setup, "team-#")},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []report
			store := &fake{known: test.known}
			_, r := openAs(t, store, test.def, runtime.WithObserver(watch(&got)))
			_, err := r.Acquire(t.Context(), test.entity, cost{TPM: 1})
			checkReason(t, err, test.want)
			_, invalid := errors.AsType[*runtime.InvalidError](err)
			_, broken := errors.AsType[*runtime.SetupError](err)
			if invalid == broken || broken != strings.Contains(test.want, "is stored with parent") {
				t.Errorf("error is a %T", err)
			}
			_, err = r.Peek(t.Context(), test.entity)
			checkReason(t, err, test.want)
			_, err = r.Wait(t.Context(), test.entity, cost{TPM: 1})
			checkReason(t, err, test.want)
			for _, call := range store.calls {
				if !strings.HasPrefix(call, "member ") {
					t.Errorf("%s, in spite of the error", call)
				}
			}
			if len(got) != 2 || got[0].Which != "failed" || got[0].Event.Entity != "user-"+test.entity[0].ID ||
				got[0].Event.Kind != "user" {
				t.Errorf("observer got %+v", got)
			}
		})
	}
}

// TestChainsEnd: kinds that go round, as no schema has them, end a call with an error or not, but end it.
func TestChainsEnd(t *testing.T) {
	def := tree(together, ofUser, ofTeam)
	def.spec.Kinds[ofTeam].Parent = ofUser
	backend := &fake{known: family()}
	backend.known["team-2"] = store.Member{Entity: "team-2", Parent: "user-1", Cascade: true}
	_, r := openAs(t, backend, def)
	_, _ = r.Acquire(t.Context(), lookedUp(ofUser, "1"), cost{TPM: 1})
	if n := backend.count(); n > 10 {
		t.Errorf("%d calls", n)
	}
	def = tree(together, ofUser)
	def.spec.Kinds[ofTeam].Parent = ofUser
	_, r = openAs(t, backend, def)
	acquire(t, r, lookedUp(ofTeam, "2"), cost{TPM: 1})
}

// TestChainsProperty: however much of a chain is typed, and however much looked up, the buckets are the same.
func TestChainsProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		kinds := []int{ofUser}
		for kind := ofTeam; kind <= ofOrg; kind++ {
			if rapid.Bool().Draw(rt, "charged") {
				kinds = append(kinds, kind)
			}
		}
		def := tree(rapid.SampledFrom([]store.Cascade{together, compensated, none}).Draw(rt, "cascade"), kinds...)
		chain := typed("1", "2", "3", "4")
		store := &fake{known: family()}
		_, r := openAs(t, store, def)
		acquire(t, r, chain, cost{TPM: 1})
		want := store.calls[0]
		last := rapid.IntRange(ofUser, ofOrg).Draw(rt, "looked up from")
		chain = chain[:last+1]
		chain[last].Lookup = true
		acquire(t, r, chain, cost{TPM: 1})
		if got := store.calls[len(store.calls)-1]; got != want {
			rt.Fatalf("looked up: %s, typed: %s", got, want)
		}
	})
}

func TestLookupWithinTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{known: family()}
		backend.look = func(ctx context.Context, _ string) error {
			elapse(300 * time.Millisecond)
			return ctx.Err()
		}
		backend.before = func(ctx context.Context, _ string, _ *store.Call) error {
			deadline, _ := ctx.Deadline()
			equal(t, "left for the charge", time.Until(deadline), 400*time.Millisecond)
			return nil
		}
		_, r := openAs(t, backend, tree(together, ofUser, ofProject),
			runtime.WithCallDefaults(runtime.Budget(time.Second)))
		acquire(t, r, lookedUp(ofUser, "1"), cost{TPM: 1})
	})
}

func TestLookupOfAnAbandonedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{look: func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return &runtime.UnavailableError{Attempts: 1, Err: ctx.Err()}
		}}
		_, r := openAs(t, store, tree(together, ofUser, ofProject))
		_, err := r.Acquire(within(t, 10*time.Millisecond), lookedUp(ofUser, "1"), cost{TPM: 1})
		check(t, err, "context deadline exceeded gpt-4 user-1")
		_, err = r.Wait(within(t, 10*time.Millisecond), lookedUp(ofUser, "1"), cost{TPM: 1},
			runtime.MaxWait(10*time.Millisecond))
		check(t, err, "context deadline exceeded gpt-4 user-1")
		_, err = r.Wait(t.Context(), lookedUp(ofUser, "1"), cost{TPM: 1},
			runtime.MaxWait(10*time.Millisecond), runtime.OnUnavailable(runtime.Deny))
		check(t, err, "unavailable gpt-4 1: looking up the parent of user-1: context deadline exceeded")
	})
}

// TestLookupMeetsTheFailurePolicy: it is as good as a charge that did not get through.
func TestLookupMeetsTheFailurePolicy(t *testing.T) {
	down := &runtime.UnavailableError{Attempts: 2, Err: errors.New("reset")}
	const text = "unavailable gpt-4 2: looking up the parent of team-2: reset"
	for name, call := range map[string]func(context.Context, *resource,
		...runtime.CallOption) (*runtime.Lease[cost], error){
		"acquire": func(ctx context.Context, r *resource,
			opts ...runtime.CallOption) (*runtime.Lease[cost], error) {
			return r.Acquire(ctx, lookedUp(ofUser, "1"), cost{TPM: 6000}, opts...)
		},
		"wait": func(ctx context.Context, r *resource, opts ...runtime.CallOption) (*runtime.Lease[cost], error) {
			return r.Wait(ctx, lookedUp(ofUser, "1"), cost{TPM: 6000}, opts...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &fake{known: family(), look: func(_ context.Context, entity string) error {
					if entity == "team-2" {
						return down
					}
					return nil
				}}
				lim, r := openAs(t, store, tree(together, ofUser, ofProject), quiet())
				_, err := call(t.Context(), r, runtime.OnUnavailable(runtime.Deny))
				check(t, err, text)
				if _, ok := errors.AsType[*runtime.UnavailableError](err); !ok {
					t.Errorf("error is a %T", err)
				}
				equal(t, "the store's own error", *down, runtime.UnavailableError{Attempts: 2, Err: down.Err})
				lease, err := call(t.Context(), r, runtime.OnUnavailable(runtime.Allow))
				check(t, err, "")
				equal(t, "degraded", lease.Degraded(), true)
				lease.Release(t.Context())
				lease, err = call(t.Context(), r, runtime.OnUnavailable(runtime.Local))
				check(t, err, "")
				equal(t, "degraded", lease.Degraded(), true)
				_, err = r.Acquire(t.Context(), lookedUp(ofUser, "1"), cost{TPM: 6000},
					runtime.OnUnavailable(runtime.Local))
				check(t, err, "denied gpt-4 user-1 tpm 0/6000 1m0s")
				equal(t, "lines left", runtime.Waiting(lim), 0)
				equal(t, "look-ups, two for each call", store.count(), 8)
				for _, call := range store.calls {
					if !strings.HasPrefix(call, "member ") {
						t.Errorf("%s, though the chain was not known", call)
					}
				}
			})
		})
	}
}

// TestWaitOutAnOutageOfLookups: a local bucket that denies has the waiter stand in line; the look-ups are
// tried again.
func TestWaitOutAnOutageOfLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		store := &fake{known: family(), look: func(context.Context, string) error {
			if !up.Load() {
				return &runtime.UnavailableError{Attempts: 1, Err: errors.New("reset")}
			}
			return nil
		}}
		lim, r := openAs(t, store, tree(together, ofUser, ofTeam), quiet(),
			runtime.WithCallDefaults(runtime.OnUnavailable(runtime.Local)))
		acquire(t, r, lookedUp(ofUser, "1"), cost{TPM: 6000})
		done := make(chan error)
		go func() {
			_, err := r.Wait(t.Context(), lookedUp(ofUser, "1"), cost{TPM: 100})
			done <- err
		}()
		synctest.Wait()
		up.Store(true)
		check(t, <-done, "")
		equal(t, "charged at last", store.calls[len(store.calls)-1], "acquire user-1,team-2")
		equal(t, "lines left", runtime.Waiting(lim), 0)
	})
}

// TestWaitFindsAnAncestor: after an outage of look-ups, a waiter's next attempt finds its team, which denies
// it for longer than the user's bucket. The waiter keeps its place.
func TestWaitFindsAnAncestor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		store := &fake{known: family(), look: func(context.Context, string) error {
			if !up.Load() {
				return &runtime.UnavailableError{Attempts: 1, Err: errors.New("reset")}
			}
			return nil
		}}
		lim, r := openAs(t, store, tree(together, ofUser, ofTeam), quiet(),
			runtime.WithCallDefaults(runtime.OnUnavailable(runtime.Local)))
		w := &waits{t: t, lim: lim, r: r, start: time.Now(), ended: make(chan outcome, 100)}
		store.putOf("team-2", 0, 60, -500)
		acquire(t, r, lookedUp(ofUser, "1"), cost{TPM: 6000})
		w.joinAs(t.Context(), "a", lookedUp(ofUser, "1"), cost{TPM: 1000})
		w.joinAs(t.Context(), "b", lookedUp(ofUser, "1"), cost{TPM: 100})
		equal(t, "buckets that are waited for", runtime.Waiting(lim), 1)
		up.Store(true)
		elapse(1100 * time.Millisecond) // after a's read of the user's bucket
		equal(t, "buckets that are waited for", runtime.Waiting(lim), 2)
		w.next("a", 15*time.Second, "")
		w.next("b", 16*time.Second, "")
	})
}

// TestDeniedByAnAncestor: all or none; the longest refusal of the chain stands for all.
func TestDeniedByAnAncestor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []report
		store := &fake{}
		_, r := openAs(t, store, tree(together, ofUser, ofProject), runtime.WithObserver(watch(&got)))
		acquire(t, r, typed("1", "", "3", ""), cost{RPM: 50, TPM: 5000})
		acquire(t, r, typed("2", "", "3", ""), cost{TPM: 900})
		got = nil
		_, err := r.Acquire(t.Context(), typed("1", "", "3", ""), cost{RPM: 11, TPM: 1500})
		check(t, err, "denied gpt-4 project-3 tpm 100/1500 14s")
		denied, _ := errors.AsType[*runtime.DeniedError](err)
		equal(t, "refusals", len(denied.Refusals), 4)
		if len(got) != 1 || got[0].Event.Entity != "user-1" || got[0].Event.Kind != "user" ||
			got[0].Event.Limit != "tpm" {
			t.Errorf("observer got %+v", got)
		}
		_, err = r.Acquire(t.Context(), typed("1", "", "3", ""), cost{RPM: 61, TPM: 1})
		if _, ok := errors.AsType[*runtime.CostTooLargeError](err); !ok || got[1].Event.Limit != "rpm" {
			t.Errorf("error %v, and the observer got %+v", err, got)
		}
		equal(t, "user", store.level("user-1").TPM, 1000)
		equal(t, "project", store.level("project-3").TPM, 100)
	})
}

// TestSettleTheChain: all buckets of the chain give back and are charged; Remaining is the least of them.
func TestSettleTheChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{known: family()}
		_, r := openAs(t, store, tree(together, ofUser, ofProject))
		acquire(t, r, typed("2", "", "3", ""), cost{TPM: 1000})
		lease := acquire(t, r, lookedUp(ofUser, "1"), cost{TPM: 100})
		equal(t, "remaining", lease.Remaining(), cost{60, 4900})
		check(t, lease.Settle(t.Context(), cost{TPM: 300}), "")
		equal(t, "remaining", lease.Remaining(), cost{60, 4700})
		equal(t, "user", store.level("user-1").TPM, 5700)
		equal(t, "project", store.level("project-3").TPM, 4700)
		lease = acquire(t, r, lookedUp(ofUser, "1"), cost{TPM: 100})
		lease.Release(t.Context())
		equal(t, "user", store.level("user-1").TPM, 5700)
		equal(t, "project", store.level("project-3").TPM, 4700)
	})
}

// TestPeekAChain: nearest first, by the parameters in force where nothing is stored.
func TestPeekAChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{limits: map[string][]bucket.Limit{
			"user-1":    {bucket.Per(1, time.Minute), bucket.Per(1, time.Minute)}, // it has a bucket, not yet reshaped
			"project-3": {bucket.Per(7, time.Minute), bucket.Per(70, time.Minute).WithBurst(80)},
		}}
		_, r := openAs(t, store, tree(together, ofUser, ofProject, ofOrg))
		store.put(0, 50, 6000)
		snap, err := r.Peek(t.Context(), typed("1", "", "3", "4"))
		check(t, err, "")
		equal(t, "available", snap.Available, cost{7, 80})
		want := []runtime.BucketSnapshot[cost]{
			{Entity: "user-1", Available: cost{50, 6000}, Capacity: cost{60, 6000}, Burst: cost{60, 6000},
				Full: 10 * time.Second, Exists: true},
			{Entity: "project-3", Available: cost{7, 80}, Capacity: cost{7, 70}, Burst: cost{7, 80}},
			{Entity: "org-4", Available: cost{60, 6000}, Capacity: cost{60, 6000}, Burst: cost{60, 6000}},
		}
		if !slices.Equal(snap.Buckets, want) {
			t.Errorf("buckets\n\t%+v\nwant\n\t%+v", snap.Buckets, want)
		}
	})
}

// TestTypedChainsAllocate as much as one bucket does, beside the ids as stored and, of more than two, their
// list.
func TestTypedChainsAllocate(t *testing.T) {
	longform.NoRace(t, "a pool gives back other memory there")
	allocs := func(def definition) float64 {
		_, r := openAs(t, &fake{}, def)
		bad := cost{TPM: -1} // the last that is looked at before the store is
		return testing.AllocsPerRun(100, func() { _, _ = r.Acquire(t.Context(), typed("1", "2", "3", "4"), bad) })
	}
	one := allocs(tree(none, ofUser))
	equal(t, "allocations for two buckets", allocs(tree(together, ofUser, ofOrg))-one, 1)
	equal(t, "allocations for four buckets", allocs(tree(together, ofUser, ofTeam, ofProject, ofOrg))-one, 4)
}

// quiet keeps warnings from the test's output.
func quiet() runtime.Option { return runtime.WithLogger(slog.New(slog.DiscardHandler)) }

// TestPrefixTwice: an id that begins with its kind's prefix is refused, wherever it is in the chain.
func TestPrefixTwice(t *testing.T) {
	lim, r := openAs(t, &fake{members: &members{known: map[string]store.Member{}}},
		tree(together, ofUser, ofProject))
	const twice = "invalid %s %q begins with %s-, and is stored behind another one: leave it out"
	_, err := r.Acquire(t.Context(), typed("user-1", "2", "3", "4"), cost{TPM: 1})
	checkReason(t, err, fmt.Sprintf(twice, "gpt-4 id user", "user-1", "user"))
	_, err = r.Acquire(t.Context(), typed("1", "2", "project-3", "4"), cost{TPM: 1})
	checkReason(t, err, fmt.Sprintf(twice, "gpt-4 id project", "project-3", "project"))
	err = lim.Entities().Put(t.Context(), typed("1", "team-2", "3", "4"))
	checkReason(t, err, fmt.Sprintf(twice, "id team", "team-2", "team"))
	_, err = r.Acquire(t.Context(), typed("user1", "2", "project3", "4"), cost{TPM: 1})
	check(t, err, "")
}

// TestSwappedIDs: an id with the prefix of another kind is admitted, and logged once, wherever it is in the
// chain and whichever call is first.
func TestSwappedIDs(t *testing.T) {
	swapped, ctx := typed("1", "2", "user-3", "4"), t.Context()
	type config = runtime.Config[entity, cost, numbers]
	for name, call := range map[string]func(*runtime.Limiter, *resource, *config) error{
		"Acquire": func(_ *runtime.Limiter, r *resource, _ *config) error {
			_, err := r.Acquire(ctx, swapped, cost{TPM: 1})
			return err
		},
		"Put": func(lim *runtime.Limiter, _ *resource, _ *config) error {
			return lim.Entities().Put(ctx, swapped)
		},
		"Config.Entity": func(_ *runtime.Limiter, _ *resource, c *config) error {
			_, _, err := c.Entity(swapped).Get(ctx)
			return err
		},
		"Reset": func(_ *runtime.Limiter, _ *resource, c *config) error {
			return c.Reset(ctx, swapped)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			def := tree(together, ofUser, ofProject)
			backend := &fake{overrides: &overrides{}, members: &members{known: map[string]store.Member{}}}
			b := runtime.NewBuilder(backend,
				runtime.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			r := runtime.Bind[entity](b, def, toVector, fromVector)
			config := runtime.BindConfig[entity](b, def, toVector, toLimits, fromLimits)
			lim, err := b.Limiter()
			check(t, err, "")
			for range 3 {
				check(t, call(lim, r, config), "")
			}
			if n := strings.Count(log.String(), "kind=project id=user-3 other=user"); n != 1 {
				t.Errorf("logged %d times, want once:\n%s", n, &log)
			}
		})
	}
}
