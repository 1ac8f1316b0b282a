package cli_test

import (
	"context"
	"fmt"
	"iter"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// movedOrgs is how many entities the tests of interrupted moves move.
const movedOrgs = 12

// interrupted is a store with movedOrgs entities on pro, whose n-th request interrupts a command.
type interrupted struct {
	flags   []string
	at      func(n int, interrupt func()) // n is 0 for never
	members store.MemberStore
	records func(entity string) int
}

// interruptedTable is one in a table. The reply of the request that interrupts is lost.
func interruptedTable(t *testing.T) interrupted {
	t.Helper()
	memory := memdynamo.New()
	client := memory.Client()
	table := dynamotest.Table(t, client, operator.Table)
	populateOrgs(t, client, table, movedOrgs)
	answers := httptest.NewServer(memory)
	t.Cleanup(answers.Close)
	return interrupted{
		flags: []string{"--table", table, "--endpoint", answers.URL},
		at: func(n int, interrupt func()) {
			var seen atomic.Int64
			memory.Faults().Script(func(memdynamo.Request) memdynamo.Fault {
				if seen.Add(1) == int64(n) {
					interrupt()
					return memdynamo.LoseReply
				}
				return memdynamo.None
			})
		},
		members: operator.NewMembers(client, table, time.Now),
		records: func(entity string) int {
			all := operator.Changes(t.Context(), client, table, store.Audited{Entity: entity}, time.Time{})
			return recordsIn(t, all)
		},
	}
}

// interruptedRedis is one in a Redis.
func interruptedRedis(t *testing.T) interrupted {
	t.Helper()
	r := newRedis(t, planned)
	backend := redisstore.New(r.client)
	for id := range movedOrgs {
		if err := backend.Members().SetPlan(t.Context(), fmt.Sprint("project-", id), "pro", nil); err != nil {
			t.Fatal(err)
		}
	}
	return interrupted{
		flags: r.flags[:2],
		at: func(n int, interrupt func()) {
			var seen atomic.Int64
			r.server.Server().SetPreHook(func(*server.Peer, string, ...string) bool {
				if seen.Add(1) == int64(n) {
					interrupt()
				}
				return false
			})
		},
		members: backend.Members(),
		records: func(entity string) int {
			all := backend.Changes(t.Context(), store.Audited{Entity: entity}, time.Time{})
			return recordsIn(t, all) - 1 // without that of the test
		},
	}
}

// recordsIn counts records of changes.
func recordsIn(t *testing.T, all iter.Seq2[store.Change, error]) (n int) {
	t.Helper()
	for _, err := range all {
		if n++; err != nil {
			t.Error(err)
		}
	}
	return n
}

// interruptible has both stores.
func interruptible() map[string]func(*testing.T) interrupted {
	return map[string]func(*testing.T) interrupted{"table": interruptedTable, "redis": interruptedRedis}
}

// TestMoveInterrupted: a move is interrupted at one of its requests, and repeated. Each entity is moved once,
// and both runs together say how many. In long form that is each request.
func TestMoveInterrupted(t *testing.T) {
	sequential(t)
	if dynamotest.OnLocal(t) {
		t.Skip("it interrupts the engine in memory")
	}
	for name, open := range interruptible() {
		cut := 0
		for n := 1; ; n += interruptStep() {
			at := open(t)
			move := func(n int) (code, moved int, said string) {
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				at.at(n, interrupt)
				var out, errs strings.Builder
				code = (cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}).Run(ctx, append([]string{
					"plan", "move", "--from", "pro", "--to", "free", "--file", planned,
				}, at.flags...))
				_, _ = fmt.Sscanf(out.String(), "moved %d", &moved)
				return code, moved, out.String() + errs.String()
			}
			code, first, said := move(n)
			if code == 0 && n > 2*movedOrgs {
				break
			}
			cut++
			again, second, more := move(0)
			if again != 0 || first+second != movedOrgs {
				t.Errorf("%s, request %d: moved %d and %d of %d:\n%s%s", name, n, first, second, movedOrgs, said,
					more)
			}
			for id := range movedOrgs {
				entity := fmt.Sprint("project-", id)
				m, _, err := at.members.Get(t.Context(), entity)
				if records := at.records(entity); err != nil || m.Plan != "free" || records != 1 {
					t.Errorf("%s, request %d: %s is on %q with %d records, %v", name, n, entity, m.Plan, records, err)
				}
			}
		}
		t.Logf("%s: interrupted at %d requests", name, cut)
	}
}

