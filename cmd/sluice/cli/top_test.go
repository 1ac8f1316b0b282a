package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// ranking is a table with buckets of gpt-4.
type ranking struct {
	*testing.T

	client *dynamodb.Client
	table  string
}

func newRanking(t *testing.T) ranking {
	t.Helper()
	client := dynamotest.Client(t)
	return ranking{t, client, dynamotest.Table(t, client, operator.Table)}
}

// store puts an item.
func (r ranking) store(item codec.Item) {
	r.Helper()
	if _, err := r.client.PutItem(r.Context(), &dynamodb.PutItemInput{TableName: &r.table,
		Item: item}); err != nil {
		r.Fatal(err)
	}
}

// put stores a bucket with so many millitokens left at start.
func (r ranking) put(entity string, rpm, tpm int64) {
	r.Helper()
	r.putAt(start, entity, rpm, tpm)
}

// putAt is put of a bucket refilled until at.
func (r ranking) putAt(at time.Time, entity string, rpm, tpm int64) {
	r.Helper()
	b := limits.GPT4Bucket{
		Entity: entity, Refilled: at.UnixMilli(), Op: "op",
		RPM: bucket.Balance{Limit: bucket.Per(100, time.Minute), Tokens: rpm},
		TPM: bucket.Balance{Limit: bucket.Per(10_000, time.Minute).WithBurst(15_000), Tokens: tpm},
	}
	r.store(b.MarshalItem())
}

// items returns the table.
func (r ranking) items() []codec.Item {
	r.Helper()
	var all []codec.Item
	pages := dynamodb.NewScanPaginator(r.client, &dynamodb.ScanInput{TableName: &r.table})
	for pages.HasMorePages() {
		page, err := pages.NextPage(r.Context())
		if err != nil {
			r.Fatal(err)
		}
		all = append(all, page.Items...)
	}
	return all
}

// run runs a command that is to exit with code and to print these, in which TABLE and ENDPOINT stand for the
// test's.
func (r ranking) run(command string, code int, stdout, stderr string) {
	r.Helper()
	named := strings.NewReplacer("TABLE", r.table, "ENDPOINT", dynamotest.Endpoint(r))
	got, out, errs := sluice(r.T, start.Add(time.Second), append(strings.Fields(command), "--table", r.table)...)
	expect(r.T, got, out, errs, code, named.Replace(stdout), named.Replace(stderr))
}

// TestTop: by the left of the burst that is used now, debt first; ties by name. Nothing is written.
func TestTop(t *testing.T) {
	sequential(t)
	r := newRanking(t)
	r.put("user-1", 100_000, 15_000_000)
	r.put("user-2", 98_000, -1_000_000)
	r.put("user-3", -101_000, 15_000_000)
	r.put("user-4", 8_333, 7_333_334)
	r.put("project-7", 98_000, 7_333_334)
	before := r.items()
	r.run("top gpt-4", 0, `ENTITY     LIMIT                        USED  AVAILABLE   BURST  FULL IN
user-3     rpm    ####################  199%      -99.4     100  1m59.6s
user-2     tpm    ####################  105%     -833.4  15,000  1m35s
user-4     rpm    ##################--   90%        9.9     100  54.1s
project-7  tpm    ##########----------   50%      7,500  15,000  45s
user-4     tpm    ##########----------   50%      7,500  15,000  45s
project-7  rpm    --------------------    0%       99.6     100  200ms
user-2     rpm    --------------------    0%       99.6     100  200ms
user-1     rpm    --------------------    0%        100     100  now
user-1     tpm    --------------------    0%     15,000  15,000  now
user-3     tpm    --------------------    0%     15,000  15,000  now
5 buckets read in 0s, for 3 read units
`, "")
	r.run(
		"top gpt-4 --limit tpm --most 3",
		0,
		`ENTITY     LIMIT                        USED  AVAILABLE   BURST  FULL IN
user-2     tpm    ####################  105%     -833.4  15,000  1m35s
project-7  tpm    ##########----------   50%      7,500  15,000  45s
user-4     tpm    ##########----------   50%      7,500  15,000  45s
5 buckets read in 0s, for 3 read units
`,
		"",
	)
	r.run(
		"top gpt-4 --kind project",
		0,
		`ENTITY     LIMIT                        USED  AVAILABLE   BURST  FULL IN
project-7  tpm    ##########----------   50%      7,500  15,000  45s
project-7  rpm    --------------------    0%       99.6     100  200ms
1 bucket read in 0s, for 1 read units
`,
		"",
	)
	r.run("top gpt-4 --json --most 2", 0, `{
  "table": "TABLE",
  "resource": "gpt-4",
  "buckets": 5,
  "read_units": 3,
  "seconds": 0,
  "rows": [
    {
      "entity": "user-3",
      "limit": "rpm",
      "used": 1.99334,
      "available_milli": -99334,
      "burst_milli": 100000,
      "full_in_ms": 119600
    },
    {
      "entity": "user-2",
      "limit": "tpm",
      "used": 1.0555556,
      "available_milli": -833334,
      "burst_milli": 15000000,
      "full_in_ms": 95000
    }
  ]
}
`, "")
	if diff := cmp.Diff(before, r.items(), cmpopts.IgnoreUnexported(types.AttributeValueMemberS{},
		types.AttributeValueMemberN{})); diff != "" {
		t.Errorf("the table has changed:\n%s", diff)
	}
}

