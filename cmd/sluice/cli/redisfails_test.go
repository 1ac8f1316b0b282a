package cli_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/store"
)

// onRedis are commands that talk to a Redis: all there are.
var onRedis = []string{
	"peek user-1 gpt-4", "top gpt-4", "reset user-1 gpt-4", "override set user-1 gpt-4 rpm=50",
	"override get user-1 gpt-4",
	"override list gpt-4", "override export", "override delete user-1 gpt-4", "override explain user-1 gpt-4",
	"entity put user-1 --parent project-7",
	"entity calendar user-1 --since 2026-01-31",
	"entity show user-1", "entity children project-7", "entity delete user-1", "entity erase user-1",
}

// each runs all commands with flags, which are to fail with stderr and to print nothing else.
func each(t *testing.T, stderr string, flags ...string) {
	t.Helper()
	for _, line := range onRedis {
		got, out, errs := command(t.Context(), append(append(strings.Fields(line), "--file", demo), flags...)...)
		if got != 1 || out != "" || !sameFacts(errs, stderr) {
			t.Errorf("%s %q: exit code %d\n%s%s\nwant 1\n%s", line, flags, got, out, errs, stderr)
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
	sequential(t)
	addr := closed(t)
	for _, options := range []string{"", "&addr=" + addr} {
		each(t, "sluice: redis://"+addr+"/0 does not answer"+
			": start Redis there, or correct the URL (--redis, SLUICE_REDIS_URL)\n",
			"--redis", "redis://ann:sesame@"+addr+"/0?max_retries=-1"+options)
	}
	none := filepath.Join(t.TempDir(), "none.sock")
	each(t, "sluice: unix://"+none+" does not answer"+
		" (connect: no such file or directory): start Redis there, or correct the URL (--redis, "+
		"SLUICE_REDIS_URL)\n",
		"--redis", "unix://ann:sesame@"+none)

	s := miniredis.RunT(t)
	s.RequireUserAuth("ann", "sesame")
	refused := "sluice: redis://" + s.Addr() +
		" does not accept the user or the password: pass them in the URL, " +
		"as in redis://user:password@host:6379 (--redis, SLUICE_REDIS_URL)\n"
	each(t, refused, "--redis", "redis://ann:open@"+s.Addr())
	each(t, refused, "--redis", "redis://"+s.Addr())
	t.Setenv("SLUICE_REDIS_URL", "redis://ann:open@"+s.Addr())
	each(t, refused)

	code, out, errs := command(t.Context(), "peek", "project-1", "gpt-4", "--file", demo, "--redis",
		"redis://ann:sesame@"+s.Addr())
	if code != 0 || out != notStored("project-1", "gpt-4") || errs != "" {
		t.Errorf("the control, with the right password: exit code %d\n%s%s", code, out, errs)
	}
}

// TestRedisIsNone: what answers is something else, or speaks TLS where none is asked for, or has a
// certificate that nobody knows.
func TestRedisIsNone(t *testing.T) {
	sequential(t)
	plain, secure := httptest.NewServer(nil), httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail, as they are to
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	is := func(scheme string, s *httptest.Server) string { return scheme + s.Listener.Addr().String() }
	const port = "is that its port, and is rediss:// for TLS, redis:// for none? (--redis, SLUICE_REDIS_URL)\n"
	for url, want := range map[string][2]string{
		is("redis://", plain): {" does not answer as Redis does: redis: can't parse ", port},
		is("rediss://",
			plain): {" does not answer as Redis does: tls: first record does not look like a TLS handshake: ", port},
		is("redis://", secure): {" does not answer as Redis does: ", port},
		is("rediss://", secure): {" shows a certificate that this machine does not trust: ",
			": set SSL_CERT_FILE to a file with its CA's, or name the host that it is for\n"},
	} {
		given := strings.Replace(url, "://", "://:sesame@", 1) + "?max_retries=-1"
		code, out, errs := command(t.Context(), "peek", "project-1", "gpt-4", "--file", demo, "--redis", given)
		if code != 1 || out != "" || !hasFacts(errs, "sluice: "+url+want[0]) ||
			!hasFacts(errs, want[1]) || strings.Contains(errs, "sesame") {
			t.Errorf("exit code %d\n%s%s", code, out, errs)
		}
	}
}

// TestRedisHangs: who is interrupted does not wait for a Redis that does not answer, however long the client
// would.
func TestRedisHangs(t *testing.T) {
	var config net.ListenConfig
	silent, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for _, options := range []string{"", "&addr=" + silent.Addr().String()} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if _, err := silent.Accept(); err == nil {
				cancel()
			}
		}()
		url := "redis://" + silent.Addr().String() + "?max_retries=-1&dial_timeout=1h&read_timeout=1h" + options
		code, out, errs := command(ctx, "peek", "project-1", "gpt-4", "--file", demo, "--redis", url)
		if code != 1 || out != "" || !hasFacts(errs, "context canceled\n") {
			t.Errorf("%q: exit code %d\n%s%s", options, code, out, errs)
		}
		cancel()
	}
}

