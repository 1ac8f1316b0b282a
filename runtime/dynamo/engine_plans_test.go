package dynamo

import (
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestPlanSteadyState: a key of an org that is on a plan costs one unit a call, and no read.
func TestPlanSteadyState(t *testing.T) {
	e, memory := newFaulty(t)
	e.ttl = time.Hour
	o := e.office(t, e.client, planned(t, "free", "pro"))
	o.puts(t, "1", "pro")
	o.changes(t, "pro.key", perMinute(300, 0))
	o.takes(t, k1, 1)
	e.has(t, k1, "org-1", perMinute(300, 5000))
	memory.ResetConsumed()
	for i := range 100 {
		e.clock.set(int64(i) * 10)
		o.takes(t, k1, 1)
	}
	if used := memory.Consumed().Table(e.table).Total(); used.Write != 100 || used.Read != 0 {
		t.Errorf("100 calls took %v write and %v read units, want 100 and 0", used.Write, used.Read)
	}
}

// TestPlanInForce: a process goes by the plans that it sets at once, of an org and their numbers, and others
// do once what they remember is due. Nobody is denied by an image from before.
func TestPlanInForce(t *testing.T) {
	for name, k := range map[string]key{"given": k1, "looked up": {id: "1"}} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			e.ttl = time.Minute
			def := planned(t, "free", "pro")
			o, other := e.office(t, e.client, def), e.office(t, e.client, def)
			o.follows(t, "key-1", "team-1")
			o.follows(t, "team-1", "org-1")
			o.puts(t, "1", "free")
			o.takes(t, k, 10)
			for _, o := range []*office{o, other} {
				for range 2 { // the second time by what was seen
					if _, err := o.Acquire(t.Context(), k, tokens{1, 0}); !isA[*store.DeniedError](err) {
						t.Fatalf("%v, want a denial", err)
					}
				}
			}
			e.has(t, k, "org-1", perMinute(10, 1000))

			o.puts(t, "1", "pro")
			_, err := o.Acquire(t.Context(), k, tokens{1, 0}) // a bucket that is raised refills at the new rate
			if !isA[*store.DeniedError](err) {
				t.Fatalf("%v, want a denial", err)
			}
			e.has(t, k, "org-1", perMinute(200, 5000))
			e.clock.set(1001)
			o.takes(t, k, 2) // of 200 a minute
			if other.takes(t, k, 1); other.Count("reshape applied") != 0 {
				t.Error("another process has reshaped")
			}
			e.clock.set(3000)
			o.changes(t, "pro.key", perMinute(60, 0))
			o.takes(t, k, 1)
			e.has(t, k, "org-1", perMinute(60, 5000))

			o.changes(t, "pro.key", perMinute(0, 0))
			e.clock.set(62_000) // due in the other process
			other.takes(t, k, 1)
			e.has(t, k, "org-1", perMinute(200, 5000))
			if n := o.Count("reshape applied") + other.Count("reshape applied"); n != 3 {
				t.Errorf("%d reshapes, want 3", n)
			}
		})
	}
}

// TestKeyMoves: a key that goes to another org gets the numbers of that org's plan, although its versions are
// lower. A process that remembers the old org finds out before it writes, and does not undo it.
func TestKeyMoves(t *testing.T) {
	e := newEngine(t)
	e.ttl = time.Minute
	def := planned(t, "free", "pro")
	o, stale := e.office(t, e.client, def), e.office(t, e.client, def)
	k := key{id: "1"}
	o.puts(t, "2", "free")
	e.clock.set(10_000)
	o.puts(t, "1", "pro")
	o.follows(t, "key-1", "team-1")
	o.follows(t, "team-1", "org-1")
	for _, o := range []*office{o, stale} {
		o.takes(t, k, 1)
	}
	before := e.has(t, k, "org-1", perMinute(200, 5000))

	o.follows(t, "team-1", "org-2")
	o.takes(t, k, 1)
	after := e.has(t, k, "org-2", perMinute(10, 1000))
	if after.Version >= before.Version {
		t.Errorf("the version is %d after %d: the test shows nothing", after.Version, before.Version)
	}
	for range 3 {
		stale.takes(t, k, 1)
		e.has(t, k, "org-2", perMinute(10, 1000))
	}
	if n := stale.Count("reshape applied") + stale.Count("reshape refused"); n != 0 {
		t.Errorf("the process that remembered the old org has sent %d reshapes", n)
	}
	// It reads the links once, and remembers what it has read.
	reads := stale.Count("member found")
	stale.takes(t, k, 1)
	if got := stale.Count("member found"); got != reads {
		t.Errorf("another call has read %d members", got-reads)
	}
}

