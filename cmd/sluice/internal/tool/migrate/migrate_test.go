package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
	"github.com/sluice-go/sluice/runtime/store"
)

func TestConfig(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"0 segments are out of range: use 1 to 100": func(c *Config) {
			c.Segments = 0
		},
		"101 segments are out of range: use 1 to 100": func(c *Config) {
			c.Segments = 101
		},
		"-1 write units a second are negative: use 1 or more, or 0 for no bound": func(c *Config) { c.Units = -1 },
		`no job "convert"`: func(c *Config) { c.Job = "convert" },
	} {
		c := Config{Job: Convert, Segments: 1, Now: still{}.Now,
			Client: &tap{around: func(_ context.Context, in any, _ func() error) error {
				t.Errorf("%s: %T was sent", want, in)
				return errors.New("not today")
			}}}
		change(&c)
		if _, err := Run(t.Context(), c); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestStops: what is wrong with more than a bucket ends the run.
func TestStops(t *testing.T) {
	tbl := newTable(t)
	c := tbl.config(Convert, nil)
	c.Table = "migrate-test-none"
	for _, c.Job = range []Job{Convert, DryRun, Verify, Cleanup} {
		report, err := Run(t.Context(), c)
		if err == nil || report.Complete || !strings.Contains(err.Error(), c.Table) {
			t.Errorf("%s: %v, %+v", c.Job, err, report)
		}
	}
	tbl.put(users(3)...)
	c = tbl.config(
		Convert,
		&tap{API: tbl.client, around: func(_ context.Context, in any, do func() error) error {
			if get, ok := in.(*dynamodb.GetItemInput); ok {
				get.TableName = new("migrate-test-none") // as if it were deleted meanwhile
			}
			return do()
		}},
	)
	c.Segments = 1
	_, err := Run(t.Context(), c)
	setup, ok := errors.AsType[*store.SetupError](err)
	if _, notFound := errors.AsType[*types.ResourceNotFoundException](err); !ok || !notFound ||
		!strings.Contains(setup.What, tbl.name) {
		t.Errorf("got %v", err)
	}
}

// refuseWrites is an API for those who write nothing.
func refuseWrites(t testing.TB, to API) *tap {
	t.Helper()
	return &tap{API: to, around: func(_ context.Context, in any, do func() error) error {
		switch in.(type) {
		case *dynamodb.PutItemInput, *dynamodb.UpdateItemInput, *dynamodb.DeleteItemInput,
			*dynamodb.TransactWriteItemsInput:
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

// wantMixed is what a report has of mixed's items that cannot be converted.
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
	[]Wrong{{Bucket{"user-30", "gpt-4"},
		"ENTITY#user-30 / #BUCKET#gpt-4#rpm\\b.*last_refill_ms.*missing"}},
}

// TestDryRun: it says what the run will do, and writes nothing.
func TestDryRun(t *testing.T) {
	tbl := mixed(t)
	before := tbl.all()
	c := tbl.config(DryRun, refuseWrites(t, tbl.client))
	c.Units = 8
	dry := tbl.run(c)
	if diff := cmp.Diff(before, tbl.all(), cmp.Comparer(func(a,
		b codec.Item) bool {
		return len(a) == len(b)
	})); diff != "" {
		t.Error(diff)
	}
	done := tbl.run(tbl.config(Convert, nil))
	for _, r := range []*Report{dry, done} {
		if diff := cmp.Diff(wantMixed.left, r.Left); diff != "" {
			t.Error(r.Job, diff)
		}
		if !slices.Equal(r.Beside, wantMixed.beside) || !matches(r.Wrong, wantMixed.wrong) {
			t.Error(r.Job, r.Beside, r.Wrong)
		}
	}
	schema, own := specs()[0].Kinds[2].Limits, tbl.all()
	want := &Converted{Buckets: 4, Items: 8, Units: 4 * 8, Seconds: 4}
	differing := []Difference{{Bucket: Bucket{"user-10", "gpt-4"}, Limits: []Numbers{
		{"rpm", Limit{200_000, 300_000, 100_000, 60_000}, Limit(schema[0])},
		{"tpm", Limit{10_000_000, 15_000_000, 10_000_001, 60_000}, Limit(schema[1])},
	}}}
	for _, r := range []*Report{dry, done} {
		if diff := cmp.Diff(differing, r.Differing); diff != "" {
			t.Error(r.Job, diff)
		}
	}
	if diff := cmp.Diff(want, dry.Converted); diff != "" {
		t.Error(diff)
	}
	want.Units, want.Seconds = 0, 0
	if diff := cmp.Diff(want, done.Converted); diff != "" {
		t.Error(diff)
	}
	// Beside the conversions, each segment's position was written once, and one transaction deleted all.
	// DynamoDB Local bills transactions otherwise than AWS.
	if units := float64(dry.Converted.Units) + 4 + 4*2; done.WriteUnits != units && !dynamotest.OnLocal(t) ||
		dry.WriteUnits != 0 {
		t.Errorf("%v write units, and %v in the dry run; want %v", done.WriteUnits, dry.WriteUnits, units)
	}
	if own["ENTITY#user-20 #BUCKET#gpt-4#rpm"][perlimit.Migrated] != nil {
		t.Error("what stands beside a bucket was marked")
	}
}

// TestAhead: items of an instant far ahead, whose buckets would be in debt until then, are named before they
// are carried over.
func TestAhead(t *testing.T) {
	tbl := newTable(t)
	b := bucket.Balance{Limit: specs()[0].Kinds[2].Limits[0], Tokens: 1000}
	const micro = 1000
	micros, forever := old("user-3", "gpt-4", "tpm", b, 0), old("user-5", "gpt-4", "rpm", b, 0)
	micros[perlimit.Refilled] = codec.N(t0.UnixMilli() * micro)
	forever[perlimit.Refilled] = codec.N(math.MaxInt64)
	marked, unknown := old("user-6", "gpt-4", "rpm", b, -time.Hour), old("user-7", "gpt-4", "rpd", b, -time.Hour)
	marked[perlimit.Migrated] = codec.N(1)
	tbl.put(old("user-1", "gpt-4", "rpm", b, -time.Minute),
		old("user-2", "gpt-4", "rpm", b, -time.Minute-time.Millisecond),
		old("user-2", "gpt-4", "tpm", b, time.Hour), micros, old("user-4", "gpt-4", "rpm", b,
			0), forever, marked, unknown)
	want := []Ahead{
		{Bucket{"user-2", "gpt-4"}, "rpm", 60_001},
		{Bucket{"user-3", "gpt-4"}, "tpm", t0.UnixMilli() * (micro - 1)},
		{Bucket{"user-5", "gpt-4"}, "rpm", math.MaxInt64 - t0.UnixMilli()},
	}
	for _, want := range [][]Ahead{want, nil} { // a converted item is not ahead any more
		if got := tbl.run(tbl.config(DryRun, nil)).Ahead; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		tbl.run(tbl.config(Convert, nil))
	}
}

// TestResource: a run of one resource leaves the others alone.
func TestResource(t *testing.T) {
	tbl := newTable(t)
	own := specs()[1].Kinds[1].Limits[0]
	tbl.put(append(users(3), old("project-1", "embeddings", "rps", bucket.Balance{Limit: own}, 0),
		old("project-1", "gpt-3", "rps", bucket.Balance{Limit: own}, 0))...)
	c := tbl.config(Convert, nil)
	c.Resource = "embeddings"
	if r := tbl.run(c); r.Converted.Buckets != 1 || len(r.Left) != 0 {
		t.Errorf("%+v, %+v", r, r.Converted)
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

// TestBegin: a run marks the table before it converts the first bucket. It does not mark a table without
// items to convert: Check would fail in every program for nothing.
func TestBegin(t *testing.T) {
	b := bucket.Balance{Limit: specs()[0].Kinds[2].Limits[0]}
	marked := old("user-1", "gpt-4", "rpm", b, 0)
	marked[perlimit.Migrated] = codec.N(1)
	for name, items := range map[string][]codec.Item{
		"nothing": nil,
		"buckets": {bucketItem("user-1", "gpt-4")},
		"strays": {old("user-1", "gpt-4", "rpd", b, 0), old("user-1", "gpt-3", "rpm", b, 0),
			old("org-1", "gpt-4", "rpm", b, 0)},
		"what was converted": {marked},
	} {
		tbl := newTable(t)
		tbl.put(items...)
		tbl.run(tbl.config(Convert, nil))
		if all := tbl.all(); all["SYSTEM# #VERSION"] != nil || len(all) != len(items) {
			t.Errorf("%s: %d items, layout %d", name, len(all), tbl.layout())
		}
	}
	tbl := newTable(t)
	tbl.put(users(20)...)
	conversions := 0
	c := tbl.config(
		Convert,
		&tap{API: tbl.client, around: func(_ context.Context, in any, do func() error) error {
			if in, ok := in.(*dynamodb.TransactWriteItemsInput); ok && in.TransactItems[0].Put != nil {
				conversions++
				if layout := tbl.layout(); layout != 2 {
					t.Errorf("layout %d", layout)
				}
			}
			return do()
		}},
	)
	c.Segments = 1
	if tbl.run(c); conversions != 20 {
		t.Errorf("%d buckets were converted", conversions)
	}
}

// TestTooMany: a bucket of more items than one transaction takes is named, and the others are converted.
func TestTooMany(t *testing.T) {
	tbl := newTable(t)
	c := tbl.config(Convert, nil)
	items := users(2)
	for i := range perlimit.MostItems {
		name := fmt.Sprint("old", i)
		c.Specs[0].Removed = append(c.Specs[0].Removed, name)
		items = append(items, old("user-0", "gpt-4", name, bucket.Balance{Limit: bucket.Per(1, time.Second)}, 0))
	}
	tbl.put(items...)
	r := tbl.run(c)
	want := []Wrong{{Bucket{"user-0", "gpt-4"},
		"user-0 has 101 per-limit items on gpt-4.* 99.*delete .*limits.yaml"}}
	if !matches(r.Wrong, want) || r.Converted.Buckets != 1 {
		t.Error(r.Wrong, r.Converted)
	}
	for _, item := range []codec.Item{items[0], items[4], items[5]} {
		tbl.remove(codec.Item{"PK": item["PK"], "SK": item["SK"]})
	}
	if r := tbl.run(c); len(r.Wrong) != 0 || r.Converted.Items != 98 {
		t.Errorf("%+v, %+v", r.Converted, r.Wrong)
	}
	if r := tbl.run(Config{
		Job: Verify, Client: tbl.client, Table: tbl.name, Specs: c.Specs, Segments: 1, Now: c.Now,
		Progress: io.Discard,
	}); len(r.Wrong)+len(r.Left) != 0 || r.Checked.Items != 100 {
		t.Errorf("%+v, %+v", r.Checked, r.Wrong)
	}
}

// TestPagesSplit: it does not matter which items of a bucket a page ends with.
func TestPagesSplit(t *testing.T) {
	own := specs()[0].Kinds[2].Limits[0]
	for page := range int32(4) {
		tbl := newTable(t)
		tbl.put(append(users(5), old("user-3", "gpt-4", "aaa", bucket.Balance{Limit: own}, 0),
			old("user-4", "gpt-4", "rqm", bucket.Balance{Limit: own}, 0))...)
		unknown := []Left{{Resource: "gpt-4", Limit: "aaa", Why: NoLimit, Items: 1},
			{Resource: "gpt-4", Limit: "rqm", Why: NoLimit, Items: 1}}
		for _, job := range []Job{DryRun, Convert} {
			c := tbl.config(job, nil)
			c.page = page + 1
			if r := tbl.run(c); r.Converted.Buckets != 5 || r.Converted.Items != 10 || r.Converted.There != 0 ||
				!slices.Equal(r.Left, unknown) {
				t.Errorf("pages of %d: %s: %+v, %+v", c.page, job, r.Converted, r.Left)
			}
		}
		c := tbl.config(Verify, nil)
		c.page = page + 1
		if r := tbl.run(c); r.Checked.Buckets != 5 || r.Checked.Items != 10 || !slices.Equal(r.Left, unknown) {
			t.Errorf("pages of %d: %+v, %+v", c.page, r.Checked, r.Left)
		}
		c.Job = Cleanup
		if r := tbl.run(c); r.Cleaned.Deleted != 10 || len(r.Left) != 2 || r.Cleaned.Done {
			t.Errorf("pages of %d: %+v, %+v", c.page, r.Cleaned, r.Left)
		}
	}
}
