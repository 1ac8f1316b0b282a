package cli_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// prepaid is a schema of the same owner as demo, with credits.
const prepaid = "../../../internal/test/conformance/prepaid/limits.yaml"

// catalogs is a schema of the same owner as demo, with templates.
const catalogs = "../../../gen/testdata/golden/templates/limits.yaml"

// planned is a schema of the same owner as demo, with plans.
const planned = "../../../internal/test/conformance/planned/limits.yaml"

// writing has command lines of each command that writes to a table or a Redis. ROWS, DEMO, PREPAID, SHARED
// and DIR are files.
var writing = map[string][]string{
	"entity put":      {"entity put user-123 --parent project-8 --file DEMO"},
	"entity calendar": {"entity calendar user-123 --since 2026-01-31 --file DEMO"},
	"entity delete":   {"entity delete user-123 --file DEMO"},
	"entity erase":    {"entity erase user-123 --file DEMO", "entity erase user-123 --dry-run --file DEMO"},
	"grant":           {"grant org-7 gpt-4 credits=5 --id invoice-1 --file PREPAID"},
	"override set":    {"override set user-123 gpt-4 rpm=70 --file DEMO"},
	"override delete": {"override delete user-123 gpt-4 --file DEMO"},
	"override import": {
		"override import ROWS --overwrite --file DEMO", "override import ROWS --overwrite --dry-run --file DEMO",
	},
	"catalog apply": {
		"catalog apply NAMES --file MODELS", "catalog apply NAMES --dry-run --file MODELS",
	},
	"plan set": {"plan set project-7 pro --file PLANS"},
	"plan move": {
		"plan move --from pro --to free --file PLANS", "plan move --from pro --to free --dry-run --file PLANS",
	},
	"reset": {"reset user-123 gpt-4 --file DEMO"},
	"load":  {"load --calls 1 --file DEMO"},
	"region sync": {
		"region sync --as eu-central-1 --once --file SHARED --snapshots file://DIR",
		"region sync --as eu-central-1 --dry-run --file SHARED --snapshots file://DIR",
		"region sync --as eu-central-1 --file SHARED --snapshots file://DIR",
	},
	"migrate": {
		"migrate --file DEMO", "migrate --cleanup --file DEMO", "migrate --dry-run --file DEMO",
		"migrate --verify --file DEMO",
	},
}

// harmless are the commands that another owner may run, and why.
var harmless = map[string][]string{
	"reads": {
		"peek", "top", "entity show", "entity children", "override get", "override list", "override explain",
		"override export", "plan show", "catalog list", "audit", "usage", "region status", "table check", "windows",
	},
	"writes no table": {
		"generate", "breaking", "schema", "init", "infra cloudformation", "infra terraform", "infra iam",
		"metrics cloudformation", "metrics collector", "metrics grafana", "metrics list", "metrics terraform",
		"dev", "version",
	},
	"writes what no owner decides": {"table create", "aggregate"},
	"runs another program":         {"serve"},
}

// onTableOnly are the commands of writing that a Redis does not have.
var onTableOnly = []string{"region sync", "migrate"}

// TestEveryCommandIsAboutOwners: a new command is in one of the lists.
func TestEveryCommandIsAboutOwners(t *testing.T) {
	commands, err := cli.CommandNames()
	if err != nil {
		t.Fatal(err)
	}
	names, listed := slices.Sorted(maps.Keys(commands)), slices.Collect(maps.Keys(writing))
	for _, some := range harmless {
		listed = append(listed, some...)
	}
	slices.Sort(listed)
	if !slices.Equal(names, listed) {
		t.Errorf("the commands are\n%q\nand these tests know\n%q", names, listed)
	}
}

