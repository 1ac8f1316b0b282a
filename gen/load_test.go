package gen

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestLoad reads what commands need: kinds and their parents, and each kind's own numbers.
func TestLoad(t *testing.T) {
	got, err := Load(schemaAt(t, t.TempDir(), `version: 1
owner: acme
revision: 7
go: {package: limits}
regions: {names: [us, eu], floor: 10, window: 30s}
stores: [dynamodb]
entities: {user: {parent: org}, org: {}}
resources:
  api:
    limits:
      rps: {capacity: 10, every: 1s, per_call: 1}
      rpd: {capacity: 100, burst: 150, refill: 50, every: 1d}
    removed: [old]
    entities: {user: {}, org: {rps: {capacity: 20}}}
    global: true
  own:
    limits: {rps: {capacity: 1, every: 1s}}
    entities: {org: {}}
    on_unavailable: deny
    settle: lazy
    shadow: true
  paid:
    limits:
      tpm: {capacity: 9, every: 1m, counts: [input, output]}
      month: {money: USD, capacity: 5, window: month}
    usage: {input: {price: 2.50/1M}, cached: {}, output: {price: 0.01}}
    entities: {org: {}}
    on_unavailable: deny
  windows:
    limits:
      rps: {capacity: 1, every: 1s}
      day: {capacity: 5, window: day, starts: "04:30", zone: Europe/Berlin}
    entities: {org: {}}
`).Schema)
	if err != nil {
		t.Fatal(err)
	}
	rpd := Numbers{Capacity: 100, Burst: 150, Refill: 50, Period: 24 * time.Hour}
	want := &Schema{
		Owner:    "acme",
		Revision: 7,
		Stores:   []string{StoreDynamoDB},
		Kinds:    []Kind{{Name: "user", Parent: 1}, {Name: "org", Parent: -1}},
		Resources: []Resource{{
			Name: "api", Limits: []string{"rps", "rpd"}, Removed: []string{"old"}, Cascade: "atomic",
			Charged: []Charged{
				{Kind: 0, Limits: []Numbers{{Capacity: 10, Burst: 10, Refill: 10, Period: time.Second}, rpd},
					PerCall: []int64{1, 0}},
				{Kind: 1, Limits: []Numbers{{Capacity: 20, Burst: 20, Refill: 20, Period: time.Second}, rpd},
					PerCall: []int64{1, 0}},
			},
			Regions: &Regions{Names: []string{"eu", "us"}, Floor: 10,
				Window: 30 * time.Second, Drift: 15, Horizon: 2}, OnUnavailable: "allow",
		}, {
			Name: "own", Limits: []string{"rps"}, Cascade: "atomic",
			Charged: []Charged{{Kind: 1, Limits: []Numbers{{Capacity: 1, Burst: 1, Refill: 1,
				Period: time.Second}}, PerCall: []int64{0}}},
			OnUnavailable: "deny", LazySettle: true, Shadow: true,
		}, {
			Name: "paid", Limits: []string{"tpm", "month"}, Cascade: "atomic", OnUnavailable: "deny",
			Windows: []*Window{nil, {Unit: WindowMonth, Length: 30 * 24 * time.Hour, Date: 1, Zone: "UTC"}},
			Units:   []string{"", "USD"},
			Priced:  true, Usage: []Usage{{Name: "input", Price: 2_500_000, Counts: []int{0}}, {Name: "cached"},
				{Name: "output", Price: 10_000_000_000, Counts: []int{0}}},
			Charged: []Charged{{Kind: 1, Limits: []Numbers{
				{Capacity: 9, Burst: 9, Refill: 9, Period: time.Minute},
				{Capacity: 5_000_000_000, Burst: 5_000_000_000, Period: 30 * 24 * time.Hour, Currency: "USD"},
			}, PerCall: []int64{0, 0}}},
		}, {
			Name: "windows", Limits: []string{"rps", "day"}, Cascade: "atomic", OnUnavailable: "allow",
			Windows: []*Window{nil, {Unit: WindowDay, Length: 24 * time.Hour, At: 4*time.Hour + 30*time.Minute,
				Zone: "Europe/Berlin"}},
			Charged: []Charged{{Kind: 1, Limits: []Numbers{
				{Capacity: 1, Burst: 1, Refill: 1, Period: time.Second}, {Capacity: 5, Burst: 5, Period: 24 * time.Hour},
			}, PerCall: []int64{0, 0}}},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Schema differs (-want +got):\n%s", diff)
	}
}

// TestLoadErrors: Load fails as Run does.
func TestLoadErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "limits.yaml")
	if _, err := Load(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	for name, dir := range cases(t, "bad") {
		cfg := Config{Schema: filepath.Join(dir, "limits.yaml")}
		_, want := Run(cfg)
		_, err := Load(cfg.Schema)
		if _, ok := errors.AsType[Problems](err); !ok || err.Error() != want.Error() {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}
