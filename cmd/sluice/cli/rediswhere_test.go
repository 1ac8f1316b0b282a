package cli_test

import (
	"net"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/redistest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

// TestRedisURL: what is no URL of a Redis is said without what it is, which may be a password.
func TestRedisURL(t *testing.T) {
	sequential(t)
	const forms = "want redis://[[user]:password@]host:port[/db], rediss:// for TLS, unix:///path/to/socket, " +
		"?master_name=NAME for a Sentinel, ?addr=host:port for more nodes of a cluster; in a password / ? # % " +
		"are %2F %3F %23 %25 " +
		"(--redis, SLUICE_REDIS_URL); run `sluice peek --help`\n"
	for url, want := range map[string]string{
		"localhost:6379":                           "that is no URL of a Redis",
		"http://ann:sesame@localhost":              "that is no URL of a Redis",
		"redis://:sesame":                          "that is no URL of a Redis",
		"redis://ann:sesame%zz@localhost":          "that is no URL of a Redis",
		"redis://:ses/ame@localhost":               "that is no URL of a Redis",
		"redis://:1#sesame@localhost":              "that is no URL of a Redis",
		"redis://:sesame@h/one":                    `invalid database number: "one"`,
		"redis://:sesame@h/1/2":                    "invalid URL path: /1/2",
		"redis://:sesame@h?tls=1":                  "unexpected option: tls",
		"redis://:sesame@h?addr=x":                 "unable to parse addr param: x",
		"redis://h?master_name=m&password=s&pw=1":  "unexpected option: pw",
		"redis://h?master_name=m&addr=:sesame@h:1": "unable to parse addr param: ***@h:1",
		"redis://ses/ame@localhost":                `invalid database number: ***@localhost"`,
	} {
		code, out, errs := command(t.Context(), "peek", "user-1", "gpt-4", "--file", demo, "--redis", url)
		if code != 2 || out != "" || !hasFacts(errs, "sluice: "+want) ||
			strings.Contains(errs, "sesame") ||
			!hasFacts(errs, forms) {
			t.Errorf("%s: exit code %d\n%s%s", url, code, out, errs)
		}
	}
	// --redis left out
	code, out, errs := command(t.Context(), "peek", "user-1", "gpt-4", "redis://:sesame@localhost")
	if code != 2 || out != "" || strings.Contains(errs, "sesame") || !strings.Contains(errs, "redis://***") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// TestRedisOrTable: nobody is led to another place than was meant.
func TestRedisOrTable(t *testing.T) {
	sequential(t)
	r := newRedis(t, demo)
	url := "redis://" + r.server.Addr()
	fails := func(want string, flags ...string) {
		t.Helper()
		code, out, errs := command(t.Context(),
			append([]string{"reset", "project-1", "gpt-4", "--file", demo}, flags...)...)
		if code != 2 || out != "" || !sameFacts(errs, "sluice: "+want+"; run `sluice reset --help`\n") {
			t.Errorf("%q: exit code %d\n%s%s", flags, code, out, errs)
		}
	}
	fails("--redis names a Redis and --table a DynamoDB table: pass one of them", "--redis", url, "--table",
		"rate_limits")
	fails("--redis names a Redis and --endpoint a DynamoDB table: pass one of them", "--endpoint",
		"http://127.0.0.1:1", "--redis", url)
	fails("--redis names a Redis and --region a DynamoDB table: pass one of them", "--region", "eu-west-1",
		"--redis", url)
	fails("--redis is empty: pass a URL, or leave the flag out for a DynamoDB table", "--redis=")
	fails("--prefix is for keys in Redis: pass --redis too", "--prefix", "x:")
	fails("--prefix is empty: pass the prefix of the keys, or leave the flag out", "--redis", url, "--prefix=")
	fails("--root is for keys on a Redis cluster: pass --redis too", "--root", "project-1")
	fails("--root is for keys on a cluster, and this Redis is none: leave it out", "--redis", url, "--root",
		"project-2")

	const nothing = "sluice: project-1 on gpt-4: no bucket is stored under this name: "
	t.Setenv("SLUICE_REDIS_URL", url)
	code, _, errs := command(t.Context(), "reset", "project-1", "gpt-4", "--file", demo)
	if code != 1 || !hasFacts(errs, nothing) {
		t.Errorf("the environment's Redis: exit code %d\n%s", code, errs)
	}
	t.Setenv("SLUICE_TABLE", "rate_limits")
	fails("SLUICE_REDIS_URL and SLUICE_TABLE are both set: pass --redis or --table")
	code, _, errs = command(t.Context(), "reset", "project-1", "gpt-4", "--file", demo, "--redis", url)
	if code != 1 || !hasFacts(errs, nothing) {
		t.Errorf("--redis beside SLUICE_TABLE: exit code %d\n%s", code, errs)
	}
	dynamo := "http://" + closed(t)
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	code, _, errs = command(t.Context(), "reset", "project-1", "gpt-4", "--endpoint", dynamo)
	if code != 1 || !hasFacts(errs, "sluice: "+dynamo+" does not answer") {
		t.Errorf("--endpoint beside SLUICE_REDIS_URL: exit code %d\n%s", code, errs)
	}
}

// TestNotOnRedis: what is DynamoDB's says so.
func TestNotOnRedis(t *testing.T) {
	sequential(t)
	for line, why := range map[string]string{
		"table create":         "Redis needs no table, keys come with the calls that need them",
		"table check":          "Redis needs no table, keys come with the calls that need them",
		"infra cloudformation": "Redis needs no table, keys come with the calls that need them",
		"infra terraform":      "Redis needs no table, keys come with the calls that need them",
		"infra iam":            "Redis needs no table, keys come with the calls that need them",
		"aggregate":            "Redis has no stream of what was consumed",
		"usage user-1":         "Redis has no stream of what was consumed",
		"migrate":              "Redis has no per-limit items",
		"dev":                  "for Redis, run redis-server",
	} {
		name, _, _ := strings.Cut(line, " ")
		path := name
		if name == "table" || name == "infra" {
			path = line
		}
		code, out, errs := command(t.Context(),
			append(strings.Fields(line), "--redis", "redis://:sesame@localhost")...)
		want := "sluice: " + name + " is about DynamoDB alone, and takes no --redis: " + why + "; run `sluice " +
			path + " --help`\n"
		if code != 2 || out != "" || !sameFacts(errs, want) {
			t.Errorf("%s: exit code %d\n%s%s\nwant\n%s", line, code, out, errs, want)
		}
	}
}

// TestRedisPrefix: another prefix is another place.
func TestRedisPrefix(t *testing.T) {
	sequential(t)
	r := newRedis(t, demo)
	lim, err := limits.New(redisstore.New(r.client, redisstore.Prefix("app:")), runtime.WithClock(fixed{start}))
	if err == nil {
		_, err = lim.GPT4.Acquire(t.Context(), limits.Project{ID: "7"}, limits.GPT4Cost{RPM: 35})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.run("peek project-7 gpt-4", 0, notStored("project-7", "gpt-4"), "")
	r.run("top gpt-4", 1, "", "sluice: no bucket of gpt-4 in redis://ADDR, prefix sluice:: none was used, "+
		"all have expired, or the name, prefix or Redis is wrong\n")
	const there = `ENTITY     LIMIT                        USED  AVAILABLE    BURST  FULL IN
project-7  rpm    --------------------    3%        965    1,000  2.1s
project-7  tpm    --------------------    0%    150,000  150,000  now
1 bucket read in 0s
`
	r.run("top gpt-4 --prefix app:", 0, there, "")
	t.Setenv("SLUICE_REDIS_PREFIX", "app:")
	r.run("top gpt-4", 0, there, "")
}

// TestRedisForms: a socket of this machine, several nodes, and what a Sentinel watches are reached as
// go-redis reaches them.
func TestRedisForms(t *testing.T) {
	sequential(t)
	r := newCluster(t, demo)
	r.acquire(limits.User{ID: "1", Project: limits.Project{ID: "7"}}, limits.GPT4Cost{RPM: 35})
	r.client = redis.NewClient(&redis.Options{Addr: r.server.Addr()})
	t.Cleanup(func() { _ = r.client.Close() })
	r.acquire(limits.User{ID: "1", Project: limits.Project{ID: "7"}}, limits.GPT4Cost{RPM: 35})
	host, port, err := net.SplitHostPort(r.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	sentinel, err := server.NewServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sentinel.Close)
	if err := sentinel.Register("SENTINEL", func(c *server.Peer, _ string, args []string) {
		if strings.EqualFold(args[0], "get-master-addr-by-name") && args[1] == "limits" {
			c.WriteStrings([]string{host, port})
			return
		}
		c.WriteLen(0)
	}); err != nil {
		t.Fatal(err)
	}
	if err := sentinel.Register("SUBSCRIBE", func(c *server.Peer, _ string, args []string) {
		for i, channel := range args {
			c.WritePushLen(3)
			c.WriteBulk("subscribe")
			c.WriteBulk(channel)
			c.WriteInt(i + 1)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{
		"redis://" + r.server.Addr() + "/0", "redis://" + r.server.Addr() + "?addr=" + r.server.Addr(),
		"redis://" + sentinel.Addr().String() + "?master_name=limits",
	} {
		code, out, errs := command(t.Context(), "peek", "user-1", "gpt-4", "--file", demo, "--redis", url)
		expect(t, code, out, errs, 0, `user-1 on gpt-4
  LIMIT  AVAILABLE  CAPACITY   BURST  REFILL           FULL IN
  rpm           65       100     100  100 every 1m     21s
  tpm       15,000    10,000  15,000  10,000 every 1m  now
`, "")
	}
}

// TestRedisCluster: any node's URL will do to find what is on all of them.
func TestRedisCluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	client := cluster.Client(t)
	lim, err := limits.New(redisstore.New(client))
	if err != nil {
		t.Fatal(err)
	}
	const many = 20 // of which no node has all
	for i := range many {
		if _, err := lim.GPT4.Acquire(t.Context(), limits.Project{ID: string(rune('a' + i))},
			limits.GPT4Cost{RPM: 900}); err != nil {
			t.Fatal(err)
		}
	}
	for _, options := range []string{"", "?addr=" + cluster.Addrs()[1]} {
		url := "redis://" + cluster.Addrs()[0] + options
		code, out, errs := command(t.Context(), "top", "gpt-4", "--limit", "rpm", "--file", demo, "--redis", url)
		if code != 0 || strings.Count(out, "project-") != many || !strings.Contains(out, "\n20 buckets read in ") ||
			errs != "" {
			t.Errorf("%s: exit code %d\n%s%s", url, code, out, errs)
		}
		for _, line := range onRedis {
			code, out, errs := command(t.Context(), append(strings.Fields(line), "--file", demo, "--redis", url)...)
			if want := strings.HasPrefix(line, "reset"); code != 0 != want || strings.Contains(errs, "MOVED") {
				t.Errorf("%s: exit code %d\n%s%s", line, code, out, errs)
			}
		}
	}
}
