package cli_test

import (
	"context"
	"fmt"
	"iter"
	"net/http/httptest"
	"strings"
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

// TestMoveInterrupted: a move is interrupted at one of its requests, and repeated. Each entity is moved once,
// and both runs together say how many. In long form that is each request.
func TestMoveInterrupted(t *testing.T) {
	sequential(t)
	if dynamotest.OnLocal(t) {
		t.Skip("it interrupts the engine in memory")
	}
	step := 7
	if longform.Wanted() {
		step = 1
	}
	for name, open := range map[string]func(*testing.T) interrupted{
		"table": interruptedTable, "redis": interruptedRedis,
	} {
		cut := 0
		for n := 1; ; n += step {
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
