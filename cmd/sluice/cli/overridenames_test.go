package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/conformance/named"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// place is a store, and how to run a command on it.
type place struct {
	store store.Store
	run   func(args ...string) (int, string, string)
}

// placesOf returns a store of each sort for a schema.
func placesOf(t *testing.T, file string) map[string]place {
	t.Helper()
	s, table := newSession(t, file)
	onTable := func(args ...string) (int, string, string) {
		return sluice(t, start, slices.Concat(args, s.flags)...)
	}
	all := map[string]place{"table": {dynamo.New(s.client, table), onTable}}
	for name, r := range map[string]redises{"redis": newRedis(t, file), "cluster": newCluster(t, file)} {
		all[name] = place{redisstore.New(r.client), func(args ...string) (int, string, string) {
			return command(t.Context(), slices.Concat(args, r.flags)...)
		}}
	}
	return all
}

// TestOverrideNames is the life of overrides on all stores: of one name of a template, of all its names, and
// of a kind on a plan. Until they are deleted, calls have their numbers.
func TestOverrideNames(t *testing.T) {
	sequential(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "catalog.yaml")
	const names = `model:
  gpt-5: {aliases: [dated], entities: {key: {rpm: {capacity: 40, refill: 1}}}}
  old: {buckets: gpt-4}
  x: {}
`
	if err := os.WriteFile(file, []byte(names), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, at := range placesOf(t, templates) {
		run := func(line string, code int, wants ...string) string {
			t.Helper()
			got, out, errs := at.run(strings.Fields(line)...)
			for _, want := range wants {
				if !contains(out+errs, want) {
					t.Errorf("%s: %s: no %q in\n%s%s", name, line, want, out, errs)
				}
			}
			if got != code {
				t.Errorf("%s: %s: exit code %d, want %d\n%s%s", name, line, got, code, out, errs)
			}
			return out
		}
		run("catalog apply "+file, 0)
		run("entity put key-1 --parent org-7", 0)
		run("plan set org-7 pro", 0)
		run("override set key-1 model/gpt-5 rpm=70,refill=1 --reason ticket-1", 0,
			"key-1 on model/gpt-5: revision ", "rpm was 40 40 1 every 1d catalog.key", "now 70 70 1 every 1d key-1")
		run("override get key-1 model/dated", 0, "key-1 on model/gpt-5: revision ", "rpm 70 70 1 every 1d")
		run("override get key-1 model/gpt-5 --json", 0, `"at":"key-1","resource":"model/gpt-5"`)
		run("override list model/gpt-5", 0, "key-1 rpm 70")
		run("override explain key-1 model/gpt-5", 0, "rpm key-1 70 70 1 every 1d in force")
		run("override set key-1 model/old tpm=9,refill=1", 0, "key-1 on model/old: revision ",
			"tpm was 3,000 3,000 1 every 1d schema.pro.key", "now 9 9 1 every 1d key-1")
		run("override get key-1 model/old", 0, "key-1 on model/old: revision ")
		run("override set key-1 model tpm=800,refill=1", 0, "key-1 on model: revision ",
			"tpm was 3,000 3,000 1 every 1d schema.pro.key", "now 800")
		run("override set org-7 model month=77", 0, "month was 50 USD 50 USD", "schema.pro.org", "now 77 USD")
		run("override set pro.key model rpm=300,refill=1", 0, "pro.key on model: revision ",
			"rpm was 100 100 1 every 1d schema.pro.key", "now 300 300 1 every 1d pro.key")
		run("override set enterprise.org model month=600", 0, "month was 500 USD")
		run("override get pro.key model", 0, "rpm 300")
		run("override explain key-1 model/x", 0, "rpm key-1 -", "all.key-1 -",
			"pro.key 300 300 1 every 1d in force")
		run("audit key-1 --since 36500d", 0, "model/gpt-5 rpm - 70, 1 every 1d", "ticket-1",
			"gpt-4 tpm - 9, 1 every 1d", "model tpm - 800, 1 every 1d")
		run("audit --plans model --since 36500d", 0, "pro.key rpm - 300", "enterprise.org month - 600 USD")
		for _, test := range [][2]string{
			{"override set key model/gpt-5 rpm=5", "the catalog has the numbers of key for model/gpt-5: write them " +
				"into its file, and run `sluice catalog apply`"},
			{"override set org-7 model/gpt-5 month=5", "model/gpt-5 has no bucket for kind org, which has buckets " +
				"of all names: pass model"},
			{"override set key-1 model/gpt-5 month=5", "month of model/gpt-5 is no limit of kind key, but of org"},
			{"override set key-1 model/a#b rpm=5", "model: name \"a#b\" contains '#'"},
			{"override set key-1 model rpm=5 --refill", "--refill fills one bucket, and model has one for each name"},
			{"override set pro.key model rpm=5 --refill", "pro.key is a kind"},
			{"override set gold.key model rpm=5", "has no plan \"gold\""},
			{"override set pro.keys model rpm=5", "has no kind \"keys\": did you mean \"key\"?"},
			{"override set pro.key gpt-4 rpm=5", "gpt-4 has no plans: pass an entity or a kind"},
			{"override set key-1 voice/a day=5", "all names of voice have day together: override it on voice"},
			{"override set key-1 model/gpt-5 rpm=NaN", "capacity \"NaN\""},
			{"override set key-1 model/gpt-5 rpm=-5", "capacity \"-5\""},
		} {
			run(test[0], 2, test[1])
		}
		run("override set key-1 model/never rpm=5", 1, "the catalog does not have the name never")
		run("override get key-1 model/never", 0, "nothing is overridden")
		exported := run("override export", 0, "exported 6 overrides")
		all := filepath.Join(dir, name+".jsonl")
		if err := os.WriteFile(all, []byte(exported), 0o600); err != nil {
			t.Fatal(err)
		}
		run("override import "+all, 0, "wrote 0 overrides; 6 unchanged")
		changed := strings.NewReplacer(`:70000,`, `:71000,`, `:300000,`, `:301000,`, `:600000000000,`,
			`:601000000000,`).Replace(exported)
		if err := os.WriteFile(all, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		run("override import "+all+" --dry-run", 0, "would write 3 overrides; 3 unchanged")
		run("override import "+all, 0, "wrote 3 overrides; 3 unchanged")
		run("override get key-1 model/gpt-5", 0, "rpm 71")
		run("override get pro.key model", 0, "rpm 301")
		run("override get enterprise.org model", 0, "month 601 USD")
		holdsInCalls(t, name, at)
		for _, line := range []string{"key-1 model/gpt-5", "key-1 model/old", "key-1 model", "org-7 model",
			"pro.key model", "enterprise.org model"} {
			run("override delete "+line, 0, "revision ")
			run("override get "+line, 0, "nothing is overridden")
		}
		run("override export", 0, "exported 0 overrides")
	}
}

// holdsInCalls holds that a call has the numbers that commands have set.
func holdsInCalls(t *testing.T, name string, at place) {
	t.Helper()
	lim, err := named.New(at.store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lim.Close(t.Context()) })
	got := map[string]int64{}
	for _, of := range []string{"gpt-5", "old"} {
		model, err := lim.Model.Named(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		key := named.Key{ID: "1", Org: named.Org{ID: "7"}}
		lease, err := model.Acquire(t.Context(), key, named.ModelCost{TPM: 1, Month: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range lease.Balances() {
			got[of+" "+b.Limit] = b.Params.Capacity
		}
	}
	for what, want := range map[string]int64{
		"gpt-5 rpm": 71_000, "gpt-5 tpm": 800_000, "old rpm": 301_000, "old tpm": 9_000,
		"old month": int64(77 * money.Unit),
	} {
		if got[what] != want {
			t.Errorf("%s: %s is %d, want %d", name, what, got[what], want)
		}
	}
	own := lim.Config.Model.Named("dated").Entity(named.Key{ID: "1"})
	if rate, rev, err := own.Get(t.Context()); err != nil || rev == "" || rate.RPM.Capacity != 71 {
		t.Errorf("%s: the library reads %+v, %q, %v", name, rate, rev, err)
	}
}
