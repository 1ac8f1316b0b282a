package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
)

// late is when migrations are tested: TTL, which they need, deletes nothing of then.
var late = time.Date(2100, 3, 1, 12, 0, 0, 0, time.UTC)

// migration is a session on a table with TTL.
type migration struct{ session }

func newMigration(t *testing.T, file string) migration {
	t.Helper()
	s, table := newSession(t, file)
	_, err := s.client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: &table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"),
			Enabled: aws.Bool(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return migration{s}
}

// put stores the per-limit item of a limit, of which half is left.
func (m migration) put(entity, resource, limit string, l bucket.Limit) {
	m.Helper()
	m.putAt(entity, resource, limit, l, late)
}

// putAt is put of an item last refilled at an instant.
func (m migration) putAt(entity, resource, limit string, l bucket.Limit, at time.Time) {
	m.Helper()
	n := codec.N
	_, err := m.client.PutItem(m.Context(), &dynamodb.PutItemInput{TableName: &m.flags[1], Item: codec.Item{
		"PK": codec.S("ENTITY#" + entity), "SK": codec.S("#BUCKET#" + resource + "#" + limit),
		perlimit.Tokens: n(l.Burst / 2), perlimit.Consumed: n(1_234_000), perlimit.Refilled: n(at.UnixMilli()),
		perlimit.Capacity: n(l.Capacity), perlimit.Burst: n(l.Burst), perlimit.Refill: n(l.Refill),
		perlimit.Period: n(l.Period),
	}})
	if err != nil {
		m.Fatal(err)
	}
}

// run runs `sluice migrate`, on one segment, as others read each other's checkpoints or do not, in whose
// output TABLE and FILE stand for the session's.
func (m migration) run(flags string, code int, stdout, stderr string) {
	m.Helper()
	named := strings.NewReplacer("TABLE", m.flags[1], "FILE", m.flags[3], "ENDPOINT", dynamotest.Endpoint(m))
	got, out, errs := sluice(m.T, late, append(append([]string{"migrate", "--segments=1"},
		strings.Fields(flags)...), m.flags...)...)
	stdout = named.Replace(stdout)
	if dynamotest.OnLocal(m) { // which bills transactions otherwise than AWS
		out, stdout = writeUnits.ReplaceAllString(out, ""), writeUnits.ReplaceAllString(stdout, "")
	}
	byFacts := func(text string) string { return malformed.ReplaceAllStringFunc(text, factsOf) }
	expect(m.T, got, byFacts(out), errs, code, byFacts(stdout), named.Replace(stderr))
}

// malformed matches what a report quotes of an error about an item, which another package words.
var malformed = regexp.MustCompile(` is malformed[;:] .*`)

func factsOf(text string) string { return " is malformed: " + strings.Join(facts(text), " ") }

var writeUnits = regexp.MustCompile(`(?m)^  write units .*|"read_units": .*`)

// converted is the end of a report after which all buckets are converted.
const converted = "next: `sluice migrate --verify`; until `sluice migrate --cleanup` says that no item is " +
	"left, Check fails in programs " +
	"without migrating.New\n"

// TestMigrate goes through the steps.
func TestMigrate(t *testing.T) {
	sequential(t)
	m := newMigration(t, schemaFile(t, tree))
	m.run("--dry-run", 0, `table TABLE: examined
  buckets to be created   0
  items to mark           0
  write units it takes    0
  items read              0  of any kind
  took                   0s
`, "")
	rpm, tpm := bucket.Per(100, time.Minute), bucket.Per(10_000, time.Minute).WithBurst(15_000)
	for i := range 3 {
		m.put(fmt.Sprint("user-", i), "gpt-4", "rpm", rpm)
		m.put(fmt.Sprint("user-", i), "gpt-4", "tpm", tpm)
	}
	for i := range 12 {
		m.put(fmt.Sprintf("user-1%02d", i), "gpt-4", "rpm",
			bucket.Limit{Capacity: 200_000, Burst: 300_000, Refill: 150_000, Period: 30_000})
		m.put(fmt.Sprintf("user-1%02d", i), "gpt-4", "tpm", bucket.Per(20_000, time.Minute))
	}
	m.put("user-100", "gpt-4", "tpm", bucket.Limit{Capacity: 200_001, Burst: 300_000, Refill: 150_000,
		Period: 30_000})
	m.put("user-101", "gpt-4", "rpm", bucket.Per(5, time.Minute))
	m.put("user-1", "gpt-4", "rpd", rpm)
	m.put("org-1", "gpt-4", "rpm", rpm)
	m.put("user-1", "gpt-3", "rpm", rpm)

	const left = "1 item of limit rpd on gpt-4, which the schema does not have: add it, or put it in " +
		"`removed:`\n" +
		"1 item of resource gpt-3, which the schema does not have: add it, or delete them\n" +
		"1 item of org on gpt-4, which gives kind org no bucket: add it to the resource's entities, or delete " +
		"them\n"
	commands := "  none for user-100 on gpt-4: limit tpm: 200.001 is not a whole number of tokens\n" +
		"  none for user-101 on gpt-4: limit rpm: burst 5 is below the 10 that a call takes (per_call), so that " +
		"none could be served: raise it\n"
	for i := 2; i < 10; i++ {
		commands += fmt.Sprintf(
			"  sluice override set user-1%02d gpt-4 rpm=200/30s,burst=300,refill=150 tpm=20000 "+
				"--endpoint ENDPOINT --table TABLE --file FILE\n", i)
	}
	commands += "  and 2 more: --json has all; if many are the same, override the kind instead, or change " +
		"limits.yaml\n"
	m.run("--dry-run --write-units 3", 0, `table TABLE: examined
  buckets to be created   15
  items to mark           30
  write units it takes   120  40s at the given --write-units
  items read              33  of any kind
  took                    0s
`+"12 buckets would get other limits than their items have. To keep those of the items, run this before "+
		"programs with migrating.New or `sluice migrate` convert them:\n"+commands+left+
		"next: deploy programs with migrating.New, then `sluice migrate`\n", "")
	m.run("--write-units 0", 0, `table TABLE: migrated
  converted to buckets   15
  items marked           30
  items read             33  of any kind
  write units           123
  took                   0s
12 buckets got other limits than their items had. To give them those of the items, run:
`+commands+left+converted, "")
	const differing = "12 buckets with other limits than the marked items, including those overridden since, " +
		"until their next call. To give them the limits of the items, run:\n"
	m.run("--verify", 1, `table TABLE: verified
  buckets confirmed  15
  items marked       30
  items read         49  of any kind
  took               0s
  RESOURCE  LIMIT  CONSUMED  INTO BUCKETS  EXPIRED  SINCE
  gpt-4     rpm      18,510        18,510        0      0
  gpt-4     tpm      18,510        18,510        0      0
`+differing+commands+left, "sluice: 3 items left that is not converted\n")

	for _, key := range []codec.Item{
		{"PK": codec.S("ENTITY#user-1"), "SK": codec.S("#BUCKET#gpt-4#rpd")},
		{"PK": codec.S("ENTITY#org-1"), "SK": codec.S("#BUCKET#gpt-4#rpm")},
		{"PK": codec.S("ENTITY#user-1"), "SK": codec.S("#BUCKET#gpt-3#rpm")},
		perlimit.BucketKey("user-2", "gpt-4"), // it expires
	} {
		if _, err := m.client.DeleteItem(t.Context(),
			&dynamodb.DeleteItemInput{TableName: &m.flags[1], Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	m.run("--verify --resource gpt-4", 0, `table TABLE, resource gpt-4: verified
  buckets confirmed     14
  items marked          30
  of them in no bucket   2  it was full and has expired, or their limits are in `+
		"`removed:`: they no longer count"+`
  items read            45  of any kind
  took                  0s
  RESOURCE  LIMIT  CONSUMED  INTO BUCKETS  EXPIRED  SINCE
  gpt-4     rpm      18,510        17,276    1,234      0
  gpt-4     tpm      18,510        17,276    1,234      0
`+differing+commands+"nothing is wrong; next: `sluice migrate --cleanup`\n", "")
	m.run("--cleanup --write-units 0", 0, `table TABLE: cleaned up
  items deleted  28
  items kept      2  their bucket has expired
  items read     45  of any kind
  write units    31
  took           0s
items whose bucket has expired are the last record of consumption; they no longer count. `+
		"Programs need migrating.New until they are deleted: run `sluice migrate --cleanup --expired`, "+
		"or this again once the buckets are in use\n", "")
	m.run("--cleanup --expired", 0, `table TABLE: cleaned up
  items deleted   2
  items read     17  of any kind
  write units     5
  took           0s
no per-limit item is left: programs may use dynamo.New again
`, "")
}

// TestMigrateJSON: a report for programs has all there is.
func TestMigrateJSON(t *testing.T) {
	sequential(t)
	m := newMigration(t, schemaFile(t, tree))
	for i := range 12 {
		m.put(fmt.Sprint("user-1", i), "gpt-4", "rpm", bucket.Per(200, time.Minute))
	}
	m.put("user-1", "gpt-4", "rpd", bucket.Per(200, time.Minute))
	code, out, errs := sluice(t, late, append([]string{"migrate", "--json", "--write-units=0"}, m.flags...)...)
	var report struct {
		Differing []struct{ Entity, Override string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 || errs != "" {
		t.Fatal(err, code, errs, out)
	}
	if got := report.Differing; len(got) != 12 ||
		!strings.HasPrefix(got[11].Override, "sluice override set "+got[11].Entity+" gpt-4 rpm=200 --") {
		t.Errorf("%+v", got)
	}
	m.put("user-2", "gpt-4", "rpm", bucket.Per(100, time.Minute))
	m.run("--json --dry-run", 0, `{
  "job": "dry-run",
  "table": "TABLE",
  "complete": true,
  "resumed": false,
  "missed": 0,
  "items_read": 27,
  "read_units": 1,
  "write_units": 0,
  "seconds": 0,
  "carried": {
    "buckets": 1,
    "items": 1,
    "units": 6,
    "seconds": 0.06,
    "buckets_there": 0
  },
  "left": [
    {
      "resource": "gpt-4",
      "limit": "rpd",
      "why": "no such limit in the schema",
      "items": 1
    }
  ]
}
`, "")
}

// TestMigrateAhead: a dry run names items of a wrong clock or unit, the first of them.
func TestMigrateAhead(t *testing.T) {
	m := newMigration(t, schemaFile(t, tree))
	rpm := bucket.Per(100, time.Minute)
	ahead := []time.Duration{time.Minute + time.Millisecond, 26*time.Hour + 5*time.Minute, 48 * time.Hour}
	for i := range 12 {
		d := 1000 * 24 * time.Hour
		if i < len(ahead) {
			d = ahead[i]
		}
		m.putAt(fmt.Sprintf("user-1%02d", i), "gpt-4", "rpm", rpm, late.Add(d))
	}
	list := "  user-100 on gpt-4, limit rpm: 1m1s ahead\n  user-101 on gpt-4, limit rpm: 26h5m ahead\n  " +
		"user-102 on gpt-4, limit rpm: 2 days ahead\n"
	for i := 3; i < 10; i++ {
		list += fmt.Sprintf("  user-1%02d on gpt-4, limit rpm: 1,000 days ahead\n", i)
	}
	m.run("--dry-run --write-units 0", 0, `table TABLE: examined
  buckets to be created  12
  items to mark          12
  write units it takes   72
  items read             12  of any kind
  took                   0s
`+"12 items last refilled more than a minute ahead of this machine's clock: "+
		"the unit is not ms, or a clock was ahead. Correct last_refill_ms before programs with "+
		"migrating.New or `sluice migrate` convert them, or their buckets will be in debt until then:\n"+list+
		"  and 2 more: --json has all\nnext: deploy programs with migrating.New, then `sluice migrate`\n", "")
}

// TestMigrateQuotes: the commands go into a shell as they are.
func TestMigrateQuotes(t *testing.T) {
	text, err := os.ReadFile(schemaFile(t, tree))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bob's $(limits) & more.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	m := newMigration(t, file)
	const entity = "user-a b;c"
	m.put(entity, "gpt-4", "rpm", bucket.Per(200, time.Minute))
	_, out, errs := sluice(t, late, append([]string{"migrate", "--dry-run", "--json"}, m.flags...)...)
	var report struct{ Differing []struct{ Override string } }
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Differing) != 1 {
		t.Fatal(err, out, errs)
	}
	command := report.Differing[0].Override
	if want := `sluice override set 'user-a b;c' gpt-4 rpm=200 --endpoint ` + dynamotest.Endpoint(t) +
		" --table " + m.flags[1] + " --file '" +
		strings.ReplaceAll(file, "'", `'\''`) + "'"; command != want {
		t.Errorf("got %s, want %s", command, want)
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell here")
	}
	words, err := exec.CommandContext(t.Context(), shell, "-c", `sluice() { printf '%s\n' "$@"; }; `+
		command).Output()
	want := strings.Join([]string{"override", "set", entity, "gpt-4", "rpm=200", "--endpoint",
		dynamotest.Endpoint(t), "--table", m.flags[1], "--file", file, ""}, "\n")
	if err != nil || string(words) != want {
		t.Errorf("%v: the shell makes of it\n%s", err, words)
	}
}

// TestMigrateWrong: what is wrong with single buckets is named, and the exit code is 1.
func TestMigrateWrong(t *testing.T) {
	sequential(t)
	m := newMigration(t, schemaFile(t, tree))
	rpm, tpm := bucket.Per(100, time.Minute), bucket.Per(10_000, time.Minute).WithBurst(15_000)
	m.put("user-1", "gpt-4", "rpm", rpm)
	m.run("--write-units 0", 0, `table TABLE: migrated
  converted to buckets   1
  items marked           1
  items read             1  of any kind
  write units            9
  took                  0s
`+converted, "")
	m.put("user-1", "gpt-4", "tpm", tpm) // by somebody who was to have stopped
	m.put("user-2", "gpt-4", "rpm", bucket.Limit{Capacity: 1, Burst: 1, Refill: 1})
	const found = "1 bucket made full beside items that were not converted: by a program without " +
		"migrating.New, or before the limit was in the schema. Deploy programs with migrating.New. " +
		"Then delete either the items, or the bucket, which is then made from them:" + `
  user-1 on gpt-4
1 bucket wrong:
  user-2 on gpt-4: the per-limit item ENTITY#user-2 / #BUCKET#gpt-4#rpm is malformed; fix or ` +
		`delete it: attribute refill_period_ms: 0, want a positive number
`
	m.run("", 1, `table TABLE: migrated
  converted to buckets   0
  items marked           0
  items read             5  of any kind
  write units            3
  took                  0s
`+found, "sluice: 1 bucket wrong, 1 bucket beside items\n")
	m.run("--verify", 1, `table TABLE: verified
  buckets confirmed   1
  items marked        1
  items read          5  of any kind
  took               0s
  RESOURCE  LIMIT  CONSUMED  INTO BUCKETS  EXPIRED  SINCE
  gpt-4     rpm       1,234         1,234        0      0
`+strings.Replace(found, "per-limit item ENTITY#user-2 / #BUCKET#gpt-4#rpm", "item of limit rpm", 1),
		"sluice: 1 bucket wrong, 1 bucket beside items\n")
	if _, err := m.client.DeleteItem(t.Context(),
		&dynamodb.DeleteItemInput{TableName: &m.flags[1], Key: codec.Item{
			"PK": codec.S("ENTITY#user-2"), "SK": codec.S("#BUCKET#gpt-4#rpm"),
		}}); err != nil {
		t.Fatal(err)
	}
	m.run("--cleanup", 1, `table TABLE: cleaned up
  items deleted   1
  items read      4  of any kind
  write units     4
  took           0s
1 item of limit tpm on gpt-4 not converted: run `+
		"`sluice migrate`, which converts them or says what is wrong\n",
		"sluice: 1 item left that is not converted\n")
}

// TestMigrateNothing: a table without such items is left as it is.
func TestMigrateNothing(t *testing.T) {
	m := newMigration(t, schemaFile(t, tree))
	m.run("", 0, `table TABLE: migrated
  converted to buckets   0
  items marked           0
  items read             0  of any kind
  write units            3
  took                  0s
there was nothing to convert; after an earlier run, next: `+"`sluice migrate --verify`\n", "")
	got, err := m.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &m.flags[1]})
	if err != nil || len(got.Items) != 0 {
		t.Errorf("%v, %v", err, got.Items)
	}
}

// TestMigrateFails: a run that does not come to its end reports how far it came, and how to go on.
func TestMigrateFails(t *testing.T) {
	m := newMigration(t, schemaFile(t, tree))
	code, out, errs := sluice(t, late, "migrate", "--table", "cli-test-none", "--file", m.flags[3])
	if code != 1 || out != "" || !hasFacts(errs, "sluice: table cli-test-none does not exist: ") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}

	m.put("user-1", "gpt-4", "rpm", bucket.Per(100, time.Minute))
	for flags, next := range map[string]string{"": "it resumes at the same place",
		"--dry-run": "it starts again"} {
		ctx, interrupt := context.WithCancel(t.Context())
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".Scan") {
				interrupt()
				w.WriteHeader(http.StatusInternalServerError) // which is tried again, if anybody is there
				return
			}
			pass(t, w, r)
		}))
		t.Cleanup(server.Close)
		var out, errs strings.Builder
		p := cli.Program{Stdout: &out, Stderr: &errs, Now: func() time.Time { return late }}
		code := p.Run(ctx, append(append([]string{"migrate", "--endpoint", server.URL}, strings.Fields(flags)...),
			m.flags...))
		first, _, _ := strings.Cut(out.String(), "\n")
		if code != 1 || !strings.HasSuffix(first, ", incomplete") ||
			strings.Contains(out.String(), "next:") {
			t.Errorf("exit code %d\n%s", code, out.String())
		}
		if want := "sluice: interrupted; run the same command again: " + next + "\n"; !sameFacts(
			errs.String(),
			want,
		) {
			t.Errorf("got %s, want %s", errs.String(), want)
		}
	}
}