// TestRedisTakesNoWrites: a replica, and a Redis that is full, are said to be that.
func TestRedisTakesNoWrites(t *testing.T) {
	sequential(t)
	s := miniredis.RunT(t)
	for answer, want := range map[string]string{
		"READONLY You can't write against a read only replica.": "is a replica, which accepts no writes: pass " +
			"the " +
			"URL of its master (--redis, SLUICE_REDIS_URL)",
		"OOM command not allowed when used memory > 'maxmemory'.": "has no memory left to write to: raise its " +
			"maxmemory",
	} {
		s.SetError(answer)
		each(t, "sluice: redis://"+s.Addr()+" "+want+"\n", "--redis", "redis://"+s.Addr()+"?max_retries=-1")
	}
}

// TestRedisHelp: help says which variable there is, not what it has.
func TestRedisHelp(t *testing.T) {
	t.Setenv("SLUICE_REDIS_URL", "redis://:sesame@localhost")
	code, out, errs := command(t.Context(), "peek", "--help")
	if code != 0 || errs != "" || strings.Contains(out, "sesame") ||
		!strings.Contains(out, "$SLUICE_REDIS_URL") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// TestRedisRefuses: what a Redis says to the user of the URL, with what to do.
func TestRedisRefuses(t *testing.T) {
	sequential(t)
	s := miniredis.RunT(t)
	s.SetError("NOPERM User ann has no permissions to run the 'hgetall' command")
	each(t, "sluice: Redis denies the user what the store needs: NOPERM User ann has no permissions to run "+
		"the 'hgetall' command; "+
		"grant it: ACL SETUSER <user> ~sluice:* +@read +@write +@scripting +@connection +info +time\n", "--redis",
		"redis://"+s.Addr())
	loading := errors.New("LOADING Redis is loading the dataset in memory")
	s.SetError(loading.Error())
	unavailable := &store.UnavailableError{Resource: "Redis", Attempts: 1, Err: loading}
	each(t, unavailable.Error()+"\n", "--redis", "redis://"+s.Addr()+"?max_retries=-1")
}

// TestRedisWithoutSchema: the numbers are in limits.yaml alone.
func TestRedisWithoutSchema(t *testing.T) {
	sequential(t)
	r := newRedis(t, "none.yaml")
	for _, line := range []string{"peek user-1 gpt-4", "top gpt-4", "reset user-1 gpt-4"} {
		r.run(line, 1, "", "sluice: read schema: open none.yaml: no such file or directory (sluice init writes "+
			"one); pass --file, or run the command in the schema's folder\n")
	}
	r = newRedis(t, demo)
	r.run("peek user-1 gpt4", 2, "", "sluice: "+demo+
		" has no resource \"gpt4\": did you mean \"gpt-4\"?; run `sluice peek --help`\n")
	r.run("top gpt-4 --kind team", 2, "", "sluice: "+demo+
		" has no kind \"team\", and \"team\" is no entity, since it has no '-': "+
		"it can be org, project or user; run `sluice top --help`\n")
}

// TestRedisTop: what is no bucket of the schema is said, and what is no bucket at all fails.
func TestRedisTop(t *testing.T) {
	sequential(t)
	r := newRedis(t, demo)
	r.acquire(limits.User{ID: "1", Project: limits.Project{ID: "7"}}, limits.GPT4Cost{RPM: 35, TPM: 14_000})
	r.server.HSet("sluice:gpt-4:rph:project-7", "tokens", "1", "lastRefill", "1")
	r.server.HSet("sluice:gpt-4:rpm:team-7", "tokens", "1", "lastRefill", "1")
	const strange = "not listed, since " + demo + " does not have them for gpt-4: kind team, limit rph\n"
	r.run("top gpt-4 --limit rpm --json", 0, `{
  "redis": "redis://ADDR",
  "prefix": "sluice:",
  "resource": "gpt-4",
  "buckets": 2,
  "seconds": 0,
  "rows": [
    {
      "entity": "user-1",
      "limit": "rpm",
      "used": 0.35,
      "available_milli": 65000,
      "burst_milli": 100000,
      "full_in_ms": 21000
    },
    {
      "entity": "project-7",
      "limit": "rpm",
      "used": 0.035,
      "available_milli": 965000,
      "burst_milli": 1000000,
      "full_in_ms": 2100
    }
  ]
}
`, strange)
	r.server.Del("sluice:gpt-4:rpm:user-1")
	if err := r.server.Set("sluice:gpt-4:rpm:user-1", "x"); err != nil {
		t.Fatal(err)
	}
	const wrong = "sluice: the key sluice:gpt-4:rpm:user-1 is not a bucket: " +
		"WRONGTYPE Operation against a key holding the wrong kind of value; delete it, since a missing bucket is " +
		"a " +
		"full one, or use another Prefix\n"
	r.run(
		"top gpt-4 --kind user --limit tpm",
		1,
		`ENTITY  LIMIT                        USED  AVAILABLE   BURST  FULL IN
user-1  tpm    ##################--   93%      1,000  15,000  1m24s
1 bucket read in 0s
`,
		wrong,
	)
	for _, line := range []string{"peek user-1 gpt-4", "reset user-1 gpt-4", "override explain user-1 gpt-4"} {
		r.run(line, 1, "", wrong)
	}
}