// TestTopOfMany reads more than a batch of items and more than a page of the index, keeps the first few, and
// says meanwhile how far it is.
func TestTopOfMany(t *testing.T) {
	sequential(t)
	engine := memdynamo.New()
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	r := ranking{t, engine.Client(), "rate_limits"}
	if _, err := operator.CreateTable(t.Context(), r.client, r.table); err != nil {
		t.Fatal(err)
	}
	type left struct {
		entity string
		left   int64
	}
	var want []left
	const many = 2000 // whose entries in the index have 567 bytes each, of 1 MB a page
	for i := range int64(many) {
		s := left{fmt.Sprintf("user-%0250d", i), i * 7919 % many * 10}
		r.putAt(start.Add(time.Hour), s.entity, s.left, 15_000_000) // which stays as it is while the clock goes on
		want = append(want, s)
	}
	slices.SortFunc(want, func(a, b left) int { return int(a.left - b.left) })

	engine.ResetConsumed()
	var out, errs strings.Builder
	now := start.Add(-time.Second)
	// It looks at the clock twice for each page.
	program := cli.Program{
		Stdout: &out,
		Stderr: &errs,
		Now:    func() time.Time { now = now.Add(time.Second / 2); return now },
	}
	args := []string{
		"top",
		"gpt-4",
		"--most",
		"50",
		"--limit",
		"rpm",
		"--json",
		"--table",
		r.table,
		"--endpoint",
		server.URL,
	}
	if code := program.Run(t.Context(), args); code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs.String())
	}
	var got struct {
		Buckets int     `json:"buckets"`
		Units   float64 `json:"read_units"`
		Seconds float64 `json:"seconds"`
		Rows    []struct {
			Entity string `json:"entity"`
		} `json:"rows"`
	}
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Buckets != many || got.Seconds != 21.5 || len(got.Rows) != 50 {
		t.Errorf("%d buckets, %v s, %d rows", got.Buckets, got.Seconds, len(got.Rows))
	}
	// The SDK loses a reply now and then (aws-sdk-go-v2 issue 2737), and the call is made again: it may be
	// billed for more.
	used := engine.Consumed()
	if billed := used.Total().Total(); got.Units != 1139 || billed.Read < got.Units || billed.Write != 0 ||
		used.Requests["Query"] < 2 {
		t.Errorf("%v read units, billed %+v", got.Units, used)
	}
	for i, row := range got.Rows {
		if row.Entity != want[i].entity {
			t.Fatalf("row %d is of %s, want %s", i, row.Entity, want[i].entity)
		}
	}
	if lines := strings.Split(errs.String(), "\n"); lines[0] != "100 buckets read, 1s" ||
		lines[1] != "600 buckets read, 6s" {
		t.Errorf("progress\n%s", errs.String())
	}
}

