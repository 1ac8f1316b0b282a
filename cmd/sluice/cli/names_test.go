package cli_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/conformance/named"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// templates is the schema of package named.
const templates = "../../../internal/test/conformance/named/limits.yaml"

// readUnits are what a list of a table has cost.
var readUnits = regexp.MustCompile(`, for \d+ read units?`)

// namesStory charges buckets of two names and of all names, on a plan and by overrides, and runs commands on
// them. It returns what these print.
func namesStory(
	t *testing.T, backend store.Store, catalog store.Catalog, run func(args ...string) (int, string, string),
) string {
	t.Helper()
	lim, err := named.New(backend, runtime.WithClock(fixed{start}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lim.Close(context.WithoutCancel(t.Context())) })
	model := lim.Specs()[0]
	for _, e := range []store.Entry{
		{Name: "gpt-5"}, {Name: "dated", Alias: "gpt-5"}, {Name: "old", Buckets: "gpt-4"},
	} {
		if _, err := catalog.Set(t.Context(), model, e); err != nil {
			t.Fatal(err)
		}
	}
	key := named.Key{ID: "1", Org: named.Org{ID: "7"}}
	if err := lim.SetPlan(t.Context(), key.Org, named.PlanPro); err != nil {
		t.Fatal(err)
	}
	own := lim.Config.Model.Named("gpt-5").Entity(key)
	if _, err := own.Set(t.Context(), named.ModelLimits{TPM: &runtime.Rate{Capacity: 2000}}, ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gpt-5", "old"} {
		r, err := lim.Model.Named(t.Context(), name)
		if err == nil {
			_, err = r.Acquire(t.Context(), key, named.ModelCost{RPM: 4, TPM: 100, Month: 2 * money.Unit})
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var said strings.Builder
	for _, line := range []string{
		"peek key-1 model/gpt-5", "peek key-1 model/dated", "peek key-1 model/old", "peek org-7 model",
		"peek key-1 model/never", "top model/gpt-5", "top model --kind org",
		"reset key-1 model/gpt-5 --limit rpm", "reset org-7 model", "peek key-1 model/gpt-5", "peek org-7 model",
	} {
		code, stdout, stderr := run(strings.Fields(line)...)
		if code != 0 {
			t.Errorf("%s: exit code %d, %s", line, code, stderr)
		}
		said.WriteString("$ " + line + "\n" + readUnits.ReplaceAllString(stdout, "") + stderr)
	}
	return said.String()
}

// TestNamesOfTemplates: commands find the buckets of a name, of an alias, of a name with other buckets, and
// those of all names. They say the same of all stores.
func TestNamesOfTemplates(t *testing.T) {
	sequential(t)
	const want = `$ peek key-1 model/gpt-5
key-1 on model/gpt-5
  LIMIT  AVAILABLE  CAPACITY  BURST  REFILL          FULL IN
  rpm           96       100    100  1 every 1d      4d
  tpm        1,900     2,000  2,000  2,000 every 1d  1h12m
$ peek key-1 model/dated
key-1 on model/dated
  LIMIT  AVAILABLE  CAPACITY  BURST  REFILL          FULL IN
  rpm           96       100    100  1 every 1d      4d
  tpm        1,900     2,000  2,000  2,000 every 1d  1h12m
$ peek key-1 model/old
key-1 on model/old
  LIMIT  AVAILABLE  CAPACITY  BURST  REFILL      FULL IN
  rpm           96       100    100  1 every 1d  4d
  tpm        2,900     3,000  3,000  1 every 1d  100d
$ peek org-7 model
org-7 on model
  LIMIT  AVAILABLE  CAPACITY   BURST  REFILL          FULL IN
  month     46 USD    50 USD  50 USD  windows of 30d  resets 2026-04-01 00:00 UTC, in 30d 12h
$ peek key-1 model/never
key-1 on model/never: no bucket is stored: it was never used, it has expired, or a name is wrong; ` +
		`an unused bucket is full
$ top model/gpt-5
ENTITY  LIMIT                        USED  AVAILABLE  BURST  FULL IN
key-1   tpm    #-------------------    5%      1,900  2,000  1h12m
key-1   rpm    --------------------    4%         96    100  4d
1 bucket read in 0s
$ top model --kind org
ENTITY  LIMIT                        USED  AVAILABLE   BURST  FULL IN
org-7   month  #-------------------    8%     46 USD  50 USD  30d 12h
1 bucket read in 0s
$ reset key-1 model/gpt-5 --limit rpm
key-1 on model/gpt-5: filled
  LIMIT  BEFORE  AFTER  BURST
  rpm        96    100    100
$ reset org-7 model
org-7 on model: filled
  LIMIT  BEFORE   AFTER   BURST
  month  46 USD  50 USD  50 USD
$ peek key-1 model/gpt-5
key-1 on model/gpt-5
  LIMIT  AVAILABLE  CAPACITY  BURST  REFILL          FULL IN
  rpm          100       100    100  1 every 1d      now
  tpm        1,900     2,000  2,000  2,000 every 1d  1h12m
$ peek org-7 model
org-7 on model
  LIMIT  AVAILABLE  CAPACITY   BURST  REFILL          FULL IN
  month     50 USD    50 USD  50 USD  windows of 30d  resets 2026-04-01 00:00 UTC, in 30d 13h
`
	same := func(where, got string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s says something else:\n%s", where, diff)
		}
	}
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, operator.Table)
	same("the table", namesStory(t, dynamo.New(storetest.Dated(client, fixed{start}), table),
		operator.NewCatalog(client, table, fixed{start}.Now), func(args ...string) (int, string, string) {
			return sluice(t, start, append(args, "--table", table, "--file", templates)...)
		}))
	for where, r := range map[string]redises{
		"Redis": newRedis(t, templates), "a cluster": newCluster(t, templates),
	} {
		backend := redisstore.New(r.client)
		same(where, namesStory(t, backend, backend.Catalog(), func(args ...string) (int, string, string) {
			return command(t.Context(), append(args, r.flags...)...)
		}))
	}
}

