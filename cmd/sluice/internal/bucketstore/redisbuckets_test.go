package bucketstore

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/alicebob/miniredis/v2"

	"github.com/sluice-go/sluice/runtime/bucket"
)

const withWindows = `version: 1
owner: acme
revision: 1
go: {package: limits, out: ./limits}
stores: [redis]
entities: {user: {}}
resources:
  gateway:
    limits:
      tpd: {capacity: 100, window: day}
      rpm: {capacity: 60, every: 1m}
    entities: {user: {}}
`

const withSlots = `version: 1
owner: acme
revision: 1
go: {package: limits, out: ./limits}
stores: [redis]
entities: {user: {}}
resources:
  gateway:
    limits:
      parallel: {capacity: 20, in_flight: true}
      tpd: {capacity: 100, window: day, on_crash: release}
    on_unavailable: deny
    entities: {user: {}}
`

// noon is the time of the Redis that connected returns.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// connected returns a Redis, and the buckets of a schema in it.
func connected(t *testing.T, limits string) (*miniredis.Miniredis, *Redis) {
	t.Helper()
	server := miniredis.RunT(t)
	server.SetTime(noon)
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(file, []byte(limits), 0o600); err != nil {
		t.Fatal(err)
	}
	schema, err := schemafile.Flag{File: file}.Read()
	if err != nil {
		t.Fatal(err)
	}
	at, err := ConnectRedis(t.Context(), "redis://"+server.Addr(), "", schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(at.Close)
	return server, at
}

// TestRedisHolds: commands see what open leases hold on Redis, and a reset ends it.
func TestRedisHolds(t *testing.T) {
	server, at := connected(t, withSlots)
	first := noon.UnixMilli()/bucket.EpochLength + 1
	epoch, ends := strconv.FormatInt(first, 10), strconv.FormatInt(noon.Add(12*time.Hour).UnixMilli(), 10)
	even, odd := "h0", "h1"
	if first%2 == 1 {
		even, odd = odd, even
	}
	server.HSet("sluice:gateway:parallel:user-1", even, "5000", odd, "12000", "e", epoch)
	server.HSet("sluice:gateway:tpd:user-1", even, "0", odd, "30000", "e", epoch, "used", "10000", "end", ends)
	all, err := at.Inspect(t.Context(), "user-1", "gateway", "")
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v, want one bucket", all, err)
	}
	ofSlots := []Hold{{5000, noon.Add(time.Minute)}, {12_000, noon.Add(2 * time.Minute)}}
	if l := all[0].At("parallel"); l.Available != 3000 || !slices.Equal(l.Held, ofSlots) {
		t.Errorf("%+v, want 3 available, and held are %+v", l, ofSlots)
	}
	ofWindow := []Hold{{30_000, ofSlots[1].Until}}
	if l := all[0].At("tpd"); l.Available != 60_000 || !slices.Equal(l.Held, ofWindow) {
		t.Errorf("%+v, want 60 available, and held are %+v", l, ofWindow)
	}
	after, filled, err := at.Fill(t.Context(), all[0], nil)
	if err != nil || len(filled) != 2 {
		t.Fatalf("%+v, %q, %v, want that both are filled", after, filled, err)
	}
	for _, name := range filled {
		if l := after.At(name); l.Available != l.Burst || l.Held != nil {
			t.Errorf("%+v, want the capacity", l)
		}
	}
}

// TestRedisWindows: commands see what a window on Redis has left, and reset it, by Redis's clock.
func TestRedisWindows(t *testing.T) {
	server, at := connected(t, withWindows)
	now := noon
	inspect := func(available int64, full time.Duration) Bucket {
		t.Helper()
		all, err := at.Inspect(t.Context(), "user-1", "gateway", "")
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v, want one bucket", all, err)
		}
		if l := all[0].At("tpd"); l.Available != available || l.FullIn != full {
			t.Errorf("%d available, full in %v, want %d and %v", l.Available, l.FullIn, available, full)
		}
		return all[0]
	}
	ends := now.Add(12 * time.Hour).UnixMilli()
	server.HSet("sluice:gateway:tpd:user-1", "used", "130000", "end", strconv.FormatInt(ends, 10))
	b := inspect(-30_000, 12*time.Hour)
	after, filled, err := at.Fill(t.Context(), b, []string{"tpd"})
	if err != nil || after.At("tpd").Available != 100_000 || len(filled) != 1 {
		t.Errorf("%+v, %q, %v, want the capacity", after, filled, err)
	}
	if got := server.HGet("sluice:gateway:tpd:user-1", "end"); got != strconv.FormatInt(ends+1, 10) {
		t.Errorf("a reset window ends at %s, want %d", got, ends+1)
	}
	server.HSet("sluice:gateway:tpd:user-1", "used", "130000")
	server.SetTime(now.Add(12*time.Hour + time.Millisecond))
	inspect(100_000, 0)
}

const withPlans = `version: 1
owner: acme
revision: 1
go: {package: limits, out: ./limits}
stores: [redis]
entities: {org: {}, key: {parent: org}}
plans: {kind: org, names: [free, pro]}
resources:
  gateway:
    limits: {rpm: {capacity: 60, every: 1m}}
    entities: {key: {}, org: {}}
    plans: {pro: {key: {rpm: {capacity: 600}}}}
`

// TestRedisPlans: commands see a bucket of Redis by the plan of the org that its last call had. They fill it
// by that.
func TestRedisPlans(t *testing.T) {
	server, at := connected(t, withPlans)
	ctx := t.Context()
	inspect := func(entity string, available, burst, version int64) Bucket {
		t.Helper()
		all, err := at.Inspect(ctx, entity, "gateway", "")
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v, want one bucket", all, err)
		}
		if l := all[0].At("rpm"); l.Available != available*bucket.Milli || l.Burst != burst*bucket.Milli ||
			all[0].Overrides != version {
			t.Errorf("%s: %d of %d by %d, want %d of %d by %d", entity, l.Available/bucket.Milli,
				l.Burst/bucket.Milli, all[0].Overrides, available, burst, version)
		}
		return all[0]
	}
	for key, of := range map[string]string{"key-1": "org-7", "key-2": "org-8"} {
		server.HSet("sluice:gateway:rpm:"+key, "tokens", "50", "of", of,
			"lastRefill", strconv.FormatInt(noon.UnixMilli(), 10))
	}
	server.HSet("sluice:#entity:org-7", "plan", "pro", "pv", "70")
	inspect("key-1", 50, 600, 70)
	inspect("key-2", 50, 60, 0)
	server.HSet("sluice:#plans:gateway", "ver", "5", "l_pro.key.rpm", "700000 700000 700000 60000")
	b := inspect("key-1", 50, 700, 75)
	inspect("key-2", 50, 60, 5)
	server.HSet("sluice:#config:gateway:key-1", "ver", "3", "l_rpm", "80000 80000 80000 60000")
	inspect("key-1", 50, 80, 78)
	server.Del("sluice:#config:gateway:key-1")
	if after, _, err := at.Fill(ctx, b, nil); err != nil || after.At("rpm").Available != 700_000 {
		t.Errorf("%+v, %v, want the plan's capacity", after, err)
	}
	for page, err := range at.List(ctx, "gateway", "key") {
		if err != nil || len(page.Buckets) != 2 || page.Buckets[0].At("rpm").Burst != 700_000 {
			t.Errorf("%+v, %v", page, err)
		}
	}
}
