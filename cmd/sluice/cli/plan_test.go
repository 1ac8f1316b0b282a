package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// storesOfPlans has a store of each kind: a function that runs a command, and its entities.
func storesOfPlans(t *testing.T) map[string]struct {
	run     func(args ...string) (int, string, string)
	members store.MemberStore
} {
	t.Helper()
	s, table := newSession(t, planned)
	r := newRedis(t, planned)
	type at = struct {
		run     func(args ...string) (int, string, string)
		members store.MemberStore
	}
	return map[string]at{
		"table": {func(args ...string) (int, string, string) {
			return sluice(t, start, slices.Concat(args, s.flags)...)
		}, operator.NewMembers(s.client, table, func() time.Time { return start })},
		"redis": {func(args ...string) (int, string, string) {
			code, out, errs := command(t.Context(), slices.Concat(args, r.flags)...)
			return code, out, errs
		}, redisstore.New(r.client).Members()},
	}
}

// TestPlan: plans are shown, set and moved on both stores, and the records of it are listed.
func TestPlan(t *testing.T) {
	sequential(t)
	const later = "running processes use it once their caches expire, after 1m by default\n"
	for name, at := range storesOfPlans(t) {
		for _, m := range []store.Member{
			{Entity: "user-1", Parent: "project-7", Cascade: true}, {Entity: "user-2", Cascade: true},
		} {
			if err := at.members.Put(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		for _, test := range []struct {
			line      string
			code      int
			out, errs string
		}{
			{"plan show project-7", 0, "project-7 is on no plan\n", ""},
			{"plan set project-7 pro --reason invoice-117", 0,
				"project-7: now on plan pro, was on no plan\n" + later, ""},
			{"plan set project-7 pro", 0, "project-7: nothing to change, it is on plan pro\n", ""},
			{"plan show project-7", 0, "project-7 is on plan pro, since 2026-03-01 12:00:00 UTC\n", ""},
			{"plan show user-1", 0,
				"user-1 follows project-7, which is on plan pro, since 2026-03-01 12:00:00 UTC\n", ""},
			{"plan show user-1 --json", 0, `{"entity":"user-1","follows":"project-7","plan":"pro","known":true,` +
				`"since":"2026-03-01T12:00:00Z"}` + "\n", ""},
			{"plan show user-2", 0, "user-2: no parent of user-2 is stored, so calls say whose plan it has\n", ""},
			{"plan show user-2 --json", 0, `{"entity":"user-2","plan":"","known":false,"orphan":"user-2"}` + "\n", ""},
			{"plan set project-8 pro", 0, "project-8: now on plan pro, was on no plan\n" + later, ""},
			{"plan set project-9 free", 0, "project-9: now on plan free, was on no plan\n" + later, ""},
			{"plan move --from pro --to free --dry-run", 0, "would move 2 projects from plan pro to plan free\n", ""},
			{"plan move --from pro --to free", 0, "moved 2 projects from plan pro to plan free\n", later},
			{"plan move --from pro --to free", 0, "moved 0 projects from plan pro to plan free\n", ""},
			{"plan move --from old --to free", 0, "moved 0 projects from plan old (not in " +
				"../../../internal/test/conformance/planned/limits.yaml) to plan free\n", ""},
			{"plan set project-9 none", 0, "project-9: now on no plan, was on plan free\n" + later, ""},
			{"plan set user-1 pro", 2, "", "sluice: user-1 cannot be on a plan: entities of kind project are, such " +
				"as project-7\n"},
			{"plan set project-7 gold2", 2, "", "sluice: ../../../internal/test/conformance/planned/limits.yaml has " +
				"no plan gold2 (none stands for no plan): did you mean \"gold\"?\n"},
			{"plan move --from none --to free", 2, "", "sluice: --from names no plan: entities on none are not " +
				"listed; put them on a plan one by one\n"},
			{"plan move --from free --to free", 2, "", "sluice: --from and --to are both free: pass two plans\n"},
			{"override set user-1 gpt-4 rpm=20 --reason support", 0, "", ""},
			{"override delete user-1 gpt-4 --reason " + strings.Repeat("x", 201), 2, "",
				"sluice: --reason has 201 bytes: shorten it to 200\n"},
			{"audit", 2, "", "sluice: pass one of an entity, --kind, --plans and --catalog\n"},
			{"audit project-7 --kind user", 2, "", "sluice: pass one of an entity, --kind, --plans and --catalog\n"},
		} {
			code, out, errs := at.run(strings.Fields(test.line)...)
			if strings.HasPrefix(test.line, "override set") {
				out = "" // other tests read it
			}
			if cut := strings.LastIndex(errs, "; run `sluice "); code == 2 && cut > 0 {
				errs = errs[:cut] + "\n" // without the help
			}
			if code != test.code || out != test.out || errs != test.errs {
				t.Errorf("%s: %s: exit code %d, stdout\n%s\nstderr\n%s\nwant %d, stdout\n%s\nstderr\n%s", name, test.line,
					code, out, errs, test.code, test.out, test.errs)
			}
		}
		auditedOn(t, name, at.run)
	}
}

// auditedOn holds what is listed of the changes of TestPlan.
func auditedOn(t *testing.T, name string, run func(args ...string) (int, string, string)) {
	t.Helper()
	by := map[string]string{"table": "access key local", "redis": "-"}[name] // miniredis has no users
	for what, want := range map[string][]string{
		"project-7": {"TIME WHAT WAS NOW BY REASON", "plan - pro " + by + " invoice-117",
			"plan pro free " + by + " -"},
		"user-1": {"TIME WHAT WAS NOW BY REASON", "gpt-4 rpm - 20, 20 every 1d " + by + " support"},
	} {
		code, out, errs := run("audit", what, "--since", "36500d")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		for i, line := range lines {
			words := strings.Fields(line)
			if i > 0 && len(words) > 3 && words[2] == "UTC" {
				words = words[3:] // without the time
			}
			if i >= len(want) || strings.Join(words, " ") != want[i] {
				t.Errorf("%s: audit %s: line %q, want %q", name, what, strings.Join(words, " "), want)
			}
		}
		if code != 0 || len(lines) != len(want) {
			t.Errorf("%s: audit %s: exit code %d\n%s%s", name, what, code, out, errs)
		}
	}
	_, out, _ := run("audit", "user-1", "--since", "36500d", "--json")
	var got struct {
		Resource, Reason string
		After            map[string]struct {
			Capacity int64 `json:"capacity_milli"`
		}
	}
	err := json.Unmarshal([]byte(out), &got)
	if err != nil || got.Resource != "gpt-4" || got.Reason != "support" || got.After["rpm"].Capacity != 20_000 {
		t.Errorf("%s: %v in %s", name, err, out)
	}
	if _, out, errs := run("audit", "--kind", "user"); out != "" || !strings.HasPrefix(errs, "no change is ") {
		t.Errorf("%s: of a kind that nobody changed: %q, %q", name, out, errs)
	}
}

// TestMoveOfManyOrgs: a move costs four write units and a read for each entity, beside one scan. One that is
// interrupted is continued by the next. The records are there.
func TestMoveOfManyOrgs(t *testing.T) {
	sequential(t)
	if dynamotest.OnLocal(t) {
		t.Skip("it counts the units of the engine in memory")
	}
	orgs := longform.Count(t, "orgs", 100_000, 1_000)
	memory := memdynamo.New()
	client := memory.Client()
	table := dynamotest.Table(t, client, dynamotest.Streamless(operator.Table))
	populateOrgs(t, client, table, orgs)
	server := httptest.NewServer(memory)
	t.Cleanup(server.Close)
	move := func(ctx context.Context) (int, string, string) {
		var out, errs strings.Builder
		code := (cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}).Run(ctx, []string{
			"plan", "move", "--from", "pro", "--to", "free", "--reason", "pro ends on 1 January", "--table", table,
			"--file", planned, "--endpoint", server.URL,
		})
		return code, out.String(), errs.String()
	}
	memory.ResetConsumed()
	ctx, cancel := context.WithCancel(t.Context())
	memory.Faults().Script(func(r memdynamo.Request) memdynamo.Fault {
		if r.Operation == "TransactWriteItems" && r.Number == orgs/3 {
			cancel()
		}
		return memdynamo.None
	})
	if code, out, errs := move(ctx); code == 0 {
		t.Fatalf("the first one was not interrupted: %s%s", out, errs)
	}
	memory.Faults().Clear()
	code, out, errs := move(t.Context())
	if code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	var read, write, scanned float64
	for operation, used := range memory.Consumed().Tables[table] {
		write += used.Applied.Write + used.Refused.Write + used.Cancelled.Write
		if operation == "Scan" {
			scanned += used.Applied.Read
		} else {
			read += used.Applied.Read
		}
	}
	each := write / float64(orgs)
	t.Logf("%d orgs: %.2f write units each, %.2f read units each, two scans of %.1f units", orgs, each,
		read/float64(orgs), scanned)
	const cut = 8 // moves under way when the first one was interrupted
	if write > 4*float64(orgs+cut) || read > 1.1*float64(orgs)+100 {
		t.Errorf("%v write and %v read units for %d orgs", write, read, orgs)
	}
	left := 0
	for page, err := range operator.OnPlan(t.Context(), client, table, "", "project-", "pro") {
		if left += len(page.Entities); err != nil {
			t.Fatal(err)
		}
	}
	if left > 0 {
		t.Errorf("%d are still on pro", left)
	}
	for _, id := range []int{0, orgs / 2, orgs - 1} {
		n := 0
		for c, err := range operator.Changes(t.Context(), client, table,
			store.Audited{Entity: fmt.Sprint("project-", id)}, time.Time{}) {
			if n++; err != nil || c.Reason != "pro ends on 1 January" {
				t.Errorf("project-%d: %+v", id, c)
			}
		}
		if n != 1 {
			t.Errorf("project-%d has %d records", id, n)
		}
	}
}

// populateOrgs stores so many entities on pro.
func populateOrgs(t *testing.T, client *dynamodb.Client, table string, orgs int) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(4)
	for from := 0; from < orgs; from += 25 {
		group.Go(func() error {
			var puts []types.WriteRequest
			for id := from; id < min(from+25, orgs); id++ {
				puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: codec.Item{
					"PK": codec.S(fmt.Sprint("ENTITY#project-", id)), "SK": codec.S("#META"), "plan": codec.S("pro"),
					"pv": codec.N(1),
				}}})
			}
			_, err := client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
				RequestItems: map[string][]types.WriteRequest{table: puts},
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}
