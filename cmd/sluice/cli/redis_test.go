package cli_test

import (
	"context"
	"fmt"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// redises runs commands against one Redis of the test's own, in the process, and one schema.
type redises struct {
	*testing.T

	server *miniredis.Miniredis
	client redis.UniversalClient
	flags  []string
}

// newRedis starts one whose clock stands at start.
func newRedis(t *testing.T, file string) redises {
	t.Helper()
	if dynamotest.OnLocal(t) {
		t.Skip("it asks no DynamoDB, or not much: make test runs it")
	}
	server := miniredis.RunT(t)
	server.SetTime(start)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	return redises{t, server, client, []string{"--redis", "redis://" + server.Addr(), "--file", file}}
}

// newCluster is newRedis of a cluster of one node.
func newCluster(t *testing.T, file string) redises {
	t.Helper()
	r := newRedis(t, file)
	r.client = redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{r.server.Addr()}})
	t.Cleanup(func() { _ = r.client.Close() })
	r.flags[1] += "?addr=" + r.server.Addr()
	return r
}

// command runs a command as it is, and returns what it came to. Its own clock is far off: Redis's is what
// counts.
func command(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	program := cli.Program{Stdout: &out, Stderr: &errs,
		Now: func() time.Time { return start.Add(1000 * time.Hour) }}
	code = program.Run(ctx, args)
	return code, out.String(), errs.String()
}

// run runs a command that is to exit with code and to print these, in which ADDR is where Redis is.
func (r redises) run(line string, code int, stdout, stderr string) {
	r.Helper()
	got, out, errs := command(r.Context(), append(strings.Fields(line), r.flags...)...)
	named := strings.NewReplacer("ADDR", r.server.Addr())
	stdout, stderr = named.Replace(stdout), named.Replace(stderr)
	if got != code || out != stdout || !sameFacts(errs, stderr) {
		r.Errorf("%s: exit code %d, stdout\n%s\nstderr\n%s\nwant %d, stdout\n%s\nstderr\n%s", line, got, out, errs,
			code, stdout, stderr)
	}
}

// acquire takes tokens as a process does that has just started, and so remembers no overrides.
func (r redises) acquire(user limits.User, cost limits.GPT4Cost) {
	r.Helper()
	if _, err := r.limiter().GPT4.Acquire(r.Context(), user, cost); err != nil {
		r.Fatal(err)
	}
}

func (r redises) limiter() *limits.Limiter {
	r.Helper()
	lim, err := limits.New(redisstore.New(r.client), runtime.WithClock(fixed{start}))
	if err != nil {
		r.Fatal(err)
	}
	return lim
}

// TestSameOnRedis runs one story on DynamoDB and on Redis: commands say the same of both, to the letter, but
// for what a read cost.
func TestSameOnRedis(t *testing.T) {
	sequential(t)
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, operator.Table)
	r := newRedis(t, demo)
	now := start
	stores := map[string]struct {
		store func() store.Store
		run   func(args []string) (int, string, string)
	}{
		"DynamoDB": {
			func() store.Store { return dynamo.New(storetest.Dated(client, fixed{now}), table) },
			func(args []string) (int, string, string) {
				return sluice(t, now, append(args, "--table", table, "--file", demo)...)
			},
		},
		"Redis": {
			func() store.Store { return redisstore.New(r.client) },
			func(args []string) (int, string, string) {
				r.server.SetTime(now)
				return command(t.Context(), append(args, r.flags...)...)
			},
		},
	}
	user := limits.User{ID: "123", Project: limits.Project{ID: "7"}}
	type take struct {
		entity limits.GPT4Entity
		cost   limits.GPT4Cost
		settle *limits.GPT4Cost
	}
	story := []any{
		"peek user-123 gpt-4", "reset user-123 gpt-4", "reset user-123 gpt-4 --limit rps",
		"override get user-123 gpt-4", "override list gpt-4",
		"override delete user-123 gpt-4", "override explain user-123 gpt-4", "override explain project-7 gpt-4",
		"entity show user-123", "entity children project-7", "entity delete user-123",
		"override set user gpt-4 tpm=20_000", "override set user-123 gpt-4 rpm=200,burst=300",
		"override set user-123 gpt-4 rpm=200,burst=300", "override get user-123 gpt-4", "override list gpt-4",
		"override set user-123 gpt-4 rpm=5 --revision none",
		take{user, limits.GPT4Cost{RPM: 35, TPM: 14_000}, nil},
		time.Second,
		"peek user-123 gpt-4", "peek project-7 gpt-4", "override explain user-123 gpt-4", "top gpt-4",
		"top gpt-4 --kind project",
		"top gpt-4 --limit tpm --most 1", "top gpt-4 --limit rps", "top embeddings",
		take{user, limits.GPT4Cost{RPM: 10, TPM: 10}, &limits.GPT4Cost{RPM: 10, TPM: 8_000}},
		"peek user-123 gpt-4", "top gpt-4",
		"entity put user-123 --parent project-7", "entity show user-123", "entity children project-7",
		"peek user-123 gpt-4",
		"entity calendar user-123 --since 2026-01-31T09:00 --zone Europe/Berlin", "entity show user-123",
		"entity show user-123 --json", "entity calendar user-123 --since 2026-02-01", "windows --entity user-123",
		"entity put user-123 --no-cascade", "entity delete project-7", "entity put project-7",
		"reset user-123 gpt-4 --limit rps", "reset user-123 gpt-4 --limit rpm", "reset user-123 gpt-4",
		"peek project-7 gpt-4",
		take{user.Project, limits.GPT4Cost{RPM: 1}, nil}, // rpm alone
		"reset project-7 gpt-4 --limit tpm",
		"override set user gpt-4 rpm=1 --refill", "override set user-123 gpt-4 rpm=400,burst=400 --refill",
		"peek user-123 gpt-4",
		"override delete user-123 gpt-4 --revision 1", "override delete user-123 gpt-4", "override list gpt-4",
		"entity delete user-123", "entity children project-7",
		"peek user gpt-4", "peek user-123 GPT#4", "reset user-123 gpt-4 --limit=", "override set user-123 gpt-4 " +
			"rps=1",
	}
	units := regexp.MustCompile(`, for [0-9.]+ read units`)
	nowhere := regexp.MustCompile(` in (table|redis).*: none was used, all have expired, or the name, .* is ` +
		`wrong`)
	output := map[string][]string{}
	for name, at := range stores {
		now = start
		for _, step := range story {
			switch step := step.(type) {
			case time.Duration:
				now = now.Add(step)
			case take:
				r.server.SetTime(now)
				lim, err := limits.New(at.store(), runtime.WithClock(fixed{now}))
				if err != nil {
					t.Fatal(err)
				}
				lease, err := lim.GPT4.Acquire(t.Context(), step.entity, step.cost)
				if err == nil && step.settle != nil {
					err = lease.Settle(t.Context(), *step.settle)
				}
				if err != nil {
					t.Fatal(name, err)
				}
			case string:
				code, out, errs := at.run(strings.Fields(step))
				text := fmt.Sprintf("$ sluice %s\n%s%sexit code %d\n", step, out, errs, code)
				output[name] = append(output[name], nowhere.ReplaceAllString(units.ReplaceAllString(text, ""),
					" NOWHERE"))
			}
		}
	}
	for i, want := range output["DynamoDB"] {
		if got := output["Redis"][i]; got != want {
			t.Errorf("on DynamoDB:\n%s\non Redis:\n%s", want, got)
		}
	}
}