// TestFilesInterrupted: a catalog and overrides are written from a file, interrupted at one of the requests,
// and repeated. Each has one record, and both runs together say how many there are.
func TestFilesInterrupted(t *testing.T) {
	sequential(t)
	if dynamotest.OnLocal(t) {
		t.Skip("it interrupts the engine in memory")
	}
	dir := t.TempDir()
	names, rows := filepath.Join(dir, "names.yaml"), filepath.Join(dir, "rows.csv")
	catalog, csv := "model: {", "at,resource,revision,limit,capacity_milli,burst_milli,refill_milli,period_ms\n"
	for id := range movedOrgs {
		catalog += fmt.Sprintf("n%d: {}, ", id)
		csv += fmt.Sprintf("key-%d,gpt-4,none,rpm,5000,5000,1000,86400000\n", id)
	}
	for path, text := range map[string]string{names: catalog + "}", rows: csv} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, open := range interruptible() {
		for _, line := range [][]string{{"catalog", "apply", names}, {"override", "import", rows}} {
			n := 1
			for ; interruptFile(t, name, open(t), n, line); n += fileStep() {
				continue
			}
			t.Logf("%s: %s was interrupted at up to %d requests", name, line[:2], n)
		}
	}
}

// fileStep is interruptStep for files. Each entry takes as many requests, two on a table and ten on Redis.
// Every third request of a file, or every seventh, is at times each of an entry's.
func fileStep() int {
	if longform.Wanted() {
		return 3
	}
	return 7
}

// interruptStep is how many requests apart the interrupts of a test are.
func interruptStep() int {
	if longform.Wanted() {
		return 1
	}
	return 11
}

// written is what a command says of what it wrote.
var written = regexp.MustCompile(`(\d+) of \d+ are written|wrote (\d+)`)

// interruptFile interrupts a command at its n-th request, and repeats it. It reports whether the command has
// as many.
func interruptFile(t *testing.T, name string, at interrupted, n int, line []string) bool {
	t.Helper()
	run := func(n int, line ...string) (code, wrote int, said string) {
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		at.at(n, interrupt)
		var out, errs strings.Builder
		code = (cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}).Run(ctx,
			slices.Concat(line, []string{"--file", templates}, at.flags))
		said = out.String() + errs.String()
		if found := written.FindStringSubmatch(said); found != nil {
			wrote, _ = strconv.Atoi(found[1] + found[2])
		}
		return code, wrote, said
	}
	code, first, said := run(n, line...)
	if code == 0 && n > 2*movedOrgs {
		return false
	}
	again, second, more := run(0, line...)
	if again != 0 || first+second != movedOrgs {
		t.Errorf("%s, request %d of %s: wrote %d and %d of %d:\n%s%s", name, n, line, first, second, movedOrgs,
			said, more)
	}
	listed := [][]string{{"audit", "--catalog", "model"}}
	if line[0] == "override" {
		listed = nil
		for id := range movedOrgs {
			listed = append(listed, []string{"audit", fmt.Sprint("key-", id)})
		}
	}
	records := -len(listed) // the lines of titles
	for _, audit := range listed {
		_, _, said := run(0, audit...)
		records += strings.Count(said, "\n")
	}
	if records != movedOrgs {
		t.Errorf("%s, request %d of %s: %d records, want %d", name, n, line, records, movedOrgs)
	}
	return true
}

// TestMoveByTwo: if two people move the same entities at once, each entity is moved once.
func TestMoveByTwo(t *testing.T) {
	sequential(t)
	if dynamotest.OnLocal(t) {
		t.Skip("it asks the engine in memory")
	}
	for name, open := range interruptible() {
		at := open(t)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				var out, errs strings.Builder
				code := (cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}).Run(t.Context(), append([]string{
					"plan", "move", "--from", "pro", "--to", "free", "--file", planned,
				}, at.flags...))
				if code != 0 {
					t.Errorf("%s: exit code %d, %s", name, code, errs.String())
				}
			})
		}
		both.Wait()
		for id := range movedOrgs {
			entity := fmt.Sprint("project-", id)
			m, _, err := at.members.Get(t.Context(), entity)
			if n := at.records(entity); err != nil || m.Plan != "free" || n != 1 {
				t.Errorf("%s: %s is on %q with %d records, %v", name, entity, m.Plan, n, err)
			}
		}
	}
}
