package cli_test

import (
	"github.com/sluice-go/sluice/internal/test/storetest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
)

// ofWholeTables are the commands with a --table that are not about a namespace of it.
var ofWholeTables = []string{
	"table create", "table check", "migrate", "infra cloudformation", "infra terraform", "dev",
}

// TestEveryCommandHasNamespaces: a new command that works on a table has the flag, or is in the list.
func TestEveryCommandHasNamespaces(t *testing.T) {
	commands, err := cli.CommandNames()
	if err != nil {
		t.Fatal(err)
	}
	for name, flags := range commands {
		want := slices.Contains(flags, "table") && !slices.Contains(ofWholeTables, name)
		if got := slices.Contains(flags, "namespace"); got != want {
			t.Errorf("%s: has --namespace %t, want %t", name, got, want)
		}
	}
}

// story is a command line of each command that works in a namespace. ROWS is a file of export.
var story = []string{
	"peek user-123 gpt-4", "top gpt-4 --json",
	"entity put user-123 --parent project-7", "entity put user-9 --parent project-7",
	"entity children project-7", "entity show user-123", "entity delete user-9", "entity children project-7",
	"override import ROWS --dry-run", "override set user-123 gpt-4 rpm=70", "override set user gpt-4 rpm=80",
	"override list gpt-4", "override export", "override explain user-123 gpt-4",
	"override get user gpt-4", "override delete user gpt-4", "override list gpt-4", "reset user-123 gpt-4",
	"aggregate --once", "usage user-123 --csv",
	"entity erase user-123 --dry-run", "entity erase user-123", "peek user-123 gpt-4", "usage user-123",
}

// runStory runs the story on a table, and returns what the commands printed, without what differs from run to
// run.
func runStory(t *testing.T, s session, table string, opts ...dynamo.Option) []string {
	t.Helper()
	rows := filepath.Join(t.TempDir(), "rows.jsonl")
	text := `{"at":"user","resource":"gpt-4","revision":"none","limits":{"rpm":` +
		`{"capacity_milli":9000,"burst_milli":9000,"refill_milli":9000,"period_ms":60000}}}`
	if err := os.WriteFile(rows, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lim, err := limits.New(dynamo.New(storetest.Dated(s.client, fixed{start}), table, opts...),
		runtime.WithClock(fixed{start}))
	if err != nil {
		t.Fatal(err)
	}
	user := limits.User{ID: "123", Project: limits.Project{ID: "7"}}
	if _, err := lim.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{TPM: 1_000}); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, line := range story {
		args := strings.Fields(strings.ReplaceAll(line, "ROWS", rows))
		flags := s.flags
		if slices.Contains([]string{"aggregate", "usage", "top", "peek"}, args[0]) { // without a schema
			flags = slices.Concat(flags[:2], flags[4:])
		}
		code, out, errs := sluice(t, start, append(args, flags...)...)
		if code != 0 && line != "peek user-123 gpt-4" {
			t.Errorf("%s: exit code %d\n%s", line, code, errs)
		}
		if strings.HasPrefix(line, "aggregate") || strings.HasPrefix(line, "top") {
			out = "" // it has times and names of places
		}
		all = append(all, line+"\n"+out)
	}
	return all
}

// TestCommandsInNamespace: commands do in a namespace what they do on a table of its own, and leave the rest
// of the table as it was.
func TestCommandsInNamespace(t *testing.T) {
	sequential(t)
	alone, own := newSession(t, demo)
	want := runStory(t, alone, own)
	s, table := newSession(t, demo)
	acquire(s, table, limits.GPT4Cost{TPM: 7_000}) // of the default namespace
	if err := operator.NewMembers(s.client, table, fixed{start}.Now).Put(t.Context(),
		store.Member{Entity: "user-123", Parent: "project-8"}); err != nil {
		t.Fatal(err)
	}
	before := s.stored()
	s.flags = append(s.flags, "--namespace", "team-a")
	got := runStory(t, s, table, dynamo.Namespace("team-a"))
	for i, line := range want {
		if stripped(line) != stripped(got[i]) {
			t.Errorf("on a table of its own\n%s\nin a namespace\n%s", line, got[i])
		}
	}
	others := slices.DeleteFunc(strings.Split(s.stored(), "\n"), func(item string) bool {
		return strings.Contains(item, "PK=&{team-a#")
	})
	if after := strings.Join(others, "\n"); after != before {
		t.Errorf("the default namespace has changed from\n%s\nto\n%s", before, after)
	}
}

