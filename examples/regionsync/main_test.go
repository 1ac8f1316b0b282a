package main

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/examples/regionsync/limits"
	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/test/crossbuild"
	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/region/filestore"
)

// TestGenerated: the code is what limits.yaml gives.
func TestGenerated(t *testing.T) {
	result, err := gen.Run(gen.Config{Schema: "limits.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := result.Diff(); diff != "" {
		t.Errorf("run `go run ../../cmd/sluice generate` in examples/regionsync and commit:\n%s", diff)
	}
}

// clock is where the tests say.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time                     { return c.now }
func (*clock) After(time.Duration) <-chan time.Time { return nil }

// TestHandler: functions in two regions share a limit out by demand, 3 to 1.
func TestHandler(t *testing.T) {
	at := &clock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	snapshots, err := filestore.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var calls []func(requests int64) (writes int)
	var left []func() int64
	for _, name := range []string{"eu-central-1", "us-east-1"} {
		client := memdynamo.New(memdynamo.WithClock(at)).Client()
		if _, err := operator.CreateTable(t.Context(), client, "rate_limits"); err != nil {
			t.Fatal(err)
		}
		h, err := handler(client, "rate_limits", snapshots, name, at)
		if err != nil {
			t.Fatal(err)
		}
		lim, err := limits.New(dynamo.New(client, "rate_limits"), runtime.WithClock(at))
		if err != nil {
			t.Fatal(err)
		}
		user := limits.User{ID: "1"}
		calls = append(calls, func(requests int64) int {
			t.Helper()
			if _, err := lim.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{RPM: requests}); err != nil {
				t.Fatal(err)
			}
			out, err := h.HandleLambda(t.Context())
			if err != nil || out.Region != name {
				t.Fatalf("%+v, %v", out, err)
			}
			return out.Writes
		})
		left = append(left, func() int64 {
			t.Helper()
			seen, err := lim.GPT4.Peek(t.Context(), user)
			if err != nil {
				t.Fatal(err)
			}
			return seen.Buckets[0].Capacity.RPM
		})
	}
	writes := 0
	for range 12 {
		at.now = at.now.Add(time.Minute)
		writes += calls[0](45) + calls[1](15)
	}
	at.now = at.now.Add(time.Minute) // no process remembers what was there before
	calls[0](45)
	calls[1](15)
	const drift = 15 // percent: what differs by less is not written
	eu, us := left[0](), left[1]()
	if 100*max(eu-725, 725-eu) > drift*eu || 100*max(us-275, 275-us) > drift*us || eu+us > 1000 || writes == 0 {
		t.Errorf("%d and %d after %d writes, want about 725 and 275, and not above 1000", eu, us, writes)
	}
}

// TestStart: what is not set, or cannot be, is said at the start.
func TestStart(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-central-1")
	for _, test := range []struct{ table, snapshots, region, want string }{
		{"rate_limits", "s3://quotas/limits", "", ""},
		{"rate_limits", "s3://quotas/limits", "us-east-1", ""},
		{"", "s3://quotas", "",
			"SLUICE_TABLE or SLUICE_SNAPSHOTS is not set: name the table, and s3://bucket/prefix, which all regions " +
				"share"},
		{"rate_limits", "", "",
			"SLUICE_TABLE or SLUICE_SNAPSHOTS is not set: name the table, and s3://bucket/prefix, which all regions " +
				"share"},
		{"rate_limits", "quotas", "",
			`setup: "quotas" is not a place in S3 | name one as in s3://bucket/prefix`},
		{
			"rate_limits", "s3://quotas", "eu-west-1",
			`setup: region.New: region "eu-west-1" is not one of those that gpt-4 is divided among: ` +
				"eu-central-1, us-east-1 | name one of them, or add it to regions in limits.yaml",
		},
	} {
		env := map[string]string{"SLUICE_TABLE": test.table, "SLUICE_SNAPSHOTS": test.snapshots,
			"SLUICE_REGION": test.region}
		h, err := start(t.Context(), func(name string) string { return env[name] })
		if errtext.Of(err) != test.want || (h == nil) != (err != nil) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// TestBuild: it builds for Lambda's arm64.
func TestBuild(t *testing.T) { crossbuild.Lambda(t) }
