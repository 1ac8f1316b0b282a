package bucketstore

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/alicebob/miniredis/v2"
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

// TestRedisWindows: commands see what a window on Redis has left, and reset it, by Redis's clock.
func TestRedisWindows(t *testing.T) {
	server := miniredis.RunT(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	server.SetTime(now)
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(file, []byte(withWindows), 0o600); err != nil {
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