// writers returns the command lines of writing, with their files.
func writers(t *testing.T, without ...string) (lines []string) {
	t.Helper()
	rows := filepath.Join(t.TempDir(), "rows.csv")
	text := "at,resource,revision,limit,capacity_milli,burst_milli,refill_milli,period_ms\n" +
		"user-123,gpt-4,,rpm,9000,9000,9000,60000\n"
	if err := os.WriteFile(rows, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	names := filepath.Join(t.TempDir(), "catalog.yaml")
	if err := os.WriteFile(names, []byte("model: {gpt-5: {}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := strings.NewReplacer("ROWS", rows, "DEMO", demo, "PREPAID", prepaid, "PLANS", planned,
		"MODELS", catalogs, "NAMES", names, "SHARED", shared, "DIR", t.TempDir())
	for _, name := range slices.Sorted(maps.Keys(writing)) {
		for _, line := range writing[name] {
			if !slices.Contains(without, name) {
				lines = append(lines, files.Replace(line))
			}
		}
	}
	return lines
}

// refuses runs a command line on another owner's store, which stays as it was.
func refuses(t *testing.T, line string, run func(args []string) (int, string, string), stored func() string) {
	t.Helper()
	before := stored()
	code, out, errs := run(strings.Fields(line))
	if code != 1 || out != "" || !strings.Contains(errs, "owner beta") || !strings.Contains(errs, "owner acme") {
		t.Errorf("%s: exit code %d\n%s%s", line, code, out, errs)
	}
	if after := stored(); after != before {
		t.Errorf("%s: it has changed\n%s\nto\n%s", line, before, after)
	}
}

// itsOwner runs a command line on a store of its own owner. It may fail for another reason.
func itsOwner(t *testing.T, line string, run func(args []string) (int, string, string)) {
	t.Helper()
	if _, _, errs := run(strings.Fields(line)); strings.Contains(errs, "belongs to owner") {
		t.Errorf("%s: %s", line, errs)
	}
}

// recordOwner has a table record an owner.
func (s session) recordOwner(owner string) {
	s.Helper()
	_, err := s.client.PutItem(s.Context(), &dynamodb.PutItemInput{TableName: &s.flags[1], Item: codec.Item{
		"PK": codec.S("SYSTEM#"), "SK": codec.S("#VERSION"), "owner": codec.S(owner), "layout": codec.N(1),
		"revision": codec.N(0),
	}})
	if err != nil {
		s.Fatal(err)
	}
}

// stored returns all items of the table as text.
func (s session) stored() string {
	s.Helper()
	out, err := s.client.Scan(s.Context(), &dynamodb.ScanInput{TableName: &s.flags[1]})
	if err != nil {
		s.Fatal(err)
	}
	var lines []string
	for _, item := range out.Items {
		line := ""
		for _, name := range slices.Sorted(maps.Keys(item)) {
			line += fmt.Sprintf("%s=%v ", name, item[name])
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// populate stores something for every command to change.
func populate(t *testing.T, members store.MemberStore) {
	t.Helper()
	member := store.Member{Entity: "user-123", Parent: "project-7", Cascade: true}
	if err := members.Put(t.Context(), member); err != nil {
		t.Fatal(err)
	}
}

// TestOtherOwnersTable: every command that writes fails on another owner's table, and changes nothing.
func TestOtherOwnersTable(t *testing.T) {
	sequential(t)
	m := newMigration(t, demo)
	acquire(m.session, m.flags[1], limits.GPT4Cost{RPM: 35})
	populate(t, operator.NewMembers(m.client, m.flags[1], fixed{start}.Now))
	run := func(args []string) (int, string, string) {
		return sluice(t, late, append(args, m.flags[:2]...)...)
	}
	m.recordOwner("beta")
	lines := writers(t)
	for _, line := range lines {
		refuses(t, line, run, m.stored)
	}
	m.recordOwner("acme")
	for _, line := range lines {
		if !strings.HasPrefix(line, "region sync") || strings.Contains(line, "--once") { // else it runs on
			itsOwner(t, line, run)
		}
	}
}

// TestOtherOwnersRedis is TestOtherOwnersTable for a prefix of a Redis.
func TestOtherOwnersRedis(t *testing.T) {
	sequential(t)
	r := newRedis(t, demo)
	r.acquire(limits.User{ID: "123", Project: limits.Project{ID: "7"}}, limits.GPT4Cost{RPM: 35})
	populate(t, redisstore.New(r.client).Members())
	run := func(args []string) (int, string, string) {
		return command(t.Context(), append(args, r.flags[:2]...)...)
	}
	record := func(owner string) {
		if err := r.client.Set(t.Context(), redisstore.DefaultPrefix+"#owner", owner, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	record("beta")
	lines := writers(t, onTableOnly...)
	for _, line := range lines {
		refuses(t, line, run, r.server.Dump)
	}
	record("acme")
	for _, line := range lines {
		itsOwner(t, line, run)
	}
}

// TestResetOfAnOwner: without limits.yaml, reset fills a bucket in a table that records no owner, or the one
// that is named.
func TestResetOfAnOwner(t *testing.T) {
	sequential(t)
	s, table := newSession(t, demo)
	s.flags = s.flags[:2]
	acquire(s, table, limits.GPT4Cost{RPM: 35})
	reset := func(flags ...string) (int, string) {
		code, _, errs := sluice(t, start, slices.Concat([]string{"reset", "user-123", "gpt-4"}, s.flags, flags)...)
		return code, errs
	}
	if code, errs := reset(); code != 0 {
		t.Errorf("without a record: exit code %d: %s", code, errs)
	}
	s.recordOwner("beta")
	for _, test := range []struct {
		flags []string
		code  int
		says  string
	}{
		{nil, 1, "owner beta"},
		{[]string{"--file", demo}, 1, "owner beta"},
		{[]string{"--owner", "gamma"}, 1, "owner gamma"},
		{[]string{"--owner="}, 2, "--owner is empty"},
		{[]string{"--owner", "beta"}, 0, ""},
		{[]string{"--owner", "beta", "--file", demo}, 0, ""},
	} {
		if code, errs := reset(test.flags...); code != test.code || !strings.Contains(errs, test.says) {
			t.Errorf("%q: exit code %d: %s", test.flags, code, errs)
		}
	}
}