// TestNamesElsewhere: the error for a kind without such a bucket says under which name it has one. Commands
// that grant take what they can add to.
func TestNamesElsewhere(t *testing.T) {
	sequential(t)
	r := newRedis(t, templates)
	for line, want := range map[string]string{
		"peek key-1 model": "model has no bucket for kind key, which has a bucket for each name: pass model/NAME",
		"peek org-7 model/gpt-5": "model/gpt-5 has no bucket for kind org, which has buckets of all names: pass " +
			"model",
		"peek org-7 job": "job has no bucket for kind org",
		"peek key-1 model/a#b": "name \"a#b\" of model contains '#', which separates the parts of a key: " +
			"replace or encode it",
		"grant key-1 model rpm=5 --id 1": "model has no bucket for kind key, which has a bucket for each name: " +
			"pass model/NAME",
		"grant key-1 model/gpt-5 rpm=5 --id 1": "model/gpt-5: grant of rpm \"5\" has no window",
	} {
		r.run(line, 2, "", "sluice: "+want+"; run `sluice "+strings.Fields(line)[0]+" --help`\n")
	}
}

// TestGrantOfAllNames: a grant adds to the bucket of all names of a template, once for each id.
func TestGrantOfAllNames(t *testing.T) {
	sequential(t)
	for name, at := range placesOf(t, templates) {
		for _, test := range []struct {
			line string
			code int
			want string
		}{
			{"grant org-7 model month=5.50 --id a", 0, "month 5.5 USD 10.5 USD"},
			{"grant org-7 model month=5.50 --id a", 0, "month 5.5 USD 10.5 USD"},
			{"grant org-7 model month=6 --id a", 1, "differs from the 5.5 USD that this id has granted"},
			{"grant org-7 model mnth=6 --id c", 2, `sluice: model has no limit "mnth": did you mean "month"?`},
			{"grant key-1 voice/never rps=6 --id c", 2, `sluice: voice/never has no limit "rps": did you mean "rpm"?`},
			{"grant key-1 voice day=3 --id a", 0, "day 3 23"},
			{"grant key-1 voice/never rpm=3 --id b", 2, "has no window to add to"},
			{"peek org-7 model", 0, "month 10.5 USD 5 USD"},
			{"peek key-1 voice", 0, "day 23 20"},
		} {
			code, out, errs := at.run(strings.Fields(test.line)...)
			if code != test.code || !contains(out+errs, test.want) {
				t.Errorf("%s: %s: exit code %d\n%s%s", name, test.line, code, out, errs)
			}
		}
	}
}