// TestTopOfNothing says what there is instead.
func TestTopOfNothing(t *testing.T) {
	sequential(t)
	r := newRanking(t)
	const none = " in table TABLE (ENDPOINT): none was used, all have expired, or the name, table or region " +
		"is wrong"
	r.run("top gpt-4", 1, "", "sluice: no bucket of gpt-4"+none+"\n")
	r.store(codec.Item{
		"PK": codec.S("ENTITY#user-1"), "SK": codec.S("#BUCKET#gpt-4#rpm"),
		"GSI2PK": codec.S("RESOURCE#gpt-4"), "GSI2SK": codec.S("BUCKET#user-1#rpm"),
	})
	r.run("top gpt-4 --json", 1, "", "sluice: no bucket of gpt-4"+none+
		"; there are 1 per-limit item, which `sluice migrate` or the next acquire converts into buckets\n")
	r.put("user-1", 0, 0)
	r.run("top gpt-4 --kind project", 1, "", "sluice: no bucket of gpt-4 for kind project"+none+"\n")
	r.run("top gpt-4 --limit rps", 1, "", "sluice: no bucket of gpt-4 has a limit rps: pass one of rpm, tpm\n")
	r.run("top gpt-4 --most 1", 0, `ENTITY  LIMIT                        USED  AVAILABLE   BURST  FULL IN
user-1  tpm    ###################-   98%      166.6  15,000  1m29s
1 bucket read in 0s, for 1 read units
`, "")
}

// TestTopMalformed: what is wrong with some buckets does not hide the others.
func TestTopMalformed(t *testing.T) {
	r := newRanking(t)
	r.put("user-1", 98_000, 15_000_000)
	wrong := ""
	for i := range 12 {
		b := limits.GPT4Bucket{Entity: fmt.Sprintf("user-2%02d", i)}
		item := b.MarshalItem()
		item["rf"] = codec.S("yesterday")
		r.store(item)
		if i < 10 {
			wrong += "sluice: the bucket of " + b.Entity +
				" on gpt-4 is malformed: attribute rf: of type S, want an integer of 64 bits; " +
				"fix or delete the item: a missing bucket is a full one\n"
		}
	}
	r.run("top gpt-4 --most 1", 1, `ENTITY  LIMIT                        USED  AVAILABLE  BURST  FULL IN
user-1  rpm    --------------------    0%       99.6    100  200ms
1 bucket read in 0s, for 7 read units
`, wrong+"sluice: and 2 more are malformed\n")
}

// TestTopArguments: what is wrong with the command line is said before anything is asked of a table.
func TestTopArguments(t *testing.T) {
	sequential(t)
	const nowhere = " --endpoint http://127.0.0.1:1"
	for command, want := range map[string]string{
		"top GPT%": `resource "GPT%" cannot be a name in limits.yaml: write it as there, ` +
			`such as gpt-4`,
		"top gpt-4 --limit=": `--limit "" cannot be the name of a limit: pass one such as rpm, or ` +
			`leave the flag out to list all`,
		"top gpt-4 --kind=": `--kind "" cannot be a kind: pass one of limits.yaml, or leave the ` +
			`flag out to list all`,
		"top gpt-4 --kind user-1": `--kind "user-1" cannot be a kind: pass one of limits.yaml, or leave ` +
			`the flag out to list all`,
		"top gpt-4 --most 0":    `--most 0 is out of range: pass 1 to 1000`,
		"top gpt-4 --most 1001": `--most 1001 is out of range: pass 1 to 1000`,
		"top gpt-4 --every 1s":  `--every is for --watch: pass both`,
		"top gpt-4 --watch --every 1": `--every: expected duration but got "1": time: missing unit in ` +
			`duration "1"`,
		"top gpt-4 --watch":              `--watch needs a terminal: leave it out if the output goes elsewhere`,
		"top gpt-4 --watch --json":       `--watch and --json exclude each other: pass one of them`,
		"top gpt-4 --watch --every 99ms": `--every 99ms is too short: pass 100ms or more`,
		"top":                            `expected "<resource>"`,
	} {
		var out, errs strings.Builder
		program := cli.Program{Stdout: &out, Stderr: &errs, Now: start.Local}
		code := program.Run(t.Context(), strings.Fields(command+nowhere))
		expect(t, code, out.String(), errs.String(), 2, "", "sluice: "+want+"; run `sluice top --help`\n")
	}
	code, out, errs := sluice(t, start, "top", "gpt-4", "--table", "cli-test-none")
	if code != 1 || out != "" || !hasFacts(errs, "sluice: table cli-test-none does not exist: ") {
		t.Errorf("top of a missing table: exit code %d\n%s%s", code, out, errs)
	}
}