// pass has the tests' engine answer.
func pass(t *testing.T, w http.ResponseWriter, r *http.Request) {
	t.Helper()
	to, err := http.NewRequestWithContext(r.Context(), r.Method, dynamotest.Endpoint(t), r.Body)
	if err != nil {
		t.Error(err)
		return
	}
	to.Header = r.Header
	reply, err := http.DefaultClient.Do(to)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = reply.Body.Close() }()
	w.WriteHeader(reply.StatusCode)
	_, _ = io.Copy(w, reply.Body)
}

// TestMigrateBadArguments: nothing is asked of the table.
func TestMigrateBadArguments(t *testing.T) {
	sequential(t)
	var sent atomic.Int64
	table := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent.Add(1)
		w.WriteHeader(http.StatusBadRequest)
	}))
	t.Cleanup(table.Close)
	file := schemaFile(t, tree)
	for flags, want := range map[string]string{
		"--dry-run --cleanup": "--dry-run and --cleanup exclude each other: run one after the other",
		"--verify --cleanup --dry-run": "--dry-run and --verify and --cleanup exclude each other: run one after " +
			"the other",
		"--expired":          "--expired is for --cleanup: pass both",
		"--verify --expired": "--expired is for --cleanup: pass both",
		"--segments 0":       "--segments 0 is out of range: pass 1 to 100",
		"--segments 101":     "--segments 101 is out of range: pass 1 to 100",
		"--write-units=-1":   "--write-units -1 is negative: pass 1 or more, or 0 for no bound",
		"--resource=": "--resource is empty: pass its name in limits.yaml, or leave the flag " +
			"out for all",
		"--resource gpt4": file + ` has no resource "gpt4": did you mean "gpt-4"?`,
		"--cleanup all":   "unexpected argument all",
	} {
		var out, errs strings.Builder
		p := cli.Program{Stdout: &out, Stderr: &errs, Now: start.Local}
		code := p.Run(t.Context(), append(append([]string{"migrate"}, strings.Fields(flags)...), "--endpoint",
			table.URL, "--file", file))
		expect(t, code, out.String(), errs.String(), 2, "", "sluice: "+want+"; run `sluice migrate --help`\n")
	}
	if n := sent.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
