package docs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/doccheck"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

// redisTime is where the clock of Redis stands.
var redisTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// traffic counts round trips and commands of a client.
type traffic struct {
	trips    int
	commands []string
}

// DialHook implements redis.Hook.
func (*traffic) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (c *traffic) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.note(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (c *traffic) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.note(cmds...)
		return next(ctx, cmds)
	}
}

func (c *traffic) note(cmds ...redis.Cmder) {
	if slices.ContainsFunc(
		cmds,
		func(cmd redis.Cmder) bool { return cmd.Name() == "hello" || cmd.Name() == "client" },
	) {
		return // of a new connection
	}
	c.trips++
	for _, cmd := range cmds {
		c.commands = append(c.commands, cmd.Name())
	}
}

// redisStore is a Redis in the process, and a Limiter on it.
func redisStore(t *testing.T) (*miniredis.Miniredis, *limits.Limiter, *traffic) {
	t.Helper()
	server := miniredis.RunT(t)
	server.SetTime(redisTime)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	seen := &traffic{}
	client.AddHook(seen)
	lim, err := limits.New(redisstore.New(client))
	if err != nil {
		t.Fatal(err)
	}
	return server, lim, seen
}

// rows are those of the table in docs/redis.md that has this head.
func rows(t *testing.T, head string) (all [][]string) {
	t.Helper()
	_, table, found := strings.Cut(read(t, "docs/redis.md"), head)
	if !found {
		t.Fatalf("docs/redis.md has no table %s", head)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table + "\n") {
		cells := strings.Split(strings.Trim(row, "|\n"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		all = append(all, cells)
	}
	return all
}

// TestDocsRedisKeys: what docs/redis.md lists are all keys that there are.
func TestDocsRedisKeys(t *testing.T) {
	server, lim, _ := redisStore(t)
	user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
	if err := lim.Entities().Put(t.Context(), user); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLUICE_REDIS_URL", "redis://"+server.Addr())
	if text := shell(t, "override set user-123 gpt-4 rpm=100,burst=100"); !strings.Contains(text, "was none") {
		t.Fatal(text)
	}
	if _, err := lim.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{TPM: 10}); err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, key := range server.Keys() {
		ttl := ""
		if left := server.TTL(key); left > 0 {
			ttl = left.String()
		}
		got = append(got, []string{"`" + key + "`", server.Type(key), ttl})
	}
	if diff := cmp.Diff(rows(t, "| key | type | expires after |\n|---|---|--:|\n"), got); diff != "" {
		t.Errorf("docs/redis.md (-), Redis (+):\n%s", diff)
	}
}

// TestExpressionsKeys: keys are named as EXPRESSIONS.md says, and expire when it says.
func TestExpressionsKeys(t *testing.T) {
	server, lim, _ := redisStore(t)
	if _, err := lim.GPT4.Acquire(t.Context(), limits.User{ID: "N", Project: limits.Project{ID: "N"}},
		limits.GPT4Cost{TPM: 10}); err != nil {
		t.Fatal(err)
	}
	doc, keys := read(t, "generated/EXPRESSIONS.md"), server.Keys()
	if len(keys) != 4 {
		t.Errorf("%d keys, want two of two buckets: %q", len(keys), keys)
	}
	if want := "\nKeys are `sluice:gpt-4:<limit>:<kind>-N`.\n"; !strings.Contains(doc, want) {
		t.Errorf("EXPRESSIONS.md has no %s", want)
	}
	named := regexp.MustCompile(`^sluice:gpt-4:(.*):(.*)-N$`)
	for _, key := range keys {
		part := named.FindStringSubmatch(key)
		if part == nil {
			t.Errorf("the key %s is not what EXPRESSIONS.md says", key)
			continue
		}
		row := fmt.Sprintf("(?m)^\\| %s \\| `%s` \\|.*\\| %.0f s \\|$", part[2], part[1], server.TTL(key).Seconds())
		if !regexp.MustCompile(row).MatchString(doc) {
			t.Errorf("EXPRESSIONS.md has no row %s", row)
		}
	}
}

// TestDocsRedisCosts holds what docs/redis.md says that calls cost against what is sent.
func TestDocsRedisCosts(t *testing.T) {
	server, lim, seen := redisStore(t)
	ctx := t.Context()
	user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
	other := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = other.Close() })
	another, err := limits.New(redisstore.New(other))
	if err == nil {
		err = another.Entities().Put(ctx, user)
	}
	if err == nil {
		_, err = another.GPT4.Acquire(
			ctx,
			limits.User{ID: "9", Project: limits.Project{ID: "2"}},
			limits.GPT4Cost{TPM: 10},
		) // loads the script
	}
	if err != nil {
		t.Fatal(err)
	}
	var lease *limits.GPT4Lease
	acquire := func() (err error) {
		lease, err = lim.GPT4.Acquire(ctx, user, limits.GPT4Cost{TPM: 10})
		return err
	}
	denied := func() error {
		_, err := lim.GPT4.Acquire(ctx, user, limits.GPT4Cost{TPM: 15_000})
		if _, ok := errors.AsType[*limits.DeniedError](err); !ok {
			return fmt.Errorf("%w, want a denial", err)
		}
		return nil
	}
	var got [][]string
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"the first call on a bucket, and once in a cache TTL (1m)", acquire},
		{"each call after that", acquire},
		{"a denied call", denied},
		{"a settle, a release", func() error { return lease.Settle(ctx, limits.GPT4Cost{TPM: 5}) }},
		{"a script that Redis does not have, once", acquire},
		{"`Peek`", func() error { _, err := lim.GPT4.Peek(ctx, user); return err }},
		{"a call that looks up its parent, and once in a cache TTL", func() error {
			_, err := lim.GPT4.Acquire(ctx, limits.UserByID("123"), limits.GPT4Cost{TPM: 10})
			return err
		}},
	} {
		if strings.HasPrefix(step.what, "a script") {
			if err := other.ScriptFlush(ctx).Err(); err != nil {
				t.Fatal(err)
			}
		}
		seen.trips, seen.commands = 0, nil
		if err := step.do(); err != nil {
			t.Fatal(step.what, err)
		}
		got = append(got, []string{step.what, fmt.Sprint(seen.trips), strings.Join(seen.commands, ", ")})
	}
	if diff := cmp.Diff(rows(t, "| what | round trips | commands |\n|---|--:|---|\n"), got); diff != "" {
		t.Errorf("docs/redis.md (-), Redis (+):\n%s", diff)
	}
}

