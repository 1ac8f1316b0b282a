package cli_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/redistest"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

// documented returns the command by which docs/redis.md grants rights, and the right that a cluster takes
// besides.
func documented(t *testing.T) (rights []any, ofCluster any) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)\n  (ACL SETUSER .*?)\n.*?on a cluster `(\\+.*?)`").FindStringSubmatch(
		string(text))
	if found == nil {
		t.Fatal("docs/redis.md grants nothing")
	}
	for word := range strings.FieldsSeq(found[1]) {
		rights = append(rights, word)
	}
	return rights, found[2]
}

// TestRedisRights: the rights that docs/redis.md names suffice, on a node and on a cluster.
func TestRedisRights(t *testing.T) {
	rights, ofCluster := documented(t)
	node := redistest.StartServer(t)
	cluster := redistest.StartCluster(t)
	for _, at := range []struct {
		addr   string
		nodes  []string
		rights []any
	}{
		{node.Addr(), []string{node.Addr()}, rights},
		{cluster.Addrs()[0] + "?addr=" + cluster.Addrs()[1], cluster.Addrs(),
			append(slices.Clip(rights), ofCluster)},
	} {
		for _, addr := range at.nodes {
			admin := redis.NewClient(&redis.Options{Addr: addr})
			if err := admin.Do(t.Context(), at.rights...).Err(); err != nil {
				t.Fatal(err)
			}
			_ = admin.Close()
		}
		client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: at.nodes, Username: "ann",
			Password: "sesame"})
		t.Cleanup(func() { _ = client.Close() })
		lim, err := limits.New(redisstore.New(client))
		if err == nil {
			err = lim.Check(t.Context())
		}
		if err == nil {
			_, err = lim.GPT4.Acquire(t.Context(), limits.User{ID: "1", Project: limits.Project{ID: "7"}},
				limits.GPT4Cost{RPM: 35})
		}
		if err == nil {
			_, err = lim.GPT4.Peek(t.Context(), limits.User{ID: "1", Project: limits.Project{ID: "7"}})
		}
		if err != nil {
			t.Fatal(at.addr, err)
		}
		for _, line := range onRedis {
			code, out, errs := command(t.Context(),
				append(strings.Fields(line), "--file", demo, "--redis", "redis://ann:sesame@"+at.addr)...)
			if code != 0 {
				t.Errorf("%s: exit code %d\n%s%s", line, code, out, errs)
			}
		}
	}

	// The control: without one, something is refused.
	admin := node.Client()
	for _, right := range []string{"@read", "@write", "@scripting", "time"} {
		if err := admin.Do(t.Context(), append(slices.Clip(rights), "-"+right)...).Err(); err != nil {
			t.Fatal(err)
		}
		refused := 0
		for _, line := range onRedis {
			_, _, errs := command(t.Context(), append(strings.Fields(line), "--file", demo, "--redis",
				"redis://ann:sesame@"+node.Addr())...)
			if strings.Contains(errs, "NOPERM") || strings.Contains(errs, "The user executing the script can't run") {
				refused++
			}
		}
		if refused == 0 {
			t.Errorf("without %s nothing is refused", right)
		}
	}
}