// TestGivenTeam: a caller that gives a key's team goes by the org of that team, whatever is stored of the
// key.
func TestGivenTeam(t *testing.T) {
	e := newEngine(t)
	e.ttl = time.Minute
	o := e.office(t, e.client, planned(t, "free", "pro"))
	o.puts(t, "1", "pro")
	o.puts(t, "2", "free")
	o.follows(t, "key-1", "team-1")
	o.follows(t, "team-1", "org-1")
	o.follows(t, "team-2", "org-2")
	o.takes(t, key{id: "1"}, 1)
	e.has(t, k1, "org-1", perMinute(200, 5000))
	o.takes(t, key{id: "1", team: "2"}, 1)
	e.has(t, k1, "org-2", perMinute(10, 1000))
}

// TestSameVersion: two orgs may have plans of one version. A reshape from one to the other is not applied to
// a bucket that another process has given a third org's plan.
func TestSameVersion(t *testing.T) {
	e := newEngine(t)
	def := planned(t, "free", "pro")
	o := e.office(t, e.client, def)
	for org, plan := range map[string]string{"1": "free", "2": "pro", "3": ""} {
		o.puts(t, org, "free")
		o.puts(t, org, plan)
	}
	in := func(org string) key { return key{"1", "1", org} }
	slow := e.office(t, e.client, def)
	slow.takes(t, in("3"), 1)
	before := e.has(t, k1, "org-3", perMinute(100, 1000))
	o.takes(t, in("2"), 1) // the slow process has not seen this
	between := e.has(t, k1, "org-2", perMinute(200, 5000))
	if between.Version != before.Version || between.Refilled != before.Refilled {
		t.Errorf("the buckets differ by more than their plan: %+v, %+v", before, between)
	}
	slow.takes(t, in("1"), 1)
	e.has(t, k1, "org-1", perMinute(10, 1000))
	if n := slow.Count("reshape refused"); n != 1 {
		t.Errorf("%d reshapes were refused, want 1", n)
	}
}

// TestUnknownPlan: a process that does not know an org's plan leaves its buckets as they are, and gives new
// ones the most that any plan gives. One that knows it changes them with its next call.
func TestUnknownPlan(t *testing.T) {
	e := newEngine(t)
	e.ttl = time.Minute
	var logged strings.Builder
	older, newer := planned(t, "free", "pro"), planned(t, "free", "pro", "gold")
	knows := e.office(t, e.client, newer)
	old := e.office(t, e.client, older, runtime.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
	knows.puts(t, "1", "gold")
	knows.takes(t, k1, 1)
	e.has(t, k1, "org-1", perMinute(400, 9000))
	for range 3 {
		old.takes(t, k1, 1)
		e.clock.set(e.clock.Since.Load() + 61_000)
	}
	e.has(t, k1, "org-1", perMinute(400, 9000))
	if n := old.Count("reshape applied"); n != 0 {
		t.Errorf("the older process has reshaped %d times", n)
	}
	k2 := key{"2", "1", "1"}
	old.takes(t, k2, 1)
	img := e.has(t, k2, "org-1", perMinute(200, 5000))
	if img.Version != bucket.RevisionUnit {
		t.Errorf("version %d, want that of the revision", img.Version)
	}
	old.takes(t, k2, 1)
	knows.takes(t, k2, 1)
	e.has(t, k2, "org-1", perMinute(400, 9000))
	old.takes(t, k2, 1)
	e.has(t, k2, "org-1", perMinute(400, 9000))
	if n := strings.Count(logged.String(), "a plan that this limits.yaml does not have"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, logged.String())
	}
}

