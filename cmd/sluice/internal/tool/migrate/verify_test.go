package migrate

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
)

// TestExpired: a bucket that has expired is made anew by the next acquire, full; its marked items have no
// part in it.
func TestExpired(t *testing.T) {
	tbl := newTable(t)
	tbl.put(users(2)...)
	tbl.run(tbl.config(Convert, nil))
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
		{Resource: "gpt-4", Limit: "rpm", Items: 1000, Converted: 0, Expired: 1000},
		{Resource: "gpt-4", Limit: "tpm", Items: 3000, Converted: 1000, Expired: 2000},
	}
	check(sums)
	if r := tbl.run(tbl.config(Cleanup, refuseDeletes(t, tbl.client, "user-1"))); r.Cleaned.Deleted != 2 ||
		r.Cleaned.Expired != 2 || r.Cleaned.Done {
		t.Errorf("%+v", r.Cleaned)
	}
	tbl.put(marked["ENTITY#user-0 #BUCKET#gpt-4#rpm"], marked["ENTITY#user-0 #BUCKET#gpt-4#tpm"])

	lim := tbl.limiter()
	if _, err := lim.GPT4.Acquire(t.Context(), limits.User{ID: "1", Project: limits.Project{ID: "7"}},
		limits.GPT4Cost{RPM: 100, TPM: 15_000}); err != nil {
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
	if r := tbl.run(tbl.config(Cleanup, nil)); r.Cleaned.Deleted != 4 || r.Cleaned.Expired != 0 ||
		!r.Cleaned.Done || tbl.layout() != 1 {
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
	tbl.run(tbl.config(Convert, nil))
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
	tbl.put(users(10)[2*9]) // it was not there when all were converted, and has no bucket
	r := tbl.run(tbl.config(Verify, refuseWrites(t, tbl.client)))
	want := []Wrong{
		{Bucket{"user-30", "gpt-4"}, "the item of limit rpm is malformed: attribute last_refill_ms: missing, " +
			"want an integer of 64 bits; fix or delete it"},
		{Bucket{"user-4", "gpt-4"}, "m_rpm is 3999, and the item has total_consumed_milli 4000"},
		{Bucket{"user-5", "gpt-4"}, "b_tpm_tc is 5999, below the 6000 that was converted"},
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

// TestCleanupLooks: an item that somebody has put in the place of a marked one is not deleted. Without its
// condition it would be.
func TestCleanupLooks(t *testing.T) {
	for _, broken := range []bool{false, true} {
		tbl := newTable(t)
		items := users(2)
		tbl.put(items...)
		tbl.run(tbl.config(Convert, nil))
		put := false
		c := tbl.config(Cleanup, &tap{API: tbl.client,
			around: func(_ context.Context, in any, do func() error) error {
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

// TestVerifyBeside: what is carried over between the read of an item and that of its bucket is nobody's
// mistake; what was made beside its items is.
func TestVerifyBeside(t *testing.T) {
	for _, page := range []int32{3, 100} { // buckets' items in two pages, and in one
		tbl := newTable(t)
		tbl.put(users(9)...)
		tbl.put(bucketItem("user-8", "gpt-4"))
		c := tbl.config(Verify, nil)
		c.Segments, c.page = 1, page
		converted := false
		c.Client = &tap{API: refuseWrites(t, tbl.client),
			around: func(_ context.Context, in any, do func() error) error {
				if _, ok := in.(*dynamodb.BatchGetItemInput); ok && !converted {
					converted = true
					tbl.run(tbl.config(Convert, nil))
				}
				return do()
			}}
		r := tbl.run(c)
		if want := []Bucket{{"user-8", "gpt-4"}}; !slices.Equal(r.Beside, want) || len(r.Wrong)+len(r.Left) > 0 {
			t.Errorf("beside %v, wrong %v, left %v", r.Beside, r.Wrong, r.Left)
		}
		want := &Checked{Buckets: 8, Items: 16, Sums: []Sum{
			{Resource: "gpt-4", Limit: "rpm", Items: 28_000, Converted: 28_000}, {Resource: "gpt-4", Limit: "tpm",
				Items: 36_000, Converted: 36_000},
		}}
		if diff := cmp.Diff(want, r.Checked); diff != "" {
			t.Error(diff)
		}
	}
}

// TestVerifyDiffering: a bucket whose items had other limits is found at any time, whether a run or an
// acquire converted it.
func TestVerifyDiffering(t *testing.T) {
	tbl := newTable(t)
	own := specs()[0].Kinds[2].Limits
	items := users(5)
	raised := []bucket.Limit{bucket.Per(200, time.Minute), bucket.Per(20_000, time.Minute)}
	for i := range names { // of user-3 both limits, of user-4, which expires, one
		items[2*3+i] = old("user-3", "gpt-4", names[i], bucket.Balance{Limit: raised[i], Tokens: 1}, 0)
	}
	items[2*4] = old("user-4", "gpt-4", "rpm", bucket.Balance{Limit: raised[0], Tokens: 1}, 0)
	tbl.put(items...)
	tbl.run(tbl.config(Convert, nil))
	tbl.remove(perlimit.BucketKey("user-4", "gpt-4"))
	want := []Difference{{Bucket: Bucket{"user-3", "gpt-4"}, Limits: []Numbers{
		{"rpm", Limit(raised[0]), Limit(own[0])}, {"tpm", Limit(raised[1]), Limit(own[1])},
	}}}
	for page := range int32(4) {
		c := tbl.config(Verify, refuseWrites(t, tbl.client))
		c.page = page + 1
		if r := tbl.run(c); !cmp.Equal(want, r.Differing) || len(r.Wrong) > 0 {
			t.Errorf("pages of %d: %s %v", c.page, cmp.Diff(want, r.Differing), r.Wrong)
		}
	}
	overridden := tbl.all()["ENTITY#user-3 #BUCKET#gpt-4"]
	for attr, n := range map[string]int64{"cp": raised[0].Capacity, "bx": raised[0].Burst,
		"ra": raised[0].Refill} {
		overridden["b_rpm_"+attr] = codec.N(n)
	}
	tbl.put(overridden)
	want[0].Limits = want[0].Limits[1:]
	if r := tbl.run(tbl.config(Verify, nil)); !cmp.Equal(want, r.Differing) {
		t.Error(cmp.Diff(want, r.Differing))
	}
}
