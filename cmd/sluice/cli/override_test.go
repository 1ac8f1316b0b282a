package cli_test

import (
	"fmt"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
)

// demo is the schema of the package generated.
const demo = "../../../limits.yaml"

// acquire takes tokens as a process does that has just started, and so remembers no overrides.
func acquire(s session, table string, cost limits.GPT4Cost) {
	s.Helper()
	lim, err := limits.New(dynamo.New(storetest.Dated(s.client, fixed{start}), table),
		runtime.WithClock(fixed{start}))
	if err == nil {
		_, err = lim.GPT4.Acquire(s.Context(), limits.User{ID: "123", Project: limits.Project{ID: "7"}}, cost)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// above is what explain adds where calls on a user charge another bucket too.
const above = "a call on kind user charges its project too: run `sluice override explain project-<id> " +
	"gpt-4`\n"

// TestExplainShadow: who looks up why a caller is not refused is told.
func TestExplainShadow(t *testing.T) {
	sequential(t)
	text, err := os.ReadFile(demo)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "limits.yaml")
	shadow := strings.Replace(string(text), "    on_unavailable: local ",
		"    shadow: true\n    on_unavailable: local ", 1)
	if err := os.WriteFile(path, []byte(shadow), 0o600); err != nil {
		t.Fatal(err)
	}
	const said = "in shadow: these limits are charged but never deny a call\n"
	for schema, want := range map[string]bool{path: true, demo: false} {
		s, _ := newSession(t, schema)
		code, out, errs := sluice(t, start, append([]string{"override", "explain", "user-123", "gpt-4"},
			s.flags...)...)
		if code != 0 || strings.Contains(out, said) != want {
			t.Errorf("exit code %d, want it said: %t\n%s%s", code, want, out, errs)
		}
	}
}

// TestOverride is the life of overrides beside a bucket in use. Their revisions are the time in ms.
func TestOverride(t *testing.T) {
	sequential(t)
	s, table := newSession(t, demo)
	s.run("override get user-123 gpt-4", 0, "user-123 on gpt-4: nothing is overridden, revision none\n", "")
	s.run("override list gpt-4", 0, "", "nothing is overridden on gpt-4\n")
	s.run("override delete user-123 gpt-4", 0, "user-123 on gpt-4: nothing to change, revision none\n", "")
	s.run("override explain user-123 gpt-4", 0, `user-123 on gpt-4
  LIMIT  LEVEL     CAPACITY   BURST  REFILL
  rpm    user-123         -       -  -
         user             -       -  -
         schema         100     100  100 every 1m     in force
  tpm    user-123         -       -  -
         user             -       -  -
         schema      10,000  15,000  10,000 every 1m  in force
no bucket is stored: the next acquire makes a full one with the limits in force
`+above, "")
	if n := s.items(); n != 0 {
		t.Errorf("%d items were written by commands that change nothing", n)
	}

	s.run("override set user gpt-4 tpm=20_000", 0, `user on gpt-4: revision 1772366400000, was none
  LIMIT       CAPACITY   BURST  REFILL           FROM
  tpm    was    10,000  15,000  10,000 every 1m  schema
         now    20,000  20,000  20,000 every 1m  user
`+takenUp, "")
	s.run(
		"override set user-123 gpt-4 rpm=200,burst=300",
		0,
		`user-123 on gpt-4: revision 1772366400000, was none
  LIMIT       CAPACITY  BURST  REFILL        FROM
  rpm    was       100    100  100 every 1m  schema
         now       200    300  200 every 1m  user-123
`+takenUp,
		"",
	)
	s.run("override set user-123 gpt-4 rpm=200,burst=300", 0,
		"user-123 on gpt-4: nothing to change, revision 1772366400000\n", "")
	s.run("override get user-123 gpt-4", 0, `user-123 on gpt-4: revision 1772366400000
  LIMIT  CAPACITY  BURST  REFILL
  rpm         200    300  200 every 1m
`, "")
	s.run("override list gpt-4", 0, `AT        LIMIT  CAPACITY   BURST  REFILL           REVISION
user      tpm      20,000  20,000  20,000 every 1m  1772366400000
user-123  rpm         200     300  200 every 1m     1772366400000
`, "")

	const explained = `user-123 on gpt-4
  LIMIT  LEVEL     CAPACITY   BURST  REFILL
  rpm    user-123       200     300  200 every 1m     in force
         user             -       -  -
         schema         100     100  100 every 1m
  tpm    user-123         -       -  -
         user        20,000  20,000  20,000 every 1m  in force
         schema      10,000  15,000  10,000 every 1m
`
	s.run("override explain user-123 gpt-4", 0, explained+
		"no bucket is stored: the next acquire makes a full one with the limits in force\n"+above, "")
	acquire(s, table, limits.GPT4Cost{RPM: 35, TPM: 14_000})
	const first = `  LIMIT  AVAILABLE  CAPACITY   BURST  REFILL           FULL IN
  rpm          265       200     300  200 every 1m     10.5s
  tpm        6,000    20,000  20,000  20,000 every 1m  42s
`
	s.run("override explain user-123 gpt-4", 0, explained+"the bucket has the limits in force\n"+first+above, "")

	// The bucket keeps its numbers until it is used.
	s.run(
		"override set user-123 gpt-4 rpm=5,refill=10 tpm=1_000/1s",
		0,
		`user-123 on gpt-4: revision 1772366400001, was 1772366400000
  LIMIT       CAPACITY   BURST  REFILL           FROM
  rpm    was       200     300  200 every 1m     user-123
         now         5       5  10 every 1m      user-123
  tpm    was    20,000  20,000  20,000 every 1m  user
         now     1,000   1,000  1,000 every 1s   user-123
`+takenUp,
		"",
	)
	const lowered = `user-123 on gpt-4
  LIMIT  LEVEL     CAPACITY   BURST  REFILL
  rpm    user-123         5       5  10 every 1m      in force
         user             -       -  -
         schema         100     100  100 every 1m
  tpm    user-123     1,000   1,000  1,000 every 1s   in force
         user        20,000  20,000  20,000 every 1m
         schema      10,000  15,000  10,000 every 1m
`
	s.run("override explain user-123 gpt-4", 0, lowered+"the bucket has other limits for rpm, tpm: the next "+
		"admitted acquire of a process whose cache (1m) has expired gives it those in force\n"+
		first+above, "")
	acquire(s, table, limits.GPT4Cost{RPM: 1})
	s.run("override explain user-123 gpt-4", 0, lowered+`the bucket has the limits in force
  LIMIT  AVAILABLE  CAPACITY  BURST  REFILL          FULL IN
  rpm            4         5      5  10 every 1m     6s
  tpm        1,000     1,000  1,000  1,000 every 1s  now
`+above, "")

	s.run("override delete user-123 gpt-4 rpm", 0, `user-123 on gpt-4: revision 1772366400002, was 1772366400001
  LIMIT       CAPACITY  BURST  REFILL        FROM
  rpm    was         5      5  10 every 1m   user-123
         now       100    100  100 every 1m  schema
`+takenUp, "")
	s.run("override delete user-123 gpt-4 rpm", 0,
		"user-123 on gpt-4: nothing to change, revision 1772366400002\n", "")
	s.run("override delete user-123 gpt-4", 0, `user-123 on gpt-4: revision 1772366400003, was 1772366400002
  LIMIT       CAPACITY   BURST  REFILL           FROM
  tpm    was     1,000   1,000  1,000 every 1s   user-123
         now    20,000  20,000  20,000 every 1m  user
`+takenUp, "")
	s.run("override get user-123 gpt-4", 0, "user-123 on gpt-4: nothing is overridden, revision 1772366400003\n",
		"")
	s.run("override list gpt-4", 0, `AT    LIMIT  CAPACITY   BURST  REFILL           REVISION
user  tpm      20,000  20,000  20,000 every 1m  1772366400000
`, "")
}

// TestOverrideByTwo: of two operators who have seen the same, the second is told.
func TestOverrideByTwo(t *testing.T) {
	sequential(t)
	s, _ := newSession(t, demo)
	lost := func(is, not string) string {
		return "sluice: the override of gpt-4 at user-123 is at revision " + is + ", not " + not +
			": nothing was written; run `sluice override get user-123 gpt-4`\n"
	}
	s.run(
		"override set user-123 gpt-4 rpm=200 --revision none",
		0,
		`user-123 on gpt-4: revision 1772366400000, was none
  LIMIT       CAPACITY  BURST  REFILL        FROM
  rpm    was       100    100  100 every 1m  schema
         now       200    200  200 every 1m  user-123
`+takenUp,
		"",
	)
	s.run("override set user-123 gpt-4 rpm=300 --revision none", 1, "", lost("1772366400000", "none"))
	s.run(
		"override set user-123 gpt-4 rpm=300 --revision 1772366400000",
		0,
		`user-123 on gpt-4: revision 1772366400001, was 1772366400000
  LIMIT       CAPACITY  BURST  REFILL        FROM
  rpm    was       200    200  200 every 1m  user-123
         now       300    300  300 every 1m  user-123
`+takenUp,
		"",
	)
	s.run("override set user-123 gpt-4 rpm=400 --revision 1772366400000", 1, "",
		lost("1772366400001", "1772366400000"))
	s.run("override delete user-123 gpt-4 --revision 1772366400000", 1, "",
		lost("1772366400001", "1772366400000"))
	s.run("override get user-123 gpt-4", 0, `user-123 on gpt-4: revision 1772366400001
  LIMIT  CAPACITY  BURST  REFILL
  rpm         300    300  300 every 1m
`, "")
}

// TestOverrideRace: somebody writes between a command's read and its write.
func TestOverrideRace(t *testing.T) {
	s, table := newSession(t, demo)
	engine, err := url.Parse(dynamotest.Endpoint(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(engine)
	racing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactWriteItems") {
			s.run("override set user-123 gpt-4 tpm=20_000", 0, `user-123 on gpt-4: revision 1772366400000, was none
  LIMIT       CAPACITY   BURST  REFILL           FROM
  tpm    was    10,000  15,000  10,000 every 1m  schema
         now    20,000  20,000  20,000 every 1m  user-123
`+takenUp, "")
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(racing.Close)
	var out, errs strings.Builder
	code := cli.Program{Stdout: &out, Stderr: &errs, Now: start.Local}.Run(t.Context(),
		[]string{"override", "set", "user-123", "gpt-4", "rpm=200", "--table", table, "--file", demo, "--endpoint",
			racing.URL})
	expect(t, code, out.String(), errs.String(), 1, "",
		"sluice: the override of gpt-4 at user-123 has been changed by another write: "+
			"nothing was written; run `sluice override get user-123 gpt-4`\n")
}

// TestOverrideExplainKept: buckets that an acquire under this schema leaves as they are.
func TestOverrideExplainKept(t *testing.T) {
	sequential(t)
	s, table := newSession(t, demo)
	put := func(version int64) {
		full := bucket.Per(7, time.Second)
		of := bucket.Balance{Limit: full, Tokens: full.Burst}
		b := limits.GPT4Bucket{Entity: "user-123", Refilled: start.UnixMilli(), Version: version, RPM: of, TPM: of}
		if _, err := s.client.PutItem(t.Context(),
			&dynamodb.PutItemInput{TableName: &table, Item: b.MarshalItem()}); err != nil {
			t.Fatal(err)
		}
	}
	const revision = 100_000_000_000_000
	for version, want := range map[int64]string{
		2 * revision: "other limits for rpm, tpm, of revision 2: it keeps them, since ../../../limits.yaml is " +
			"revision 1\n",
		revision + 1: "other limits for rpm, tpm, from later overrides than the stored ones: it keeps them " +
			"until an override is set or deleted\n",
		revision: "other limits for rpm, tpm, of revision 1 like ../../../limits.yaml: it keeps them; the " +
			"service was generated from another file\n",
		0: "other limits for rpm, tpm, of revision 0: the first admitted acquire of a process of revision 1 " +
			"gives it those in force\n",
	} {
		put(version)
		code, out, errs := sluice(t, start, append([]string{"override", "explain", "user-123", "gpt-4"},
			s.flags...)...)
		if code != 0 || errs != "" || !strings.Contains(out, "\nthe bucket has "+want) {
			t.Errorf("cv %d: exit code %d\n%s%swant %s", version, code, out, errs, want)
		}
	}
}

// TestOverrideListLong: rows are aligned and printed by the hundred, under one header.
func TestOverrideListLong(t *testing.T) {
	sequential(t)
	s, table := newSession(t, demo)
	overrides := operator.NewOverrides(s.client, table, start.Local)
	spec := &store.Spec{Resource: "gpt-4", Limits: []string{"rpm", "tpm"}}
	var want strings.Builder
	want.WriteString("AT LIMIT CAPACITY BURST REFILL REVISION\n")
	for i := range 250 {
		limit := bucket.Per(int64(i+1), time.Minute)
		stored := store.Stored{At: fmt.Sprintf("user-%03d", i), Limits: []*bucket.Limit{&limit, nil}}
		if _, err := overrides.Set(t.Context(), spec, stored); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&want, "%s rpm %[2]d %[2]d %[2]d every 1m 1772366400000\n", stored.At, i+1)
	}
	code, out, errs := sluice(t, start, append([]string{"override", "list", "gpt-4"}, s.flags...)...)
	expect(t, code, regexp.MustCompile(` +`).ReplaceAllString(out, " "), errs, 0, want.String(), "")
}

// TestOverrideRefill: a raised limit with --refill admits at once; a kind has no bucket to fill.
func TestOverrideRefill(t *testing.T) {
	sequential(t)
	s, table := newSession(t, demo)
	acquire(s, table, limits.GPT4Cost{RPM: 100})
	code, _, errs := sluice(t, start, append(strings.Fields("override set user gpt-4 rpm=200 --refill"),
		s.flags...)...)
	if code != 2 || !hasFacts(errs, "sluice: --refill ") {
		t.Errorf("of a kind: exit code %d\n%s", code, errs)
	}
	code, out, errs := sluice(t, start, append(strings.Fields("override set user-123 gpt-4 rpm=200 --refill"),
		s.flags...)...)
	if code != 0 || errs != "" || !strings.HasSuffix(out, "user-123 on gpt-4: filled\n") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	s.run("peek user-123 gpt-4", 0, `user-123 on gpt-4
  LIMIT  AVAILABLE  CAPACITY   BURST  REFILL           FULL IN
  rpm          200       200     200  200 every 1m     now
  tpm       15,000    10,000  15,000  10,000 every 1m  now
`, "")
}
