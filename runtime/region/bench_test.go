package region

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region/images"
	"github.com/sluice-go/sluice/runtime/store"
)

// BenchmarkCycle has cycles of one of three regions that divide 2,000 entities x 10 resources, with the
// stream and without. All buckets are used, and the others have published a new snapshot each time.
func BenchmarkCycle(b *testing.B) {
	for _, stream := range []bool{false, true} {
		b.Run(fmt.Sprint("stream=", stream), func(b *testing.B) { benchmarkCycle(b, stream) })
	}
}

func benchmarkCycle(b *testing.B, stream bool) {
	b.Helper()
	const entities, resources = 2000, 10
	w := &manyBuckets{now: time.UnixMilli(1_700_000_000_000), objects: map[string][]byte{}}
	regions := &store.Regions{Names: []string{"ap", "eu", "us"}, Floor: 5, Window: window}
	for r := range resources {
		w.specs = append(w.specs, &store.Spec{
			Resource: fmt.Sprint("model-", r), Revision: 1, Limits: []string{"rpm"}, Regions: regions,
			Kinds: []store.Kind{{Name: "user", Prefix: "user-", Parent: store.NoParent,
				Limits: []bucket.Limit{bucket.Per(1000, time.Minute)}, PerCall: []int64{1}}},
		})
	}
	for e := range entities {
		w.entities = append(w.entities, fmt.Sprintf("user-%08x-%04x-%012x", e, e*7, e*31))
	}
	var syncs []*Sync
	for i, name := range regions.Names {
		c := Config{Region: name, Table: &manyTable{manyBuckets: w, region: i}, Snapshots: w, Specs: w.specs,
			Clock: w, Logger: slog.New(slog.DiscardHandler)}
		if stream {
			c.Images = images.New(w.specs)
			c.Images.Reading([]string{"shard"})
		}
		s, err := New(c)
		if err != nil {
			b.Fatal(err)
		}
		syncs = append(syncs, s)
	}
	quotas := 0
	cycle := func(s *Sync) {
		r, err := s.Cycle(b.Context())
		if err = errors.Join(err, r.Failures(1)); err != nil {
			b.Fatal(err)
		}
		quotas = r.Quotas
	}
	others := func() {
		w.now = w.now.Add(window)
		for _, s := range syncs {
			w.feed(b, s)
		}
		cycle(syncs[1])
		cycle(syncs[2])
	}
	for range 12 {
		others()
		cycle(syncs[0])
	}
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		b.StopTimer()
		others()
		b.StartTimer()
		cycle(syncs[0])
	}
	if quotas != entities*resources {
		b.Fatalf("%d quotas, want %d", quotas, entities*resources)
	}
}

// feed brings the images of s up to date, if it has any.
func (w *manyBuckets) feed(b *testing.B, s *Sync) {
	b.Helper()
	m := s.Config.Images
	if m == nil {
		return
	}
	m.Heard("shard", w.now, w.now)
	for _, spec := range w.specs {
		if err := s.Table.Each(b.Context(), spec.Resource, func(entity string, img *bucket.Image) {
			m.Put(spec.Resource, entity, "1", img)
		}); err != nil {
			b.Fatal(err)
		}
	}
}

// manyBuckets is three regions whose buckets are all used.
type manyBuckets struct {
	now      time.Time
	specs    []*store.Spec
	entities []string
	objects  map[string][]byte
}

func (w *manyBuckets) Now() time.Time                     { return w.now }
func (*manyBuckets) After(time.Duration) <-chan time.Time { return nil }

func (w *manyBuckets) Get(_ context.Context, name string) ([]byte, error) {
	if o := w.objects[name]; o != nil {
		return o, nil
	}
	return nil, fs.ErrNotExist
}

func (w *manyBuckets) Put(_ context.Context, name string, object []byte) error {
	w.objects[name] = object
	return nil
}

// manyTable is the table of one of them.
type manyTable struct {
	*manyBuckets
	region int
	beat   store.Heartbeat
}

func (t *manyTable) Each(_ context.Context, _ string, f func(string, *bucket.Image)) error {
	ms := t.now.UnixMilli()
	for i, entity := range t.entities {
		tokens := int64(1+(i+t.region)%3) * 150 * bucket.Milli
		limit := bucket.Per(1000, time.Minute).Quota(tokens / bucket.Milli)
		f(entity, &bucket.Image{Refilled: ms, TTL: ms/1000 + 1000, Extra: []bucket.Named{{Name: "rpm",
			Balance: bucket.Balance{Limit: limit, Tokens: limit.Burst, Consumed: ms * (1 + int64(i+t.region)%3)}}}})
	}
	return nil
}

func (*manyTable) Get(_ context.Context, _ *store.Spec, at ...string) ([]store.Stored, error) {
	return make([]store.Stored, len(at)), nil
}

func (t *manyTable) PutQuota(context.Context, *store.Spec, store.Stored) (store.Revision, error) {
	return "1", nil
}

func (*manyTable) Grant(context.Context, *store.Spec, string, []bucket.Limit, []int64) (bool, error) {
	return false, nil
}

func (t *manyTable) Heartbeat(context.Context) (store.Heartbeat, error) { return t.beat, nil }

func (t *manyTable) PutHeartbeat(_ context.Context, h store.Heartbeat) error {
	t.beat = h
	return nil
}
