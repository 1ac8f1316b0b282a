package cli_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/conformance/named"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
)

// spent is what usage says of one resource: tokens by limit, and money.
type spent struct {
	Tokens map[string]int64
	Money  string
}

// TestUsageOfNames: what calls on names take counts for each name, that of an alias for its name, and once
// for all names together, in money where it is money. The buckets of a resource that became a name go on
// under the resource's name.
func TestUsageOfNames(t *testing.T) {
	sequential(t)
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, operator.Table)
	lim, err := named.New(dynamo.New(client, table))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lim.Close(context.WithoutCancel(t.Context())) })
	catalog := operator.NewCatalog(client, table, time.Now)
	for template, entries := range map[int][]store.Entry{
		0: {{Name: "gpt-5", Prices: []int64{2_000_000_000}}, {Name: "dated", Alias: "gpt-5"},
			{Name: "gpt-4", Buckets: "gpt-4"}},
		1: {{Name: "alto"}, {Name: "bass"}},
	} {
		for _, e := range entries {
			if _, err := catalog.Set(t.Context(), lim.Specs()[template], e); err != nil {
				t.Fatal(err)
			}
		}
	}
	key := named.Key{ID: "1", Org: named.Org{ID: "7"}}
	for _, name := range []string{"gpt-5", "dated", "gpt-4"} { // reserves 100 input tokens, and uses 60
		model, err := lim.Model.Named(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		lease, err := model.Acquire(t.Context(), key, named.ModelUsage{Input: 100}.Cost(model.Prices))
		if err != nil {
			t.Fatal(err)
		}
		used := named.ModelUsage{Input: 60}.Cost(model.Prices)
		if used.RPM = 1; lease.Settle(t.Context(), used) != nil {
			t.Fatal("not settled")
		}
	}
	for _, name := range []string{"alto", "bass"} {
		voice, err := lim.Voice.Named(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := voice.Acquire(t.Context(), key, named.VoiceCost{RPM: 2, Day: 3}); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, errs := sluice(t, time.Now(), "aggregate", "--once", "--table", table); code != 0 {
		t.Fatal(errs)
	}
	code, out, errs := sluice(t, time.Now(), "usage", "key-1", "--resource", "model/gpt-5", "--by", "day",
		"--plot", "--file", templates, "--table", table)
	if code != 0 || !strings.Contains(out, "model/gpt-5 tpm, tokens per day; | is what refills in a day: 1") {
		t.Errorf("a chart of a name: exit code %d\n%s%s", code, out, errs)
	}
	got := map[string]spent{}
	for _, entity := range []string{"key-1", "org-7"} {
		code, out, errs := sluice(t, time.Now(), "usage", entity, "--by", "month", "--since", "2d", "--json",
			"--file", templates, "--table", table)
		if code != 0 {
			t.Fatal(errs)
		}
		for line := range strings.Lines(out) {
			var u struct {
				Resource    string
				Millitokens map[string]int64
				Money       map[string]struct{ Currency, Consumed string }
			}
			if err := json.Unmarshal([]byte(line), &u); err != nil {
				t.Fatal(err)
			}
			s := spent{u.Millitokens, u.Money["month"].Consumed + u.Money["month"].Currency}
			got[entity+" "+u.Resource] = s
		}
	}
	want := map[string]spent{
		"key-1 model/gpt-5": {map[string]int64{"rpm": 2000, "tpm": 120_000}, ""},
		"key-1 gpt-4":       {map[string]int64{"rpm": 1000, "tpm": 60_000}, ""},
		"org-7 model":       {map[string]int64{}, "0.3USD"}, // 120 at 2/1k, and 60 at 1/1k
		"key-1 voice/alto":  {map[string]int64{"rpm": 2000}, ""},
		"key-1 voice/bass":  {map[string]int64{"rpm": 2000}, ""},
		"key-1 voice":       {map[string]int64{"day": 6000}, ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("usage differs (-want +got):\n%s", diff)
	}
}
