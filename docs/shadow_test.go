package docs_test

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/metrics"
)

// shadowed is a limits.yaml, of which docs/shadow.md quotes the end.
const shadowed = `version: 1
owner: acme
revision: 1
go: {package: limits}
entities: {user: {}}
resources:
  api:
    limits: {rps: {capacity: 20, burst: 40, every: 1s, per_call: 1}}
    shadow: true
`

// ended is what docs/shadow.md writes into the file without shadow.
const ended = `
breaking:
  ignore_only: [{rule: SHADOW_CHANGED, at: api, reason: a week with 3 would-be refusals of 40 million calls}]
`

// tryOut is quoted in docs/shadow.md.
func tryOut(ctx context.Context, log *log.Logger, store runtime.Store, user limits.User) error {
	lim, err := limits.New(store, runtime.WithObserver(&runtime.Observer{
		Acquired: func(context.Context, runtime.Event) { log.Print("admitted") },
		Shadowed: func(_ context.Context, e runtime.Event) {
			log.Printf("%s of %s would refuse", e.Limit, e.Entity)
		},
	}))
	if err != nil {
		return err
	}
	chat := lim.GPT4.With(runtime.Shadow(true))
	for range 2 {
		lease, err := chat.Acquire(ctx, user, limits.GPT4Cost{TPM: 9_000})
		if err != nil {
			return err // bad input, or the installation: no limit
		}
		if refused := lease.Shadowed(); refused != nil {
			log.Print(refused) // as Acquire would have returned it
		}
		if err := lease.Settle(ctx, limits.GPT4Cost{TPM: 8_000}); err != nil {
			// writes nothing where Shadowed is set
			return err
		}
	}
	return nil
}

// TestDocsShadowRuns: what docs/shadow.md shows of calls prints what it says.
func TestDocsShadowRuns(t *testing.T) {
	docs := read(t, "docs/shadow.md")
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := tryOut(t.Context(), log.New(&out, "", 0), limittest.Store(t),
			limits.User{ID: "123", Project: limits.Project{ID: "1"}}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(docs, "```\n"+out.String()+"```\n") {
			t.Errorf("docs/shadow.md does not show this:\n%s", &out)
		}
	})
}

// TestDocsShadowMetric: shadowed is an outcome of the metric that docs/shadow.md names.
func TestDocsShadowMetric(t *testing.T) {
	counters := &metrics.Counters{}
	lim, err := limits.New(limittest.Store(t), runtime.WithObserver(metrics.Observer(counters)))
	if err != nil {
		t.Fatal(err)
	}
	for _, tpm := range []int64{15_000, 15_001} {
		user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
		shadowed := lim.GPT4.With(runtime.Shadow(true))
		if _, err := shadowed.Acquire(t.Context(), user, limits.GPT4Cost{TPM: tpm}); err != nil {
			t.Fatal(err)
		}
	}
	counted := counters.Snapshot()
	shadowed, all := counted.Sum(metrics.Decisions, metrics.Outcome, "shadowed"), counted.Sum(metrics.Decisions)
	if shadowed != 1 || all != 2 ||
		!strings.Contains(unwrapped(t, "docs/shadow.md"), "outcome `shadowed` of `"+metrics.Decisions.Name+"`") {
		t.Errorf("%v of %v decisions are shadowed", shadowed, all)
	}
}

// TestDocsShadowGenerates: the resource in docs/shadow.md is one, whose revision stays, and turning shadow
// off is told as it says.
func TestDocsShadowGenerates(t *testing.T) {
	docs := read(t, "docs/shadow.md")
	old := filepath.Join(t.TempDir(), "old.yaml")
	t.Chdir(t.TempDir())
	enforced := strings.Replace(shadowed, "    shadow: true\n", "", 1)
	run := func(text string, args ...string) (int, string) {
		t.Helper()
		if err := os.WriteFile("limits.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		return cli.Program{Stdout: &out, Stderr: io.Discard, Now: time.Now}.Run(t.Context(), args), out.String()
	}
	if err := errors.Join(os.WriteFile(old, []byte(shadowed), 0o600),
		os.WriteFile("go.mod", []byte("module example.com/api\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{enforced, shadowed, enforced} {
		if code, out := run(text, "generate"); code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
	}
	if code, out := run(enforced, "breaking", "--against", old); code != 1 ||
		!strings.Contains(docs, "```\n"+out+"```\n") {
		t.Errorf("docs/shadow.md does not show this (exit code %d):\n%s", code, out)
	}
	if code, out := run(enforced+ended, "breaking", "--against", old); code != 0 {
		t.Errorf("with its reason: exit code %d:\n%s", code, out)
	}
}

// TestDocsShadowCosts: calls in shadow are billed as those that are enforced, denials included, and settles
// of what was let through cost nothing.
func TestDocsShadowCosts(t *testing.T) {
	bill := func(opts ...runtime.CallOption) (used memdynamo.Consumption) {
		synctest.Test(t, func(t *testing.T) {
			engine := memdynamo.New()
			lim, err := limits.New(limittest.StoreOn(t, engine), runtime.WithCallDefaults(opts...))
			if err != nil {
				t.Fatal(err)
			}
			user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
			for _, tpm := range []int64{9_000, 9_000, 9_000, 16_000, 1_000} {
				lease, err := lim.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{TPM: tpm})
				if err == nil {
					err = lease.Settle(t.Context(), limits.GPT4Cost{TPM: tpm / 2})
				}
				_, denied := errors.AsType[*limits.DeniedError](err)
				if _, exceeds := errors.AsType[*runtime.CostTooLargeError](err); err != nil && !denied && !exceeds {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble
			}
			used = engine.Consumed()
		})
		return used
	}
	want, got := bill(), bill(runtime.Shadow(true))
	if diff := cmp.Diff(want.Tables, got.Tables); diff != "" {
		t.Errorf("in shadow the engine bills otherwise (-without +in shadow):\n%s", diff)
	}
	if len(want.Tables) == 0 {
		t.Error("nothing was billed: this is no test")
	}
}
