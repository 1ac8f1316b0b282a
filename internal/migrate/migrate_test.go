package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/dynamotest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/perlimit"
)

func TestConfig(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"0 segments: want 1 to 100":                                     func(c *Config) { c.Segments = 0 },
		"101 segments: want 1 to 100":                                   func(c *Config) { c.Segments = 101 },
		"-1 write units a second: want at least 1, or 0 for any number": func(c *Config) { c.Units = -1 },
		`no job "convert"`:                                              func(c *Config) { c.Job = "convert" },
	} {
		c := Config{Job: Carry, Segments: 1, Now: still{}.Now, Client: &tap{around: func(_ context.Context, in any, _ func() error) error {
			t.Errorf("%s: %T was sent", want, in)
			return errors.New("not today")
		}}}
		change(&c)
		if _, err := Run(t.Context(), c); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// endAt is an API whose context ends before the n-th of the calls that is picks.
func endAt(to API, cancel func(), n int64, is func(any) bool) *tap {
	var calls atomic.Int64
	return &tap{API: to, around: func(ctx context.Context, in any, do func() error) error {
		if is(in) && calls.Add(1) == n {
			cancel()
			return ctx.Err()
		}
		return do()
	}}
}

func isScan(in any) bool {
	_, ok := in.(*dynamodb.ScanInput)
	return ok
}

// interrupted runs c until its n-th scan.
func (t *table) interrupted(c Config, n int64) *Report {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Client = endAt(t.client, cancel, n, isScan)
	report, err := Run(ctx, c)
	if !errors.Is(err, context.Canceled) || report.Complete {
		t.Fatalf("interrupted: %v, %+v", err, report)
	}
	return report
}

// TestResume: a run that was ended after three pages is gone on with at the fourth.
func TestResume(t *testing.T) {
	tbl := newTable(t)
	tbl.put(users(200)...)
	c := tbl.config(Carry, nil)
	c.Segments, c.page = 1, 50
	first := tbl.interrupted(c, 4)
	c.Segments = 7 // the kept position is of another number, and is gone on from
	second := tbl.run(c)
	// The version item and the checkpoint are among what is read, once, wherever they are.
	if first.Scanned != 150 || second.Scanned < 250 || second.Scanned > 252 || !second.Resumed || first.Resumed {
		t.Errorf("%d items were read, and then %d; resumed %v, %v", first.Scanned, second.Scanned, first.Resumed, second.Resumed)
	}
	if n := first.Carried.Buckets + second.Carried.Buckets; n != 200 || first.Carried.Items+second.Carried.Items != 400 {
		t.Errorf("%d buckets were carried over: %+v, %+v", n, first.Carried, second.Carried)
	}
	// A finished run leaves nothing to go on with.
	if third := tbl.run(c); third.Resumed || third.Scanned < 600 || third.Carried.Buckets != 0 {
		t.Errorf("a third run: %+v, %+v", third, third.Carried)
	}
}

// TestResumeOther: what a run of something else has passed over is not passed over.
func TestResumeOther(t *testing.T) {
	own := specs()[1].Kinds[1].Limits[0]
	embeddings := func(n int) (items []codec.Item) {
		for i := range n {
			items = append(items, old("project-"+string(rune('a'+i)), "embeddings", "rps", bucket.Balance{Limit: own, Tokens: own.Burst / 2}, 0))
		}
		return items
	}
	for name, change := range map[string]func(*Config){
		"a resource": func(c *Config) { c.Resource = "gpt-4" },
		"a schema":   func(c *Config) { c.Specs = c.Specs[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			tbl := newTable(t)
			tbl.put(append(embeddings(20), users(20)...)...)
			c := tbl.config(Carry, nil)
			c.Segments, c.page = 1, 10
			change(&c)
			tbl.interrupted(c, 6)
			c = tbl.config(Carry, nil)
			if report := tbl.run(c); report.Resumed || len(report.Left) != 0 {
				t.Errorf("%+v", report)
			}
			c = tbl.config(Verify, nil)
			if report := tbl.run(c); report.Checked.Items != 60 || len(report.Left) != 0 {
				t.Errorf("%+v, %+v", report, report.Checked)
			}
		})
	}
}

// TestMissed: what an earlier run has passed over is in the last one's report, and the next run looks at it again.
func TestMissed(t *testing.T) {
	tbl := newTable(t)
	items := users(20)
	broken := maps.Clone(items[0])
	broken[perlimit.Tokens] = codec.S("many")
	tbl.put(append(items[1:], broken)...)
	c := tbl.config(Carry, nil)
	c.Segments, c.page = 1, 4
	var found []Wrong
	for i := range int64(12) {
		report := tbl.interrupted(c, 2)
		if found = append(found, report.Wrong...); len(found) > 0 {
			break
		} else if i == 11 {
			t.Fatal("it was not found")
		}
	}
	if last := tbl.run(c); last.Missed != 1 || len(last.Wrong) != 0 {
		t.Errorf("the last run: %+v", last)
	}
	want := []Wrong{{Bucket{"user-0", "gpt-4"}, "sluice: the per-limit item ENTITY#user-0 / #BUCKET#gpt-4#rpm is malformed: " +
		"attribute tokens_milli: of type S, want an integer of 64 bits; mend or delete it"}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	tbl.put(items[0])
	if next := tbl.run(c); next.Missed != 0 || next.Carried.Buckets != 1 {
		t.Errorf("once it is mended: %+v, %+v", next, next.Carried)
	}
}

// TestStops: what is wrong with more than a bucket ends the run.
func TestStops(t *testing.T) {
	tbl := newTable(t)
	c := tbl.config(Carry, nil)
	c.Table = "migrate-test-none"
	for _, c.Job = range []Job{Carry, DryRun, Verify, Cleanup} {
		report, err := Run(t.Context(), c)
		if err == nil || report.Complete || !strings.Contains(err.Error(), c.Table) {
			t.Errorf("%s: %v, %+v", c.Job, err, report)
		}
	}
	tbl.put(users(3)...)
	c = tbl.config(Carry, &tap{API: tbl.client, around: func(_ context.Context, in any, do func() error) error {
		if get, ok := in.(*dynamodb.GetItemInput); ok {
			get.TableName = new("migrate-test-none") // as if it were deleted meanwhile
		}
		return do()
	}})
	c.Segments = 1
	_, err := Run(t.Context(), c)
	if setup, ok := errors.AsType[*runtime.SetupError](err); !ok || setup.What != "table "+tbl.name+" does not exist" {
		t.Errorf("got %v", err)
	}
}

// refuseWrites is an API for those who write nothing.
func refuseWrites(t testing.TB, to API) *tap {
	t.Helper()
	return &tap{API: to, around: func(_ context.Context, in any, do func() error) error {
		switch in.(type) {
		case *dynamodb.PutItemInput, *dynamodb.UpdateItemInput, *dynamodb.DeleteItemInput, *dynamodb.TransactWriteItemsInput:
			t.Errorf("%T", in)
			return errors.New("no writes")
		}
		return do()
	}}
}

// mixed is a table with all there can be before a migration.
func mixed(t *testing.T) *table {
	t.Helper()
	tbl := newTable(t)
	items := users(3)
	raised, odd := specs()[0].Kinds[2].Limits[0], specs()[0].Kinds[2].Limits[1]
	raised.Capacity, raised.Burst = 2*raised.Capacity, 3*raised.Capacity
	odd.Refill++
	b := bucket.Balance{Limit: raised, Tokens: raised.Burst / 2}
	tbl.put(append(items,
		old("user-10", "gpt-4", "rpm", b, 0), old("user-10", "gpt-4", "tpm", bucket.Balance{Limit: odd}, 0),
		old("user-11", "gpt-4", "rpd", b, 0), old("user-12", "gpt-4", "rpd", b, 0),
		old("org-1", "gpt-4", "rpm", b, 0), old("team-1", "gpt-4", "rpm", b, 0),
		old("user-1", "embeddings", "rps", b, 0), old("user-1", "gpt-3", "rpm", b, 0),
		// Made by a program that did not look.
		old("user-20", "gpt-4", "rpm", b, 0), bucketItem("user-20", "gpt-4"),
		codec.Item{"PK": codec.S("ENTITY#user-1"), "SK": codec.S("#META"), "entity_id": codec.S("user-1")},
		// Malformed.
		codec.Item{"PK": codec.S("ENTITY#user-30"), "SK": codec.S("#BUCKET#gpt-4#rpm")})...)
	return tbl
}

// bucketItem is a full bucket.
func bucketItem(entity, resource string) codec.Item {
	item := perlimit.BucketKey(entity, resource)
	for attr, n := range map[string]int64{"rf": t0.UnixMilli(), "cv": 1e14, "ttl": t0.Unix() + 180} {
		item[attr] = codec.N(n)
	}
	item["op"] = codec.S("somebody")
	for i, l := range bucket.Full(specs()[0].Kinds[2].Limits) {
		p := "b_" + names[i] + "_"
		codec.PutBalance(item, &l, p+"tk", p+"cp", p+"bx", p+"ra", p+"rp", p+"tc")
	}
	return item
}

// wantMixed is what mixed's items come to that nobody carries over.
var wantMixed = struct {
	left   []Left
	beside []Bucket
	wrong  []Wrong
}{
	[]Left{
		{Resource: "gpt-4", Limit: "rpd", Why: NoLimit, Items: 2},
		{Resource: "gpt-3", Why: NoResource, Items: 1},
		{Resource: "embeddings", Kind: "user", Why: NoBucket, Items: 1},
		{Resource: "gpt-4", Kind: "org", Why: NoBucket, Items: 1},
		{Resource: "gpt-4", Kind: "team", Why: NoBucket, Items: 1},
	},
	[]Bucket{{"user-20", "gpt-4"}},
	[]Wrong{{Bucket{"user-30", "gpt-4"}, "sluice: the per-limit item ENTITY#user-30 / #BUCKET#gpt-4#rpm is malformed: " +
		"attribute last_refill_ms: missing, want an integer of 64 bits; mend or delete it"}},
}

// TestDryRun: it says what the run will do, and writes nothing.
func TestDryRun(t *testing.T) {
	tbl := mixed(t)
	before := tbl.all()
	c := tbl.config(DryRun, refuseWrites(t, tbl.client))
	c.Units = 8
	dry := tbl.run(c)
	if diff := cmp.Diff(before, tbl.all(), cmp.Comparer(func(a, b codec.Item) bool { return len(a) == len(b) })); diff != "" {
		t.Error(diff)
	}
	done := tbl.run(tbl.config(Carry, nil))
	for _, r := range []*Report{dry, done} {
		if diff := cmp.Diff(wantMixed.left, r.Left); diff != "" {
			t.Error(r.Job, diff)
		}
		if !slices.Equal(r.Beside, wantMixed.beside) || !slices.Equal(r.Wrong, wantMixed.wrong) {
			t.Error(r.Job, r.Beside, r.Wrong)
		}
	}
	schema, own := specs()[0].Kinds[2].Limits, tbl.all()
	want := &Carried{Buckets: 4, Items: 8, Units: 4 * 8, Seconds: 4, Differing: []Difference{{
		Entity: "user-10", Resource: "gpt-4", Limits: []Numbers{
			{"rpm", Limit{200_000, 300_000, 100_000, 60_000}, Limit(schema[0])},
			{"tpm", Limit{10_000_000, 15_000_000, 10_000_001, 60_000}, Limit(schema[1])},
		},
	}}}
	if diff := cmp.Diff(want, dry.Carried); diff != "" {
		t.Error(diff)
	}
	want.Units, want.Seconds = 0, 0
	if diff := cmp.Diff(want, done.Carried); diff != "" {
		t.Error(diff)
	}
	// Beside what carries, each segment's position was written once, and all were deleted together.
	// DynamoDB Local bills transactions otherwise than AWS.
	if units := float64(dry.Carried.Units) + 4 + 4*2; done.WriteUnits != units && !dynamotest.OnLocal(t) || dry.WriteUnits != 0 {
		t.Errorf("%v write units, and %v in the dry run; want %v", done.WriteUnits, dry.WriteUnits, units)
	}
	if own["ENTITY#user-20 #BUCKET#gpt-4#rpm"][perlimit.Migrated] != nil {
		t.Error("what stands beside a bucket was marked")
	}
}

// TestResource: a run of one resource leaves the others alone.
func TestResource(t *testing.T) {
	tbl := newTable(t)
	own := specs()[1].Kinds[1].Limits[0]
	tbl.put(append(users(3), old("project-1", "embeddings", "rps", bucket.Balance{Limit: own}, 0), old("project-1", "gpt-3", "rps", bucket.Balance{Limit: own}, 0))...)
	c := tbl.config(Carry, nil)
	c.Resource = "embeddings"
	if r := tbl.run(c); r.Carried.Buckets != 1 || len(r.Left) != 0 {
		t.Errorf("%+v, %+v", r, r.Carried)
	}
	c.Job = Verify
	if r := tbl.run(c); r.Checked.Buckets != 1 || len(r.Left) != 0 {
		t.Errorf("%+v, %+v", r, r.Checked)
	}
	c.Job = Cleanup
	if r := tbl.run(c); r.Cleaned.Deleted != 1 || r.Cleaned.Done || tbl.layout() != 2 {
		t.Errorf("%+v, %+v", r, r.Cleaned)
	}
	if n := len(tbl.all()); n != 3*2+1+1+1 { // and gpt-3's item, the bucket, the version
		t.Errorf("%d items", n)
	}
}

// TestExpired: a bucket that has expired is made anew by the next acquire, full; its marked items have no part in it.
func TestExpired(t *testing.T) {
	tbl := newTable(t)
	tbl.put(users(2)...)
	tbl.run(tbl.config(Carry, nil))
	tbl.remove(perlimit.BucketKey("user-1", "gpt-4"))
	marked := tbl.all()
	check := func(wantSums []Sum) {
		t.Helper()
		r := tbl.run(tbl.config(Verify, refuseWrites(t, tbl.client)))
		want := &Checked{Buckets: 1, Items: 4, Expired: 2, Sums: wantSums}
		if diff := cmp.Diff(want, r.Checked); diff != "" || len(r.Wrong)+len(r.Left) != 0 {
			t.Error(diff, r.Wrong, r.Left)
		}
	}
	sums := []Sum{
		{Resource: "gpt-4", Limit: "rpm", Items: 1000, Carried: 0, Expired: 1000},
		{Resource: "gpt-4", Limit: "tpm", Items: 3000, Carried: 1000, Expired: 2000},
	}
	check(sums)
	if r := tbl.run(tbl.config(Cleanup, refuseDeletes(t, tbl.client, "user-1"))); r.Cleaned.Deleted != 2 || r.Cleaned.Expired != 2 || r.Cleaned.Done {
		t.Errorf("%+v", r.Cleaned)
	}
	tbl.put(marked["ENTITY#user-0 #BUCKET#gpt-4#rpm"], marked["ENTITY#user-0 #BUCKET#gpt-4#tpm"])

	lim := tbl.limiter()
	if _, err := lim.GPT4.Acquire(t.Context(), limits.User{ID: "1", Project: limits.Project{ID: "7"}}, limits.GPT4Cost{RPM: 100, TPM: 15_000}); err != nil {
		t.Fatal(err)
	}
	if err := lim.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(sums)
	stored := tbl.all()
	for _, limit := range names {
		at := "ENTITY#user-1 #BUCKET#gpt-4#" + limit
		if diff := cmp.Diff(plain(marked[at]), plain(stored[at])); diff != "" {
			t.Error(diff)
		}
	}
	if r := tbl.run(tbl.config(Cleanup, nil)); r.Cleaned.Deleted != 4 || r.Cleaned.Expired != 0 || !r.Cleaned.Done || tbl.layout() != 1 {
		t.Errorf("%+v", r.Cleaned)
	}
}

// refuseDeletes is an API for those who delete nothing of entity.
func refuseDeletes(t testing.TB, to API, entity string) *tap {
	t.Helper()
	return &tap{API: to, around: func(_ context.Context, in any, do func() error) error {
		if del, ok := in.(*dynamodb.DeleteItemInput); ok && text(del.Key["PK"]) == "ENTITY#"+entity {
			t.Errorf("%v", text(del.Key["SK"]))
		}
		return do()
	}}
}

// plain is an item in numbers and words.
func plain(item codec.Item) map[string]any {
	all := map[string]any{}
	for attr := range item {
		if n, err := number(item, attr); err == nil {
			all[attr] = n
		} else {
			all[attr] = text(item[attr])
		}
	}
	return all
}

// TestVerify: what does not hold is named.
func TestVerify(t *testing.T) {
	tbl := mixed(t)
	tbl.put(users(9)[2*4:]...) // users 4 to 8
	tbl.run(tbl.config(Carry, nil))
	stored := tbl.all()
	change := func(entity, attr string, n int64) {
		item := maps.Clone(stored["ENTITY#"+entity+" #BUCKET#gpt-4"])
		if n == 0 {
			delete(item, attr)
		} else {
			item[attr] = codec.N(n)
		}
		tbl.put(item)
	}
	change("user-4", "m_rpm", 3999)
	change("user-5", "b_tpm_tc", 5999)
	change("user-6", "m_tpm", 0)
	tbl.put(users(10)[2*9]) // it was not there when all were carried over, and has no bucket
	r := tbl.run(tbl.config(Verify, refuseWrites(t, tbl.client)))
	want := []Wrong{
		{Bucket{"user-30", "gpt-4"}, "the item of limit rpm is malformed: attribute last_refill_ms: missing, want an integer of 64 bits"},
		{Bucket{"user-4", "gpt-4"}, "m_rpm is 3999, and the item has total_consumed_milli 4000"},
		{Bucket{"user-5", "gpt-4"}, "b_tpm_tc is 5999, below the 6000 that was carried over"},
		{Bucket{"user-6", "gpt-4"}, "attribute m_tpm: missing, want an integer of 64 bits"},
	}
	if diff := cmp.Diff(want, r.Wrong); diff != "" {
		t.Error(diff)
	}
	left := append([]Left{}, wantMixed.left...)
	left = slices.Insert(left, 2, Left{Resource: "gpt-4", Limit: "rpm", Why: NotYet, Items: 1})
	if diff := cmp.Diff(left, r.Left); diff != "" || !slices.Equal(r.Beside, wantMixed.beside) {
		t.Error(diff, r.Beside)
	}
	if r.Checked.Buckets != 3+1+2 || r.Checked.Items != 2*(3+1+5) || r.Checked.Expired != 0 {
		t.Errorf("%+v", r.Checked)
	}

	// Cleaning up leaves alone what counts.
	clean := tbl.run(tbl.config(Cleanup, nil))
	var kept int64
	for _, l := range clean.Left {
		kept += l.Items
	}
	if clean.Cleaned.Deleted != 18 || kept != 6+1+1+1 || clean.Cleaned.Done {
		t.Errorf("%+v, %+v", clean.Cleaned, clean.Left)
	}
}

// TestCleanupLooks: an item that somebody has put in the place of a marked one is not deleted. Without its condition it
// would be.
func TestCleanupLooks(t *testing.T) {
	for _, broken := range []bool{false, true} {
		tbl := newTable(t)
		items := users(2)
		tbl.put(items...)
		tbl.run(tbl.config(Carry, nil))
		put := false
		c := tbl.config(Cleanup, &tap{API: tbl.client, around: func(_ context.Context, in any, do func() error) error {
			if del, ok := in.(*dynamodb.DeleteItemInput); ok {
				if !put {
					put = true
					tbl.put(items[0])
				}
				if broken {
					del.ConditionExpression = nil
				}
			}
			return do()
		}})
		c.Segments, c.Specs = 1, specs()
		r := tbl.run(c)
		kept := tbl.all()["ENTITY#user-0 #BUCKET#gpt-4#rpm"] != nil
		if kept == broken || r.Cleaned.Done != broken || kept && r.Cleaned.Deleted != 3 {
			t.Errorf("broken %v: kept %v, %+v %+v", broken, kept, r.Cleaned, r.Left)
		}
	}
}

// TestTooMany: a bucket of more items than one transaction takes is named, and the others are carried over.
func TestTooMany(t *testing.T) {
	tbl := newTable(t)
	c := tbl.config(Carry, nil)
	items := users(2)
	for i := range perlimit.MostItems {
		name := fmt.Sprint("old", i)
		c.Specs[0].Removed = append(c.Specs[0].Removed, name)
		items = append(items, old("user-0", "gpt-4", name, bucket.Balance{Limit: bucket.Per(1, time.Second)}, 0))
	}
	tbl.put(items...)
	r := tbl.run(c)
	want := []Wrong{{Bucket{"user-0", "gpt-4"}, "sluice: user-0 has 101 per-limit items on gpt-4, and one transaction takes 99; " +
		"delete those of limits that limits.yaml does not have"}}
	if diff := cmp.Diff(want, r.Wrong); diff != "" || r.Carried.Buckets != 1 {
		t.Error(diff, r.Carried)
	}
	for _, item := range []codec.Item{items[0], items[4], items[5]} {
		tbl.remove(codec.Item{"PK": item["PK"], "SK": item["SK"]})
	}
	if r := tbl.run(c); len(r.Wrong) != 0 || r.Carried.Items != 98 {
		t.Errorf("%+v, %+v", r.Carried, r.Wrong)
	}
	if r := tbl.run(Config{
		Job: Verify, Client: tbl.client, Table: tbl.name, Specs: c.Specs, Segments: 1, Now: c.Now, Progress: io.Discard,
	}); len(r.Wrong)+len(r.Left) != 0 || r.Checked.Items != 100 {
		t.Errorf("%+v, %+v", r.Checked, r.Wrong)
	}
}

// TestPagesSplit: it does not matter which items of a bucket a page ends with.
func TestPagesSplit(t *testing.T) {
	own := specs()[0].Kinds[2].Limits[0]
	for page := range int32(4) {
		tbl := newTable(t)
		tbl.put(append(users(5), old("user-3", "gpt-4", "aaa", bucket.Balance{Limit: own}, 0), old("user-4", "gpt-4", "rqm", bucket.Balance{Limit: own}, 0))...)
		stray := []Left{{Resource: "gpt-4", Limit: "aaa", Why: NoLimit, Items: 1}, {Resource: "gpt-4", Limit: "rqm", Why: NoLimit, Items: 1}}
		for _, job := range []Job{DryRun, Carry} {
			c := tbl.config(job, nil)
			c.page = page + 1
			if r := tbl.run(c); r.Carried.Buckets != 5 || r.Carried.Items != 10 || r.Carried.There != 0 || !slices.Equal(r.Left, stray) {
				t.Errorf("pages of %d: %s: %+v, %+v", c.page, job, r.Carried, r.Left)
			}
		}
		c := tbl.config(Verify, nil)
		c.page = page + 1
		if r := tbl.run(c); r.Checked.Buckets != 5 || r.Checked.Items != 10 || !slices.Equal(r.Left, stray) {
			t.Errorf("pages of %d: %+v, %+v", c.page, r.Checked, r.Left)
		}
		c.Job = Cleanup
		if r := tbl.run(c); r.Cleaned.Deleted != 10 || len(r.Left) != 2 || r.Cleaned.Done {
			t.Errorf("pages of %d: %+v, %+v", c.page, r.Cleaned, r.Left)
		}
	}
}
