package cli_test

import (
	"context"
	"strings"
	"testing"
	"time"

	budgets "github.com/sluice-go/sluice/gen/testdata/golden/money/out"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/usage"
)

// budgetsFile is the schema of package budgets.
const budgetsFile = "../../../gen/testdata/golden/money/limits.yaml"

// ofMoney returns a limit of money, in a day.
func ofMoney(capacity money.Amount) bucket.Limit {
	return bucket.Limit{Capacity: int64(capacity), Burst: int64(capacity), Period: 86_400_000}
}

// broke runs commands against a table of package budgets. user-1 has 1.250000001 of 5 left, and user-2 is in
// debt.
func broke(t *testing.T) session {
	t.Helper()
	r := newRanking(t)
	for entity, left := range map[string]money.Amount{
		"user-1": 125*money.Cent + money.Nano, "user-2": -12_345 * money.Unit,
	} {
		b := budgets.SmallBucket{Entity: entity, Day: bucket.Balance{
			Limit: ofMoney(5 * money.Unit), Tokens: int64(left), Consumed: int64(5*money.Unit - left),
			Ends: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC).UnixMilli(),
		}}
		b.Refilled, b.Op, b.Version = start.UnixMilli(), "op", bucket.RevisionUnit
		b.TTL = start.Unix() + 48*3600
		r.store(b.MarshalItem())
	}
	return session{t, r.client, []string{"--table", r.table, "--file", budgetsFile}}
}

