package cli_test

import (
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

const stillThere = `its data stays in backups and point-in-time recovery, for a day in the table's ` +
	`stream, and in usage that was exported
a process that serves a call of it, an aggregator that is behind, and a process with cached links, ` +
	`overrides or buckets store data again: end its calls, and repeat the command once their caches expire, ` +
	`after 1m by default
`

// TestErase: what a service has stored of a user goes, with what operators have. A parent is refused by name.
func TestErase(t *testing.T) {
	sequential(t)
	s, table := newSession(t, demo)
	lim, err := limits.New(dynamo.New(s.client, table))
	if err != nil {
		t.Fatal(err)
	}
	user := limits.User{ID: "123", Project: limits.Project{ID: "7"}}
	if _, err := lim.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{RPM: 35}); err != nil {
		t.Fatal(err)
	}
	if err := lim.Entities().Put(t.Context(), user); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := sluice(t, start, append(strings.Fields("override set user-123 gpt-4 rpm=200"),
		s.flags...)...); code != 0 {
		t.Fatal(errs)
	}
	s.run("entity erase project-7", 1, "", `sluice: entity "project-7" is the parent of user-123: nothing was `+
		"erased, since their look-ups would fail; store another parent for them, or leave the children as they "+
		"are: pass --leave-children\n")
	s.run("entity erase user-123 --dry-run", 0,
		"user-123: would erase 1 bucket, 1 override, 0 windows of usage and 2 other items\n"+stillThere, "")
	before := s.items()
	s.run("entity erase user-123 --json --dry-run", 0,
		`{"entity":"user-123","dry_run":true,"buckets":1,"overrides":1,"usage":0,"other":2}`+"\n", stillThere)
	if after := s.items(); after != before {
		t.Errorf("dry runs left %d items of %d", after, before)
	}
	s.run("entity erase user-123", 0,
		"user-123: erased 1 bucket, 1 override, 0 windows of usage and 2 other items\n"+stillThere, "")
	if after := s.items(); after != before-4 {
		t.Errorf("%d items of %d are left", after, before)
	}
	s.run("entity erase user-123", 0,
		"user-123: erased 0 buckets, 0 overrides, 0 windows of usage and 0 other items\n"+stillThere, "")
	erased, err := lim.Entities().Erase(t.Context(), limits.Project{ID: "7"})
	if want := (runtime.Erased{Buckets: 1}); erased != want || err != nil {
		t.Errorf("%+v, %v, want %+v", erased, err, want)
	}
	// This process has the bucket cached. It makes a new one, which is full.
	lease, err := lim.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{RPM: 1})
	if err != nil {
		t.Fatal(err)
	}
	if left := lease.Remaining(); left.RPM != 99 {
		t.Errorf("%+v left after an erase", left)
	}
}

// TestEraseRedis is TestErase on Redis.
func TestEraseRedis(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	const prefix = "erase:"
	lim, err := limits.New(redisstore.New(client, redisstore.Prefix(prefix)))
	if err != nil {
		t.Fatal(err)
	}
	user := limits.User{ID: "123", Project: limits.Project{ID: "7"}}
	if _, err := lim.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{RPM: 35}); err != nil {
		t.Fatal(err)
	}
	if err := lim.Entities().Put(t.Context(), user); err != nil {
		t.Fatal(err)
	}
	code, out, errs := command(t.Context(), "entity", "erase", "user-123", "--file", demo, "--prefix", prefix,
		"--redis", "redis://"+server.Addr())
	if want := "user-123: erased 1 bucket, 0 overrides, 0 windows of usage and 2 other items\n"; code != 0 ||
		!strings.HasPrefix(out, want) || !strings.Contains(out, "append-only files") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	erased, err := lim.Entities().Erase(t.Context(), limits.Project{ID: "7"})
	if want := (runtime.Erased{Buckets: 1}); erased != want || err != nil {
		t.Errorf("%+v, %v, want %+v", erased, err, want)
	}
}
