package cli_test

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

// onRedis are commands that talk to a Redis: all there are.
var onRedis = []string{
	"peek user-1 gpt-4", "top gpt-4", "reset user-1 gpt-4", "override set user-1 gpt-4 rpm=50", "override get user-1 gpt-4",
	"override list gpt-4", "override delete user-1 gpt-4", "override explain user-1 gpt-4", "entity put user-1 --parent project-7",
	"entity show user-1", "entity children project-7", "entity delete user-1",
}

// each runs all commands with flags, which are to fail with stderr and to print nothing else.
func each(t *testing.T, code int, stderr string, flags ...string) {
	t.Helper()
	for _, line := range onRedis {
		got, out, errs := command(t.Context(), append(append(strings.Fields(line), "--file", demo), flags...)...)
		if got != code || out != "" || errs != stderr {
			t.Errorf("%s %q: exit code %d\n%s%s\nwant %d\n%s", line, flags, got, out, errs, code, stderr)
		}
	}
}

// closed is an address at which nobody listens.
func closed(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// TestRedisAnswersNot: all commands say where nobody answers, and who refuses whom, without the password.
func TestRedisAnswersNot(t *testing.T) {
	addr := closed(t)
	for _, options := range []string{"", "&addr=" + addr} {
		each(t, 1, "sluice: nothing answers at redis://"+addr+"/0: is Redis running there? (--redis, SLUICE_REDIS_URL)\n",
			"--redis", "redis://ann:sesame@"+addr+"/0?max_retries=-1"+options)
	}
	none := filepath.Join(t.TempDir(), "none.sock")
	each(t, 1, "sluice: nothing answers at unix://"+none+" (connect: no such file or directory): is Redis running there? (--redis, SLUICE_REDIS_URL)\n",
		"--redis", "unix://ann:sesame@"+none)

	s := miniredis.RunT(t)
	s.RequireUserAuth("ann", "sesame")
	refused := "sluice: redis://" + s.Addr() + " does not accept the user or the password: pass them in the URL, " +
		"as in redis://user:password@host:6379 (--redis, SLUICE_REDIS_URL)\n"
	each(t, 1, refused, "--redis", "redis://ann:open@"+s.Addr())
	each(t, 1, refused, "--redis", "redis://"+s.Addr())
	t.Setenv("SLUICE_REDIS_URL", "redis://ann:open@"+s.Addr())
	each(t, 1, refused)

	code, out, errs := command(t.Context(), "peek", "project-1", "gpt-4", "--file", demo, "--redis", "redis://ann:sesame@"+s.Addr())
	if code != 0 || !strings.HasPrefix(out, "project-1 on gpt-4: nothing is stored") || errs != "" {
		t.Errorf("the control, with the right password: exit code %d\n%s%s", code, out, errs)
	}
}

// TestRedisRefuses: what a Redis says to the user of the URL, with what to do.
func TestRedisRefuses(t *testing.T) {
	s := miniredis.RunT(t)
	s.SetError("NOPERM User ann has no permissions to run the 'hgetall' command")
	each(t, 1, "sluice: Redis denies the user what the store needs: NOPERM User ann has no permissions to run the 'hgetall' command; "+
		"grant it: ACL SETUSER <user> ~sluice:* +@read +@write +@scripting +@connection +info +time\n", "--redis", "redis://"+s.Addr())
	s.SetError("LOADING Redis is loading the dataset in memory")
	each(t, 1, "sluice: Redis: store unavailable after 1 attempt: LOADING Redis is loading the dataset in memory\n",
		"--redis", "redis://"+s.Addr()+"?max_retries=-1")
}

// TestRedisURL: what is no URL of a Redis is said without what it is, which may be a password.
func TestRedisURL(t *testing.T) {
	const forms = "want redis://[[user]:password@]host:port[/db], rediss:// for TLS, unix:///path/to/socket, " +
		"?master_name=NAME for a Sentinel, ?addr=host:port for more nodes of a cluster\n"
	for url, want := range map[string]string{
		"localhost:6379":                           "that is no URL of a Redis",
		"http://ann:sesame@localhost":              "that is no URL of a Redis",
		"redis://:sesame":                          "that is no URL of a Redis",
		"redis://ann:sesame%zz@localhost":          "that is no URL of a Redis",
		"redis://:ses/ame@localhost":               "that is no URL of a Redis",
		"redis://:sesame@h/one":                    `invalid database number: "one"`,
		"redis://:sesame@h/1/2":                    "invalid URL path: /1/2",
		"redis://:sesame@h?tls=1":                  "unexpected option: tls",
		"redis://:sesame@h?addr=x":                 "unable to parse addr param: x",
		"redis://h?master_name=m&password=s&pw=1":  "unexpected option: pw",
		"redis://h?master_name=m&addr=:sesame@h:1": "unable to parse addr param: ***@h:1",
		"redis://ses/ame@localhost":                `invalid database number: ***@localhost"`,
	} {
		code, out, errs := command(t.Context(), "peek", "user-1", "gpt-4", "--file", demo, "--redis", url)
		if code != 2 || out != "" || !strings.HasPrefix(errs, "sluice: --redis: "+want) || strings.Contains(errs, "sesame") ||
			!strings.HasSuffix(errs, forms[:len(forms)-1]+"; run `sluice peek --help`\n") {
			t.Errorf("%s: exit code %d\n%s%s", url, code, out, errs)
		}
	}
	code, out, errs := command(t.Context(), "peek", "user-1", "gpt-4", "redis://:sesame@localhost") // --redis left out
	if code != 2 || out != "" || strings.Contains(errs, "sesame") || !strings.Contains(errs, "redis://***") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// TestRedisOrTable: nobody is led to another place than was meant.
func TestRedisOrTable(t *testing.T) {
	r := newRedis(t, demo)
	url := "redis://" + r.server.Addr()
	fails := func(want string, flags ...string) {
		t.Helper()
		code, out, errs := command(t.Context(), append([]string{"reset", "project-1", "gpt-4", "--file", demo}, flags...)...)
		if code != 2 || out != "" || errs != "sluice: "+want+"; run `sluice reset --help`\n" {
			t.Errorf("%q: exit code %d\n%s%s", flags, code, out, errs)
		}
	}
	fails("--redis is a Redis, --table is about a table of DynamoDB: pass one", "--redis", url, "--table", "rate_limits")
	fails("--redis is a Redis, --endpoint is about a table of DynamoDB: pass one", "--endpoint", "http://127.0.0.1:1", "--redis", url)
	fails("--redis is a Redis, --region is about a table of DynamoDB: pass one", "--region", "eu-west-1", "--redis", url)
	fails("--redis is empty: pass a URL, or leave the flag out for a table of DynamoDB", "--redis=")
	fails("--prefix is about keys in Redis: pass --redis too", "--prefix", "x:")
	fails("--prefix is empty: pass one, or leave the flag out for sluice:", "--redis", url, "--prefix=")
	fails("--root is about keys in Redis: pass --redis too", "--root", "project-1")

	const nothing = "sluice: project-1 on gpt-4: nothing is stored under this name: "
	t.Setenv("SLUICE_REDIS_URL", url)
	code, _, errs := command(t.Context(), "reset", "project-1", "gpt-4", "--file", demo)
	if code != 1 || !strings.HasPrefix(errs, nothing) {
		t.Errorf("the environment's Redis: exit code %d\n%s", code, errs)
	}
	t.Setenv("SLUICE_TABLE", "rate_limits")
	fails("SLUICE_REDIS_URL and SLUICE_TABLE are both set: pass --redis or --table")
	code, _, errs = command(t.Context(), "reset", "project-1", "gpt-4", "--file", demo, "--redis", url)
	if code != 1 || !strings.HasPrefix(errs, nothing) {
		t.Errorf("--redis beside SLUICE_TABLE: exit code %d\n%s", code, errs)
	}
	dynamo := "http://" + closed(t)
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	code, _, errs = command(t.Context(), "reset", "project-1", "gpt-4", "--endpoint", dynamo)
	if code != 1 || !strings.HasPrefix(errs, "sluice: nothing answers at "+dynamo) {
		t.Errorf("--endpoint beside SLUICE_REDIS_URL: exit code %d\n%s", code, errs)
	}
}

// TestNotOnRedis: what is DynamoDB's says so.
func TestNotOnRedis(t *testing.T) {
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
		code, out, errs := command(t.Context(), append(strings.Fields(line), "--redis", "redis://:sesame@localhost")...)
		want := "sluice: " + name + " is about DynamoDB alone, and takes no --redis: " + why + "; run `sluice " + path + " --help`\n"
		if code != 2 || out != "" || errs != want {
			t.Errorf("%s: exit code %d\n%s%s\nwant\n%s", line, code, out, errs, want)
		}
	}
}

// TestRedisPrefix: another prefix is another place.
func TestRedisPrefix(t *testing.T) {
	r := newRedis(t, demo)
	lim, err := limits.New(redisstore.New(r.client, redisstore.Prefix("app:")), runtime.WithClock(fixed{start}))
	if err == nil {
		_, err = lim.GPT4.Acquire(t.Context(), limits.Project{ID: "7"}, limits.GPT4Cost{RPM: 35})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.run("peek project-7 gpt-4", 0, "project-7 on gpt-4: nothing is stored under this name: never used, expired, misspelt, "+
		"or the arguments are the wrong way round; an unused bucket is full\n", "")
	r.run("top gpt-4", 1, "", "sluice: no bucket of gpt-4 in redis://ADDR, prefix sluice:: "+
		"never used, expired since, or another name, prefix or Redis is meant\n")
	const there = `ENTITY     LIMIT                        USED  AVAILABLE    BURST  FULL IN
project-7  rpm    --------------------    3%        965    1,000  2.1s
project-7  tpm    --------------------    0%    150,000  150,000  now
1 bucket read in 0s
`
	r.run("top gpt-4 --prefix app:", 0, there, "")
	t.Setenv("SLUICE_REDIS_PREFIX", "app:")
	r.run("top gpt-4", 0, there, "")
}

// TestRedisWithoutSchema: the numbers are in limits.yaml alone.
func TestRedisWithoutSchema(t *testing.T) {
	r := newRedis(t, "none.yaml")
	for _, line := range []string{"peek user-1 gpt-4", "top gpt-4", "reset user-1 gpt-4"} {
		r.run(line, 1, "", "sluice: read schema: open none.yaml: no such file or directory (sluice init writes one); pass --file, or run this where the schema is\n")
	}
	r = newRedis(t, demo)
	r.run("peek user-1 gpt4", 2, "", "sluice: "+demo+" has no resource \"gpt4\": did you mean \"gpt-4\"?; run `sluice peek --help`\n")
	r.run("top gpt-4 --kind team", 2, "", "sluice: "+demo+" has no kind \"team\", and an entity has a '-': it can be org, project or user; run `sluice top --help`\n")
}

// TestRedisTop: what is no bucket of the schema is said, and what is no bucket at all fails.
func TestRedisTop(t *testing.T) {
	r := newRedis(t, demo)
	r.acquire(limits.User{ID: "1", Project: limits.Project{ID: "7"}}, limits.GPT4Cost{RPM: 35, TPM: 14_000})
	r.server.HSet("sluice:gpt-4:rph:{project-7}#project-7", "tokens", "1", "lastRefill", "1")
	r.server.HSet("sluice:gpt-4:rpm:{team-7}#team-7", "tokens", "1", "lastRefill", "1")
	const strange = "not listed, since " + demo + " does not have them on gpt-4: kind team, limit rph\n"
	r.run("top gpt-4 --limit rpm --json", 0, `{
  "redis": "redis://ADDR",
  "prefix": "sluice:",
  "resource": "gpt-4",
  "buckets": 2,
  "seconds": 0,
  "rows": [
    {
      "entity": "user-1",
      "root": "project-7",
      "limit": "rpm",
      "used": 0.35,
      "available_milli": 65000,
      "burst_milli": 100000,
      "full_in_ms": 21000
    },
    {
      "entity": "project-7",
      "root": "project-7",
      "limit": "rpm",
      "used": 0.035,
      "available_milli": 965000,
      "burst_milli": 1000000,
      "full_in_ms": 2100
    }
  ]
}
`, strange)
	r.server.Del("sluice:gpt-4:rpm:{project-7}#user-1")
	if err := r.server.Set("sluice:gpt-4:rpm:{project-7}#user-1", "x"); err != nil {
		t.Fatal(err)
	}
	const wrong = "sluice: the key sluice:gpt-4:rpm:{project-7}#user-1 is no bucket: " +
		"WRONGTYPE Operation against a key holding the wrong kind of value; delete it, as a missing bucket is a full one, or use another Prefix\n"
	r.run("top gpt-4 --kind user --limit tpm", 1, `ENTITY  LIMIT                        USED  AVAILABLE   BURST  FULL IN
user-1  tpm    ##################--   93%      1,000  15,000  1m24s
1 bucket read in 0s
`, wrong)
	for _, line := range []string{"peek user-1 gpt-4", "peek user-1 gpt-4 --root project-7", "reset user-1 gpt-4", "override explain user-1 gpt-4"} {
		r.run(line, 1, "", wrong)
	}
}

// TestRedisForms: a socket of this machine, several nodes, and what a Sentinel watches are reached as go-redis reaches them.
func TestRedisForms(t *testing.T) {
	r := newRedis(t, demo)
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
		if _, err := lim.GPT4.Acquire(t.Context(), limits.Project{ID: string(rune('a' + i))}, limits.GPT4Cost{RPM: 900}); err != nil {
			t.Fatal(err)
		}
	}
	for _, options := range []string{"", "?addr=" + cluster.Addrs()[1]} {
		url := "redis://" + cluster.Addrs()[0] + options
		code, out, errs := command(t.Context(), "top", "gpt-4", "--limit", "rpm", "--file", demo, "--redis", url)
		if code != 0 || strings.Count(out, "project-") != many || !strings.Contains(out, "\n20 buckets read in ") || errs != "" {
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