// TestPeekMoney: amounts are exact decimals with their currency, in tables and, as strings, in JSON.
func TestPeekMoney(t *testing.T) {
	sequential(t)
	s := broke(t)
	s.run("peek user-1 small", 0, `user-1 on small
  LIMIT        AVAILABLE  CAPACITY  BURST  REFILL         FULL IN
  day    1.250000001 USD     5 USD  5 USD  windows of 1d  resets 2026-03-02 00:00 UTC, in 12h
`, "")
	s.run("peek user-2 small", 0, `user-2 on small
  LIMIT    AVAILABLE  CAPACITY  BURST  REFILL         FULL IN
  day    -12,345 USD     5 USD  5 USD  windows of 1d  resets 2026-03-02 00:00 UTC, in 12h
`, "")
	s.run("peek user-1 small --json", 0, `{"entity":"user-1","resource":"small","per_limit":false,"limits":[`+
		`{"limit":"day","available_milli":1250000001,"capacity_milli":5000000000,"burst_milli":5000000000,`+
		`"refill_milli":0,"period_ms":86400000,"full_in_ms":43200000,"money":{"currency":"USD",`+
		`"available":"1.250000001","capacity":"5"},"resets":"2026-03-02T00:00:00Z"}]}
`, "")
	without := session{t, s.client, s.flags[:2]} // the table's; 1 USD is 1,000,000 tokens, as --help says
	without.run("peek user-1 small", 0, `user-1 on small
  LIMIT  AVAILABLE   CAPACITY      BURST  REFILL         FULL IN
  day    1,250,000  5,000,000  5,000,000  windows of 1d  resets 2026-03-02 00:00 UTC, in 12h
`, "")
	code, out, errs := sluice(t, start, append([]string{"top", "small"}, s.flags...)...)
	if code != 0 || errs != "" || !hasFacts(out, "1.250000001 USD  5 USD") || !hasFacts(out, "-12,345 USD  5 "+
		"USD") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// TestOverrideMoney: an override is written and shown in the currency, and mistakes have their cure.
func TestOverrideMoney(t *testing.T) {
	sequential(t)
	s := broke(t)
	for args, want := range map[string]string{
		"day=1e3":         `"day=1e3": capacity "1e3" has an exponent: write all digits, such as 1000`,
		"day=.5":          `"day=.5": capacity ".5" has no digit before its point: write 0 there, such as 0.5`,
		"day=0.1234567":   `"day=0.1234567": capacity "0.1234567" has 7 decimals, at most 6 are possible: round it`,
		"day=100_000_001": `"day=100_000_001": capacity 100000001 is above 100000000: lower it`,
		"day=0":           `"day=0": capacity 0 is not above 0: a limit that admits nothing is none, raise it`,
		"day=1,000": `"day=1,000": capacity "1,000" has a comma: write a point before the decimals, and '_' ` +
			`between thousands`,
		"day=1,000,burst=5": `"day=1,000,burst=5": capacity "1,000,burst=5" has a comma: write a point`,
		"day=5,burst=6": `"day=5,burst=6": day has windows, which are those of limits.yaml: there is no every, ` +
			`burst or refill to change, write day=5`,
		"day=5/1d": `"day=5/1d": day has windows, which are those of limits.yaml: there is no every, burst or ` +
			`refill to change, write day=5`,
	} {
		code, out, errs := sluice(t, start, append(strings.Fields("override set user-1 small "+
			""+args), s.flags...)...)
		if code != 2 || out != "" || !hasFacts(errs, "sluice: "+want) ||
			!hasFacts(errs, "; run `sluice override set --help`\n") {
			t.Errorf("%s: exit code %d\n%s%s", args, code, out, errs)
		}
	}
	code, out, errs := sluice(t, start, append(strings.Fields("override set user-1 small "+
		"day=1_800.25"), s.flags...)...)
	if code != 0 || errs != "" || !hasFacts(out, "day    was  5 USD  5 USD  windows of 1d  schema") ||
		!hasFacts(out, "now  1,800.25 USD  1,800.25 USD  windows of 1d  user-1") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	code, out, errs = sluice(t, start, append(strings.Fields("override get user-1 small --json"), s.flags...)...)
	if code != 0 || errs != "" || !hasFacts(out, `"capacity_milli":1800250000000`) {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// TestUsageMoney: usage has amounts by the schema, and --money shows these alone.
func TestUsageMoney(t *testing.T) {
	sequential(t)
	b := newBook(t)
	var err error
	b.aggregator, err = usage.New(usage.Config{
		Client: b.client, Table: b.table, Extract: budgets.ExtractDeltas,
		Poisoned: func(_ context.Context, p usage.Poison) error { return p.Err },
	})
	if err != nil {
		t.Fatal(err)
	}
	for day := range 3 {
		b.consume(start.AddDate(0, 0, -day), "user-1", "gpt-4", map[string]int64{
			"tpm": 5_000, "day": int64(12_345_678*money.Nano + money.Amount(day)*money.Unit), "rpm": 1_000,
		})
	}
	b.consume(start, "user-1", "tokens", map[string]int64{"tpm": 7_000})
	for line, want := range map[string]string{
		"--money --by month --since 2026-01-15": `START    RESOURCE              day  WRITES
2026-02  gpt-4     3.024691356 USD       2
2026-03  gpt-4     0.012345678 USD       1  still running
total    gpt-4     3.037037034 USD       3
`,
		"--money --csv --since 2026-03-01": `start,resource,day,writes,running
2026-03-01T00:00:00Z,gpt-4,0.012345678,1,true
`,
		"--money --plot --since 2026-03-01": `Consumption of user-1

gpt-4 day, USD per day
  2026-03-01  0.012345678 USD  ████████████████████████████████████████  still running
`,
		"--json --since 2026-03-01 --resource gpt-4": `{"entity":"user-1","resource":"gpt-4","by":"day",` +
			`"start":"2026-03-01T00:00:00Z","millitokens":{"rpm":1000,"tpm":5000},"money":{"day":{"currency":"USD",` +
			`"consumed":"0.012345678"}},"writes":1,"running":true}
`,
	} {
		code, out, errs := b.usage("user-1 " + line + " --file " + budgetsFile)
		expect(t, code, out, errs, 0, want, "")
	}
	code, out, errs := b.usage("user-1 --money")
	expect(t, code, out, errs, 2, "", "sluice: --money needs the schema, which names the limits of money, and "+
		"there is no limits.yaml here: pass --file; run `sluice usage --help`\n")
}

// TestLoadMoney: a cost is in the unit of its limit. A limit that two resources have in different units needs
// its resource.
func TestLoadMoney(t *testing.T) {
	file := schemaFile(t, `version: 1
owner: acme
revision: 1
go: {package: limits}
entities: {user: {}}
resources:
  chat:
    limits: {day: {capacity: 1_000, window: day}}
    entities: {user: {}}
  gpt-4:
    limits: {day: {money: USD, capacity: 500, window: day}}
    entities: {user: {}}
    on_unavailable: deny
`)
	load := func(args string) (code int, stdout, stderr string) {
		return loading(t.Context(), append(strings.Fields("--in-process --calls 1 --concurrency 1 --entities 1"),
			append(strings.Fields(args), "--file", file)...)...)
	}
	for _, flag := range []string{"--cost", "--settle"} {
		code, out, errs := load(flag + " day=100")
		expect(t, code, out, errs, 2, "", "sluice: "+flag+` "day=100": day of chat is in tokens, and that of `+
			"gpt-4 in USD: name the resource, such as chat:day=100; run `sluice load --help`\n")
	}
	for args, want := range map[string][]string{
		"--mix user:chat --cost day=100":                {" on chat, alone, day 100\n"},
		"--mix user:gpt-4 --cost day=0.5":               {" on gpt-4, alone, day 0.5 USD\n"},
		"--cost chat:day=100 --cost gpt-4:day=0.25..30": {"day 100\n", "day 0.25..30 USD\n"},
	} {
		code, _, errs := load(args)
		if code != 0 {
			t.Errorf("%s: exit code %d\n%s", args, code, errs)
		}
		for _, part := range want {
			if !strings.Contains(errs, part) {
				t.Errorf("%s: no %q in\n%s", args, part, errs)
			}
		}
	}
}