// TestErasedOrg: an org that is erased leaves its keys the numbers of no plan.
func TestErasedOrg(t *testing.T) {
	e := newEngine(t)
	e.ttl = time.Minute
	def := planned(t, "free", "pro")
	o, stale := e.office(t, e.client, def), e.office(t, e.client, def)
	o.puts(t, "1", "pro")
	o.takes(t, k1, 1)
	stale.takes(t, k1, 1)
	if _, err := o.session.Members().Erase(t.Context(), "org-1", store.Erasing{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		o.takes(t, k1, 1)
		e.has(t, k1, "", perMinute(100, 1000))
		stale.takes(t, k1, 1)
	}
	if n := o.Count("reshape applied") + stale.Count("reshape applied"); n != 1 {
		t.Errorf("%d reshapes, want 1", n)
	}
	o.puts(t, "1", "free")
	o.takes(t, k1, 1)
	e.has(t, k1, "org-1", perMinute(10, 1000))
}

// TestPlanItem: the numbers of all plans are one item with one version, which a process reads once.
func TestPlanItem(t *testing.T) {
	e := newEngine(t)
	o := e.office(t, e.client, planned(t, "free", "pro"))
	overrides := o.session.Overrides()
	rev := func(ms int64) store.Revision { return override.FormatRevision(t0 + ms) }
	set := func(at string, rev store.Revision, limits []bucket.Limit) error {
		s := store.FullOverride(at, limits)
		s.Revision = rev
		_, err := overrides.Set(t.Context(), o.spec, s)
		return err
	}
	holds := func(want map[string]string) {
		t.Helper()
		got := plain(e.get(t, item.PlansKey("gpt-4")))
		delete(got, "op")
		want["PK"], want["SK"] = "S PLANS#", "S #CONFIG#gpt-4"
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the item is\n%v\nwant\n%v", got, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(set("pro.key", "", perMinute(7, 0)))
	pro := map[string]string{
		"l_pro.key.rpm_cp": "N 7000", "l_pro.key.rpm_bx": "N 7000", "l_pro.key.rpm_ra": "N 7000",
		"l_pro.key.rpm_rp": "N 60000", "GSI2PK": "S CONFIG#gpt-4", "GSI2SK": "S #PLANS",
	}
	with := func(ver int64, more ...string) map[string]string {
		all := map[string]string{"ver": fmt.Sprint("N ", t0+ver)}
		maps.Copy(all, pro)
		for _, prefix := range more {
			for field, n := range map[string]string{"cp": "5000", "bx": "5000", "ra": "5000", "rp": "60000"} {
				all["l_"+prefix+"_"+field] = "N " + n
			}
		}
		return all
	}
	holds(with(0))
	must(set("free.key", "", perMinute(5, 5))) // nothing is there yet
	holds(with(1, "free.key.rpm", "free.key.tpm"))
	if err := set("pro.key", rev(0), nil); !isA[*store.ConflictError](err) {
		t.Errorf("an editor that has not seen the other plan: %v, want a conflict", err)
	}
	if err := set("pro.key", "", perMinute(1, 1)); !isA[*store.ConflictError](err) {
		t.Errorf("an editor that expects nothing: %v, want a conflict", err)
	}
	got, err := overrides.Get(t.Context(), o.spec, "free.key", "pro.key", "key", "key-1")
	must(err)
	for i, want := range []store.Revision{rev(1), rev(1), "", ""} {
		if got[i].Revision != want {
			t.Errorf("%s has revision %s, want %s", got[i].At, got[i].Revision, want)
		}
	}
	var listed []string
	for s, err := range overrides.List(t.Context(), o.spec) {
		must(err)
		listed = append(listed, s.At)
	}
	if fmt.Sprint(listed) != "[free.key pro.key]" {
		t.Errorf("listed are %v", listed)
	}
	must(set("free.key", rev(1), perMinute(0, 5)))
	holds(with(2, "free.key.tpm"))
	must(set("free.key", rev(2), perMinute(0, 0)))
	holds(with(3))
	must(set("pro.key", rev(3), perMinute(0, 0)))
	holds(map[string]string{"ver": fmt.Sprint("N ", t0+4)})
	must(set("pro.key", rev(4), perMinute(7, 0)))
	holds(with(5))
}

// TestPlansInOneRead: keys of one resource share what a process has read of the plans.
func TestPlansInOneRead(t *testing.T) {
	e, memory := newFaulty(t)
	e.ttl = time.Hour
	o := e.office(t, e.client, planned(t, "free", "pro"))
	o.puts(t, "1", "pro")
	o.takes(t, k1, 1)
	memory.ResetConsumed()
	for i := range 10 {
		o.takes(t, key{fmt.Sprint(i + 2), "1", "1"}, 1)
	}
	used := memory.Consumed().Table(e.table).Total() // of each key: its bucket, and its override
	if got := used.Read; got != 10*2 && got != 10*1.5 {
		t.Errorf("10 new keys took %v read units", got)
	}
}

// TestFillOnPlan: an operator's Fill gives an outdated bucket the numbers of its plan, whether links are
// stored, the chain's end says whose plan it is, or only the bucket does.
func TestFillOnPlan(t *testing.T) {
	for name, test := range map[string]struct {
		root   string
		linked bool
	}{
		"by the end of the chain": {root: "org-1"},
		"by stored parents":       {root: "key-1", linked: true},
		"as the bucket recorded":  {root: "key-1"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			o := e.office(t, e.client, planned(t, "free", "pro"))
			o.puts(t, "1", "free")
			if test.linked {
				o.follows(t, "key-1", "team-1")
				o.follows(t, "team-1", "org-1")
			}
			o.takes(t, k1, 7)
			desk := e.operator(e.client, 0)
			o.puts(t, "1", "pro")
			if err := desk.Fill(t.Context(), o.spec, ofKey, "key-1", test.root); err != nil {
				t.Fatal(err)
			}
			img := e.has(t, k1, "org-1", perMinute(200, 5000))
			if b, _ := img.Find("rpm"); b.Tokens != 200_000 {
				t.Errorf("%d millitokens, want 200,000", b.Tokens)
			}
			reshapes := o.Count("reshape applied")
			if o.takes(t, k1, 150); o.Count("reshape applied") != reshapes {
				t.Error("an acquire reshapes what Fill has written")
			}
		})
	}
	t.Run("to another org", func(t *testing.T) {
		e := newEngine(t)
		o := e.office(t, e.client, planned(t, "free", "pro"))
		o.puts(t, "2", "free")
		e.clock.set(1000)
		o.puts(t, "1", "pro")
		o.takes(t, k1, 7)
		if err := e.operator(e.client, 0).Fill(t.Context(), o.spec, ofKey, "key-1", "org-2"); err != nil {
			t.Fatal(err)
		}
		e.has(t, k1, "org-2", perMinute(10, 1000))
	})
}

// TestPlansRemoved: a resource that has no plans any more gives buckets the numbers of its schema, with the
// next revision, although a part of their version is gone.
func TestPlansRemoved(t *testing.T) {
	e := newEngine(t)
	with := planned(t, "free", "pro")
	o := e.office(t, e.client, with)
	o.puts(t, "1", "pro")
	o.takes(t, k1, 7)
	without := func(revision int64) *office {
		spec := *with.spec
		spec.Plans, spec.Revision = nil, revision
		return e.office(t, e.client, &variant{Resource: with.Resource, Numbers: &spec})
	}
	without(1).takes(t, k1, 1) // a binary from before plans: it does not undo what the newer one did
	e.has(t, k1, "org-1", perMinute(200, 5000))
	without(2).takes(t, k1, 1)
	img := e.has(t, k1, "", perMinute(100, 1000))
	_, stored := e.get(t, item.BucketKey("key-1", "gpt-4"))[item.PlanOf]
	if stored || img.Version != 2*bucket.RevisionUnit {
		t.Errorf("version %d, po is stored: %t", img.Version, stored)
	}
}

// TestPlansUnread: what cannot be read keeps its last known value.
func TestPlansUnread(t *testing.T) {
	e := newEngine(t)
	e.ttl = time.Minute
	def := planned(t, "free", "pro")
	api := &batches{API: e.client}
	o, other := e.office(t, api, def), e.office(t, e.client, def)
	other.puts(t, "1", "free")
	o.takes(t, k1, 1)
	other.puts(t, "1", "pro")
	e.clock.set(61_000)
	api.answer = func(*dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
		return nil, &types.InternalServerError{}
	}
	o.takes(t, k1, 1)
	e.has(t, k1, "org-1", perMinute(10, 1000))
	api.answer = nil
	e.clock.set(63_000)
	o.takes(t, k1, 1)
	e.has(t, k1, "org-1", perMinute(200, 5000))
}
