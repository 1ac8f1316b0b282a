package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/conformance/named"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// explained are the parts of an explanation that this file compares.
type explained struct {
	Resource string
	Limits   []struct {
		Limit   string
		Origins []struct {
			At       string
			Capacity *int64 `json:"capacity_milli"`
			InForce  bool   `json:"in_force"`
		} `json:"levels"`
	}
	Buckets []struct {
		InForce bool `json:"in_force"`
	}
}

// origins returns the sources of a limit, the one in force in brackets, and its number in millitokens.
func (e explained) origins(limit string) (all []string, inForce int64) {
	for _, l := range e.Limits {
		if l.Limit != limit {
			continue
		}
		for _, from := range l.Origins {
			if at := from.At; from.InForce {
				all, inForce = append(all, "["+at+"]"), *from.Capacity
			} else {
				all = append(all, at)
			}
		}
	}
	return all, inForce
}

// TestExplainAll: explain shows every source of a name's limits, in the order of the library. A bucket that a
// call has given its numbers has those in force.
func TestExplainAll(t *testing.T) {
	sequential(t)
	s, table := newSession(t, templates)
	r := newRedis(t, templates)
	file := filepath.Join(t.TempDir(), "catalog.yaml")
	const entries = `model:
  gpt-5:
    entities: {key: {rpm: {capacity: 40, refill: 1}}}
    plans: {pro: {key: {tpm: {capacity: 700, refill: 1}}}}
  alias-of: {aliases: [gpt]}
`
	if err := os.WriteFile(file, []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]struct {
		store store.Store
		run   func(args ...string) (int, string, string)
	}{
		"table": {dynamo.New(s.client, table), func(args ...string) (int, string, string) {
			return sluice(t, start, slices.Concat(args, s.flags)...)
		}},
		"redis": {redisstore.New(r.client), func(args ...string) (int, string, string) {
			return command(t.Context(), slices.Concat(args, r.flags)...)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			lim, err := named.New(at.store)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = lim.Close(t.Context()) })
			run := func(line string) string {
				t.Helper()
				code, out, errs := at.run(strings.Fields(line)...)
				if code != 0 {
					t.Fatalf("%s: exit code %d\n%s%s", line, code, out, errs)
				}
				return out
			}
			explain := func(line string) (e explained) {
				t.Helper()
				if err := json.Unmarshal([]byte(run("override explain "+line+" --json")), &e); err != nil {
					t.Fatal(err)
				}
				return e
			}
			ctx, key := t.Context(), named.Key{ID: "1", Org: named.Org{ID: "7"}}
			run("catalog apply " + file)
			if err := lim.Entities().Put(ctx, key); err != nil {
				t.Fatal(err)
			}
			if out := run("override explain key-1 model/gpt-5"); !contains(out, "org-7 is on no plan") {
				t.Error(out)
			}
			run("plan set org-7 pro")
			of := lim.Config.Model
			if _, err := of.Plan(named.PlanPro, named.Key{}).Set(ctx,
				named.ModelLimits{TPM: &runtime.Rate{Capacity: 900, Refill: 1}}, ""); err != nil {
				t.Fatal(err)
			}
			origins, inForce := explain("key-1 model/gpt-5").origins("rpm")
			want := []string{"key-1", "all.key-1", "catalog.pro.key", "[catalog.key]", "pro.key", "schema.pro.key",
				"key", "schema"}
			if !slices.Equal(origins, want) || inForce != 40_000 {
				t.Errorf("rpm: %v, %d", origins, inForce)
			}
			if origins, inForce := explain("key-1 model/gpt-5").origins("tpm"); origins[2] != "[catalog.pro.key]" ||
				inForce != 700_000 {
				t.Errorf("tpm: %v, %d", origins, inForce)
			}
			if origins, inForce := explain("key-1 model/alias-of").origins("tpm"); origins[4] != "[pro.key]" ||
				inForce != 900_000 {
				t.Errorf("tpm of a name that restates nothing: %v, %d", origins, inForce)
			}
			if origins, inForce := explain("org-7 model").origins("month"); !slices.Equal(origins,
				[]string{"org-7", "pro.org", "[schema.pro.org]", "org", "schema"}) ||
				inForce != int64(50*money.Unit) {
				t.Errorf("month: %v, %d", origins, inForce)
			}
			const made = "the next acquire makes a full one"
			for line, want := range map[string]string{
				"key-1 model/gpt-5": made + " with the limits in force a call on kind key charges its org too: run " +
					"`sluice override explain org-<id> model`",
				"org-7 model": "org-7 on model: org-7 is on plan pro",
			} {
				if out := run("override explain " + line); !contains(out, want) {
					t.Errorf("%s: %swant %s", line, out, want)
				}
			}
			if out := run("override explain key-1 model/gpt-9"); strings.Contains(out, made) {
				t.Errorf("a name that the catalog lacks gets a bucket: %s", out)
			}
			if e := explain("org-7 model"); e.Resource != "model" {
				t.Errorf("resource %q", e.Resource)
			}
			gpt5, err := lim.Model.Named(ctx, "gpt-5")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := gpt5.Acquire(ctx, key, named.ModelCost{TPM: 1, Month: 1}); err != nil {
				t.Fatal(err)
			}
			for _, line := range []string{"key-1 model/gpt-5", "org-7 model"} {
				if e := explain(line); len(e.Buckets) != 1 || !e.Buckets[0].InForce {
					t.Errorf("%s: buckets %+v", line, e.Buckets)
				}
			}
		})
	}
}