// shell runs a command line of sluice and returns all that it printed.
func shell(t *testing.T, line string) string {
	t.Helper()
	var out strings.Builder
	cli.Program{
		Stdout: &out,
		Stderr: &out,
		Now:    func() time.Time { return redisTime },
	}.Run(
		t.Context(),
		strings.Fields(line),
	)
	return out.String()
}

// redisDocs has what docs/redis.md shows of commands on a Redis.
func redisDocs(t *testing.T) doccheck.World {
	t.Helper()
	server, lim, _ := redisStore(t)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}})
	t.Cleanup(func() { _ = cluster.Close() })
	onCluster, err := limits.New(redisstore.New(cluster))
	if err != nil {
		t.Fatal(err)
	}
	spend := func(lim *limits.Limiter, user, project string, cost limits.GPT4Cost) {
		t.Helper()
		if _, err := lim.GPT4.Acquire(t.Context(), limits.User{ID: user, Project: limits.Project{ID: project}},
			cost); err != nil {
			t.Fatal(err)
		}
	}
	var more []string // arguments
	return doccheck.World{
		Sluice: func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
			return sluiceAt(func() time.Time { return redisTime })(ctx, append(args, more...), stdout, stderr)
		},
		Given: map[string]func(){
			"user-123 of project-1 has made 35 requests of 14,000 tokens in all": func() {
				spend(lim, "123", "1", limits.GPT4Cost{RPM: 35, TPM: 14_000})
			},
			"that Redis is a cluster, on which user-9 has made 10 requests under project-1, " +
				"and 40 under project-2": func() {
				spend(onCluster, "9", "1", limits.GPT4Cost{RPM: 10})
				spend(onCluster, "9", "2", limits.GPT4Cost{RPM: 40})
				more = []string{"--redis", "redis://" + server.Addr() + "?addr=" + server.Addr()}
			},
		},
		Real: []string{
			"redis://ann:sesame@127.0.0.1:6379", "redis://" + server.Addr(),
			"redis://127.0.0.1:6379", "redis://" + server.Addr(),
		},
	}
}
