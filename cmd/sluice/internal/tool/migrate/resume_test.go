package migrate

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
)

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
	c := tbl.config(Convert, nil)
	c.Segments, c.page = 1, 50
	first := tbl.interrupted(c, 4)
	c.Segments = 7 // the kept position is of another number, and is gone on from
	second := tbl.run(c)
	// The version item is among what is read; the checkpoint is not counted.
	if first.Scanned != 150 || second.Scanned != 251 || !second.Resumed || first.Resumed {
		t.Errorf("%d items were read, and then %d; resumed %v, %v", first.Scanned, second.Scanned, first.Resumed,
			second.Resumed)
	}
	if n := first.Converted.Buckets + second.Converted.Buckets; n != 200 || first.Converted.Items+
		second.Converted.Items != 400 {
		t.Errorf("%d buckets were converted: %+v, %+v", n, first.Converted, second.Converted)
	}
	// A finished run leaves nothing to go on with.
	if third := tbl.run(c); third.Resumed || third.Scanned < 600 || third.Converted.Buckets != 0 {
		t.Errorf("a third run: %+v, %+v", third, third.Converted)
	}
}

// TestScanned: what was read counts, also of pages that a run was ended in.
func TestScanned(t *testing.T) {
	for _, job := range []Job{DryRun, Convert, Verify, Cleanup} {
		tbl := newTable(t)
		tbl.put(users(20)...)
		if job == Cleanup {
			tbl.run(tbl.config(Convert, nil))
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := tbl.config(job, endAt(tbl.client, cancel, 1, func(in any) bool {
			switch in.(type) {
			case *dynamodb.GetItemInput, *dynamodb.BatchGetItemInput:
				return true
			}
			return false
		}))
		c.Segments, c.page = 1, 10
		if report, err := Run(ctx, c); !errors.Is(err, context.Canceled) || report.Scanned != 10 {
			t.Errorf("%s: %v, %+v", job, err, report)
		}
	}
}

// TestScannedIsExact: the number of items read does not depend on which segment ends first. Here one reads
// its page after the others have written their checkpoints.
func TestScannedIsExact(t *testing.T) {
	const segments = 4
	for _, last := range []int32{0, 1, 2, 3} {
		tbl := newTable(t)
		tbl.put(users(20)...)
		tbl.run(tbl.config(Convert, nil))
		written, others := make(chan struct{}, segments), segments-1
		wait := func() {
			for ; others > 0; others-- {
				<-written
			}
		}
		around := func(_ context.Context, in any, do func() error) error {
			switch in := in.(type) {
			case *dynamodb.ScanInput:
				if *in.Segment == last {
					wait()
				}
			case *dynamodb.PutItemInput:
				defer func() { written <- struct{}{} }()
			}
			return do()
		}
		c := tbl.config(Cleanup, &tap{API: tbl.client, around: around})
		c.Segments = segments
		if report := tbl.run(c); report.Scanned != 61 { // 40 per-limit items, 20 buckets and the version item
			t.Errorf("segment %d is last: %d items were read, want 61", last, report.Scanned)
		}
	}
}

// TestResumeOther: what a run of something else has passed over is not passed over.
func TestResumeOther(t *testing.T) {
	own := specs()[1].Kinds[1].Limits[0]
	embeddings := func(n int) (items []codec.Item) {
		for i := range n {
			items = append(items, old("project-"+string(rune('a'+i)), "embeddings", "rps",
				bucket.Balance{Limit: own, Tokens: own.Burst / 2}, 0))
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
			c := tbl.config(Convert, nil)
			c.Segments, c.page = 1, 10
			change(&c)
			tbl.interrupted(c, 6)
			c = tbl.config(Convert, nil)
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

// TestMissed: what an earlier run has passed over is in the last one's report, and the next run looks at it
// again.
func TestMissed(t *testing.T) {
	tbl := newTable(t)
	items := users(20)
	broken := maps.Clone(items[0])
	broken[perlimit.Tokens] = codec.S("many")
	tbl.put(append(items[1:], broken)...)
	c := tbl.config(Convert, nil)
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
	want := []Wrong{{Bucket{"user-0", "gpt-4"},
		"ENTITY#user-0 / #BUCKET#gpt-4#rpm\\b.*tokens_milli.*\\bS\\b"}}
	if !matches(found, want) {
		t.Error(found)
	}
	tbl.put(items[0])
	if next := tbl.run(c); next.Missed != 0 || next.Converted.Buckets != 1 {
		t.Errorf("once it is fixed: %+v, %+v", next, next.Converted)
	}
}