// TestLoadInNamespace: a load charges buckets of its namespace, and deletes them.
func TestLoadInNamespace(t *testing.T) {
	m := newMigration(t, demo)
	m.flags = append(m.flags, "--namespace", "team-a")
	for _, cleanup := range []bool{false, true} {
		args := append([]string{"load", "--calls", "20", "--duration", "5m"}, m.flags...)
		if cleanup {
			args = append(args, "--cleanup")
		}
		if code, _, errs := sluice(t, late, args...); code != 0 {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		stored := m.stored()
		has := strings.Contains(stored, "PK=&{team-a#ENTITY#")
		if has == cleanup || strings.Contains(stored, "PK=&{E") {
			t.Errorf("cleaned up %t, and stored\n%s", cleanup, stored)
		}
	}
}

// stripped returns a text without revisions, which are times.
func stripped(text string) string { return revisions.ReplaceAllString(text, "N") }

var revisions = regexp.MustCompile(`[0-9]{13}`)

// TestWrongNamespaces: usage errors about the flag and its variable.
func TestWrongNamespaces(t *testing.T) {
	sequential(t)
	s, table := newSession(t, demo)
	r := newRedis(t, demo)
	for _, test := range []struct{ line, says string }{
		{"peek user-1 gpt-4 --namespace=", "--namespace is empty"},
		{"usage user-1 --namespace=", "--namespace is empty"},
		{"aggregate --once --namespace=", "--namespace is empty"},
		{"infra iam --namespace=", "--namespace is empty"},
		{"peek user-1 gpt-4 --namespace=Team", "namespace \"Team\""},
		{"infra iam --namespace=a#b", "namespace \"a#b\""},
		{"migrate --dry-run --namespace=a --file " + demo, "no per-limit items"},
		{"table check --namespace=a", "unknown flag --namespace"},
		{"load --in-process --namespace a --file " + demo, "--namespace name different places"},
	} {
		args := strings.Fields(test.line)
		if args[0] != "infra" && !slices.Contains(args, "--in-process") {
			args = append(args, "--endpoint", dynamotest.Endpoint(t), "--table", table)
		}
		code, _, errs := command(t.Context(), args...)
		if code != 2 || !strings.Contains(errs, test.says) {
			t.Errorf("%s: exit code %d: %s", test.line, code, errs)
		}
	}
	code, _, errs := command(t.Context(), append([]string{"top", "gpt-4", "--namespace", "a"}, r.flags...)...)
	if code != 2 || !strings.Contains(errs, "use --prefix") {
		t.Errorf("with --redis: exit code %d: %s", code, errs)
	}
	t.Setenv("SLUICE_NAMESPACE", "team-a")
	if code, _, errs := sluice(t, start, append([]string{"migrate"}, s.flags...)...); code != 2 {
		t.Errorf("migrate: exit code %d: %s", code, errs)
	}
	s.run("entity put org-1", 0, "stored org-1\n  ENTITY  PARENT  CASCADE\n  org-1   -       yes\n"+
		"running processes use it once their caches expire, after 1m by default\n", "")
	if stored := s.stored(); !strings.Contains(stored, "team-a#ENTITY#org-1") {
		t.Errorf("stored %s", stored)
	}
	code, _, errs = command(t.Context(), append([]string{"override", "list", "gpt-4"}, r.flags...)...)
	if code != 0 {
		t.Errorf("the variable is not about a Redis: exit code %d: %s", code, errs)
	}
	t.Setenv("SLUICE_NAMESPACE", "")
	if code, _, errs := sluice(t, start, "peek", "user-1", "gpt-4", "--table", table); code != 2 {
		t.Errorf("empty: exit code %d: %s", code, errs)
	}
}
