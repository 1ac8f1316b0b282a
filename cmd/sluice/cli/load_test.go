package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/load"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"

	limits "github.com/sluice-go/sluice/generated"
)

// loading runs sluice load on the demo's schema.
func loading(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	program := cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}
	code = program.Run(ctx, append([]string{"load", "--file", demo}, args...))
	return code, out.String(), errs.String()
}

// report is what --json prints.
type report struct {
	load.Result

	Billed  *load.Units                            `json:"billed"`
	Cost    *struct{ Dollars, PerMillion float64 } `json:"cost"`
	Deleted *int                                   `json:"buckets_deleted"`
}

// reported runs sluice load --json.
func reported(t *testing.T, args ...string) (r report, stderr string) {
	t.Helper()
	code, out, errs := loading(t.Context(), append(args, "--json")...)
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err, out)
	}
	return r, errs
}

// TestLoadReport holds the whole report of a load in virtual time: one caller, so that what comes after what
// is always the same.
func TestLoadReport(t *testing.T) {
	sequential(t)
	for name, args := range map[string]string{
		"closed.txt": "--trip 4ms --mix user:gpt-4=3 --mix project:embeddings --cost tpm=100..2000 --settle " +
			"tpm=50..1500 " +
			"--hot 2=80% --entities 20 --price-read 0.125 --price-write 0.625 --duration 4s --cleanup",
		"open.txt":  "--trip 4ms --mix user:gpt-4 --zipf 1.5 --rate 200 --entities 100 --duration 6s",
		"calls.txt": "--mix project:embeddings --entities 1 --calls 30",
	} {
		synctest.Test(t, func(t *testing.T) {
			code, out, errs := loading(
				t.Context(),
				append([]string{"--in-process", "--concurrency", "1"}, strings.Fields(args)...)...)
			errs = regexp.MustCompile(`(?m)^(\d+s of|this process was short of CPUs:) .*\n`).
				ReplaceAllString(errs, "")
				// of instants at which calls end, and of the machine
			got := "$ sluice load --in-process --concurrency 1 " + args + "\n" + errs + out
			file := filepath.Join("testdata", "load", name)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if code != 0 || got != string(want) {
				t.Errorf(
					"exit code %d; %s: run go test -update ./cmd/sluice/cli -run LoadReport if this is as good:\n%s",
					code,
					file,
					got,
				)
			}
		})
	}
}

// usual is the table that commands go to where none is named.
const usual = "rate_limits"

// loaded is an engine that is reached as a DynamoDB is, and has a table.
func loaded(t *testing.T, table string) (engine *memdynamo.Engine, url string) {
	t.Helper()
	engine = memdynamo.New()
	if _, err := operator.CreateTable(t.Context(), engine.Client(), table); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	return engine, server.URL
}

// taken returns what stored buckets say was taken of a limit, in tokens, and whose they are.
func taken(
	t *testing.T,
	engine *memdynamo.Engine,
	resource, limit, kind string,
) (tokens int64, entities []string) {
	t.Helper()
	for page, err := range operator.Buckets(t.Context(), engine.Client(), usual, resource, kind) {
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range page.Buckets {
			entities = append(entities, b.Entity)
			for _, l := range b.Image.Extra {
				if l.Name == limit {
					tokens += l.Balance.Consumed / bucket.Milli
				}
			}
		}
	}
	return tokens, entities
}

// TestLoadCounts holds the report of a load of many callers, in virtual time, against what the engine billed:
// no call is lost, no unit.
func TestLoadCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := reported(
			t,
			"--in-process",
			"--trip",
			"2ms",
			"--calls",
			"1500",
			"--concurrency",
			"8",
			"--limiters",
			"2",
			"--entities",
			"20",
			"--hot",
			"3=60%",
			"--mix",
			"user:gpt-4",
			"--mix",
			"project:embeddings=0.5",
			"--cost",
			"tpm=5..15",
			"--settle",
			"gpt-4:tpm=4..20",
			"--duration",
			"1m",
			"--price-write",
			"1",
		)
		if r.Made != 1500 || r.Lost != 0 || r.All.Calls != 1500 || r.Ended != load.EndedCalls ||
			r.Outcomes[load.Failed].Calls != 0 ||
			r.Unsettled+r.Late != 0 {
			t.Errorf("%+v", r)
		}
		var ended, bars int64
		for _, o := range r.Outcomes {
			ended += o.Calls
			for _, b := range o.Bars {
				bars += b.Calls
			}
		}
		if ended != 1500 || bars != 1500 {
			t.Errorf("outcomes of %d calls, %d in the histograms", ended, bars)
		}
		if r.Billed == nil || r.Units.Write == 0 || math.Abs(r.Billed.Write-r.Units.Write) > 1e-6 ||
			math.Abs(r.Billed.Read-r.Units.Read) > 1e-6 {
			t.Errorf("the engine billed %+v, the report has %+v", r.Billed, r.Units)
		}
		if r.Cost == nil || math.Abs(r.Cost.Dollars-r.Units.Write/1e6) > 1e-9 {
			t.Errorf("cost %+v of %+v", r.Cost, r.Units)
		}
		if r.Settles.Calls != r.Mix[0].Admitted || r.Coalescing == 0 || r.Coalesced < r.Coalescing {
			t.Errorf(
				"%d settles of %d admitted, %d charges with %d writes",
				r.Settles.Calls,
				r.Mix[0].Admitted,
				r.Coalesced,
				r.Coalescing,
			)
		}
	})
}

// TestLoadStored holds the report of a load against what is stored: what was admitted, settled and sent in
// transactions.
func TestLoadStored(t *testing.T) {
	engine, url := loaded(t, usual)
	engine.Faults().TTLLag(time.Hour) // what expires takes its count along
	var r report
	for range 5 {
		// on a machine that is too slow calls are not answered in time, and nobody knows what of them is stored
		var errs string
		r, errs = reported(
			t,
			"--endpoint",
			url,
			"--calls",
			"200",
			"--concurrency",
			"4",
			"--entities",
			"20",
			"--mix",
			"user:gpt-4",
			"--mix",
			"project:embeddings=0.5",
			"--cost",
			"tpm=5..15",
			"--settle",
			"gpt-4:tpm=4..20",
			"--duration",
			"10m",
		)
		if !hasFacts(errs, "loading table rate_limits ("+url+"), 4 callers, as fast as they are answered\n") {
			t.Errorf("announced\n%s", errs)
		}
		if r.Billed != nil {
			t.Errorf("billed by a table: %+v", r.Billed)
		}
		if answered(r) {
			break
		}
		engine, url = loaded(t, usual)
		engine.Faults().TTLLag(time.Hour)
	}
	if !answered(r) {
		t.Fatal("no load had all of its calls answered: this machine is too slow, or calls hang")
	}
	var transactions int64
	for _, p := range r.Paths {
		if p.Path == "transact" {
			transactions = p.Calls
		}
	}
	if n := engine.Consumed().Requests["TransactWriteItems"]; int64(n) != transactions || n == 0 {
		t.Errorf("%d transactions came, the report has %d", n, transactions)
	}
	requests, users := taken(t, engine, "gpt-4", "rpm", "user")
	if admitted := r.Mix[0].Admitted; requests != admitted || r.Settles.Calls != admitted || len(users) == 0 {
		t.Errorf(
			"users' buckets have %d requests, %d were admitted and %d settled",
			requests,
			admitted,
			r.Settles.Calls,
		)
	}
	if n, _ := taken(t, engine, "gpt-4", "rpm", "project"); n != requests {
		t.Errorf("projects' buckets have %d requests, %d of their users' were admitted", n, requests)
	}
	tokens, _ := taken(t, engine, "gpt-4", "tpm", "user")
	if n, _ := taken(t, engine, "gpt-4", "tpm", "project"); n != tokens || n < 4*requests || n > 20*requests {
		t.Errorf("users consumed %d tokens, their projects %d, by %d requests", tokens, n, requests)
	}
	if n, _ := taken(t, engine, "embeddings", "rps", ""); n != r.Mix[1].Admitted {
		t.Errorf("%d taken of rps, %d admitted", n, r.Mix[1].Admitted)
	}
	for _, user := range users {
		if !strings.HasPrefix(user, "user-load-") {
			t.Errorf("%s was charged", user)
		}
	}
}

// answered reports that all calls to the store of a load were.
func answered(r report) bool {
	for _, p := range r.Paths {
		if p.Outcomes["unknown"]+p.Outcomes["failed"] > 0 {
			return false
		}
	}
	return true
}

// TestLoadCleanup: the load's own buckets go, and nobody else's.
func TestLoadCleanup(t *testing.T) {
	engine, url := loaded(t, usual)
	lim, err := limits.New(dynamo.New(engine.Client(), usual))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lim.GPT4.Acquire(t.Context(), limits.User{ID: "123", Project: limits.Project{ID: "7"}},
		limits.GPT4Cost{TPM: 1}); err != nil {
		t.Fatal(err)
	}
	r, _ := reported(
		t,
		"--endpoint",
		url,
		"--calls",
		"200",
		"--concurrency",
		"4",
		"--mix",
		"user:gpt-4",
		"--cleanup",
	)
	_, left := taken(t, engine, "gpt-4", "rpm", "")
	if bill := engine.Consumed().Tables[usual]["BatchWriteItem"].Total().Write; answered(r) &&
		bill != 2*float64(*r.Deleted) { // as docs/load.md says
		t.Errorf("%v units for %d buckets", bill, *r.Deleted)
	}
	if strings.Join(left, " ") != "project-7 user-123" || *r.Deleted < 100 {
		t.Errorf("left are the buckets of %s; %d deleted", left, *r.Deleted)
	}
}

// TestLoadInterrupted: Ctrl-C ends it with the report so far, which is no failure.
func TestLoadInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(7*time.Second, cancel)
		code, out, errs := loading(
			ctx,
			"--in-process",
			"--trip",
			"10ms",
			"--duration",
			"1h",
			"--rate",
			"20",
			"--cleanup",
		)
		if code != 0 || !strings.Contains(out, " calls in 7.0s, 20 a second, by 16 callers, ") ||
			!strings.Contains(out, "\nended early\n") ||
			!strings.Contains(out, "\ncheck: ok: each of ") ||
			!strings.Contains(out, " buckets deleted\n") {
			t.Errorf("exit code %d\n%s", code, out)
		}
		if !strings.Contains(errs, "\n1s of 1h0m0s: 2") || !strings.Contains(errs, "\n6s of 1h0m0s: 1") {
			t.Errorf("progress\n%s", errs)
		}
	})
}

// TestLoadCleanupFails: a cleanup that failed is not told as done.
func TestLoadCleanupFails(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	engine, _ := loaded(t, usual)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".BatchWriteItem") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(
				w,
				`{"__type":"com.amazon.coral.service#AccessDeniedException","message":"not authorized"}`,
			)
			return
		}
		engine.ServeHTTP(w, r)
	}))
	defer refusing.Close()
	code, out, errs := loading(
		t.Context(),
		"--endpoint",
		refusing.URL,
		"--calls",
		"20",
		"--mix",
		"user:gpt-4",
		"--cleanup",
	)
	if code != 1 || strings.Contains(out, "deleted") || !strings.Contains(errs, "sluice: clean up: ") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// TestLoadJSON holds the names of what --json prints, and what it says of the flags.
func TestLoadJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, out, _ := loading(
			t.Context(),
			"--in-process",
			"--trip",
			"2ms",
			"--calls",
			"50",
			"--mix",
			"user:gpt-4=3",
			"--cost",
			"tpm=5..1500",
			"--settle",
			"tpm=0",
			"--hot",
			"2=50%",
			"--price-read",
			"1",
			"--price-write",
			"2",
			"--cleanup",
			"--json",
		)
		var got map[string]json.RawMessage
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err, out)
		}
		want := "acquires admitted_without_request began billed buckets_deleted carried carrying concurrency " +
			"cost cpu_wait_p99_ms denials due ended failures lazy_settles_failed limiters " +
			"lost made mix outcomes place rate schema seconds seed settings settles settles_failed store units"
		if names := strings.Join(slices.Sorted(maps.Keys(got)), " "); names != want {
			t.Errorf("there is\n%s\nwant\n%s", names, want)
		}
		var settings strings.Builder
		for line := range strings.Lines(string(got["settings"])) {
			settings.WriteString(strings.TrimSpace(line))
		}
		want = `{"duration_s": 10,"calls": 50,"units": 0,"trip_ms": 2,"entities": 1000,"children": 10,"hot": ` +
			`"2=50%","zipf": 0,` +
			`"mix": [{"weight": 3,"cost": {"rpm": "1","tpm": "5..1500"},"settle": {"tpm": "0"}}]}`
		if settings.String() != want {
			t.Errorf("settings\n%s\nwant\n%s", settings.String(), want)
		}
	})
}

// TestLoadUnits: the engine in this process has no bound of units but one that is asked for.
func TestLoadUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, errs := reported(t, "--in-process", "--trip", "1ms", "--rate", "50", "--units", "100")
		if used := r.Units.Read + r.Units.Write; r.Ended != load.EndedUnits || used < 100 || used > 120 ||
			!strings.Contains(errs, "or once 100 capacity units are consumed") {
			t.Errorf("ended by %s after %v units\n%s", r.Ended, used, errs)
		}
	})
}

// TestLoadFails: what keeps a load from its place is said before anything is written.
func TestLoadFails(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	_, url := loaded(t, "other")
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, test := range map[string]struct {
		args string
		code int
		want string
	}{
		"no table": {"--endpoint " + url + " --table rate_limits", 1,
			"sluice: table rate_limits does not exist: "},
		"nobody": {"--endpoint " + closed.URL, 1,
			"sluice: " + closed.URL + " does not answer: start `sluice dev`"},
		"no test's": {"--endpoint http://dynamodb.example:8000 --region us-east-1 --table latest_limits", 2,
			"sluice: table latest_limits (http://dynamodb.example:8000) is not known to be for tests: it is on " +
				"another machine, and its name has none of test, "},
		"two places": {"--in-process --table load", 1,
			"sluice: --in-process and --table name different places: pass one of them"},
		"units": {"--redis redis://127.0.0.1:1 --units 5", 1,
			"sluice: --units is for capacity units, which a Redis does not have: leave it out"},
		"a price": {"--redis redis://127.0.0.1:1 --price-read 0.25", 1,
			"sluice: --price-read is for capacity units, which a Redis does not have: leave it out"},
		"a trip": {"--trip 4ms", 1, "sluice: --trip is for the engine in this process: pass --in-process too"},
	} {
		if slices.Contains([]string{"two places", "units", "a price", "a trip"}, name) { // refused by the parser
			test.code = 2
		}
		code, out, errs := loading(t.Context(), strings.Fields(test.args)...)
		if code != test.code || out != "" || !hasFacts(errs, test.want) {
			t.Errorf("%s: exit code %d\n%s%s\nwant %d and %s", name, code, out, errs, test.code, test.want)
		}
	}
}

// TestLoadArguments: what cannot be is refused by its name, with what there is instead.
func TestLoadArguments(t *testing.T) {
	sequential(t)
	for args, want := range map[string]string{
		"--mix gpt-4": `--mix "gpt-4" is not KIND:RESOURCE[=WEIGHT]: write it ` +
			`like user:gpt-4=3`,
		"--mix user:gpt-5": `--mix "user:gpt-5": ../../../limits.yaml has no resource ` +
			`"gpt-5": did you mean "gpt-4"?`,
		"--mix org:gpt-4": `--mix "org:gpt-4": gpt-4 has no bucket for kind org: pass ` +
			`an entity or a kind of project, user`,
		"--mix usr:gpt-4": `--mix "usr:gpt-4": ../../../limits.yaml has no kind ` +
			`"usr", and "usr" is no entity, since it has no '-': did you mean "user"?`,
		"--mix user-1:gpt-4": `--mix "user-1:gpt-4": user-1 is an entity: pass a kind, ` +
			`whose number of entities is --entities`,
		"--mix user:gpt-4=0": `--mix "user:gpt-4=0": the weight "0" is no number above ` +
			`0: correct it`,
		"--mix user:gpt-4=x": `--mix "user:gpt-4=x": the weight "x" is no number above ` +
			`0: correct it`,
		"--mix user:gpt-4=NaN": `--mix "user:gpt-4=NaN": the weight "NaN" is no number ` +
			`above 0: correct it`,
		"--mix user:gpt-4 --mix user:gpt-4": `--mix "user:gpt-4": user on gpt-4 is given twice: leave ` +
			`one out`,
		"--cost tpm": `--cost "tpm": it is not LIMIT=N or LIMIT=N..M: write it ` +
			`like rpm=1..10`,
		"--cost tpn=1": `--cost "tpn=1": no resource in the mix has a limit "tpn": ` +
			`did you mean "tpm"?`,
		"--cost tpm=-1": `--cost "tpm=-1": "-1" is out of range: pass whole tokens, ` +
			`0 to 1000000000000`,
		"--cost tpm=1..x": `--cost "tpm=1..x": "x" is out of range: pass whole ` +
			`tokens, 0 to 1000000000000`,
		"--cost tpm=3..2": `--cost "tpm=3..2": M is below N in N..M: swap them`,
		"--cost gpt-5:tpm=3": `--cost "gpt-5:tpm=3": ../../../limits.yaml has no ` +
			`resource "gpt-5": did you mean "gpt-4"?`,
		"--settle tpm": `--settle "tpm": it is not LIMIT=N or LIMIT=N..M: write it ` +
			`like rpm=1..10`,
		"--mix user:gpt-4 --settle embeddings:rps=1": `--settle "embeddings:rps=1": the mix has no calls on ` +
			`embeddings: add them, or leave this out`,
		"--hot 10": `--hot "10" is not K=PERCENT: write it like 10=80%, with K ` +
			`up to 1000 (--entities) and up to 100%`,
		"--hot 0=80%":   `--hot "0=80%" is not K=PERCENT: write it like 10=80%, `,
		"--hot 10=101%": `--hot "10=101%" is not K=PERCENT: write it like 10=80%, `,
		"--hot 11=5% --entities 10": `--hot "11=5%" is not K=PERCENT: write it like 10=80%, ` +
			`with K up to 10 (--entities) `,
		"--hot 1=5% --zipf 2": `--hot and --zipf can't be used together`,
		"--zipf 1":            `--zipf 1 is out of range: pass more than 1 and up to 10`,
		"--zipf NaN":          `--zipf NaN is out of range: pass more than 1 and up to 10`,
		"--rate 0":            `--rate 0: want calls a second, above 0 and up to 1000000; `,
		"--duration 0s":       `--duration 0s is out of range: pass more than 0`,
		"--calls 0":           `--calls 0: want 1 or more; `,
		"--units 0":           `--units 0 is out of range: pass 1 or more`,
		"--entities 0":        `--entities 0 is out of range: pass 1 to 10000000`,
		"--children 0":        `--children 0 is out of range: pass 1 or more`,
		"--concurrency 0":     `--concurrency 0 is out of range: pass 1 to 100000`,
		"--limiters 17": `--limiters 17 is out of range: pass 1 to 16, the number ` +
			`of callers (--concurrency)`,
		"--price-write=-1": `--price-write -1 is out of range: pass dollars per ` +
			`million write units, 0 to a billion`,
		"--price-read NaN": `--price-read NaN is out of range: pass dollars per ` +
			`million read units, 0 to a billion`,
		"--cost tpm=15001": `--cost gpt-4:tpm=15001: a bucket of kind user never has more ` +
			`than 15,000, so no call of kind user would be admitted: pass less`,
		"--mix project:gpt-4 --cost tpm=150001..9": `--cost "tpm=150001..9": ends before`,
		"--mix project:gpt-4 --cost tpm=150001..160000": `--cost gpt-4:tpm=150001..160000: a bucket of kind ` +
			`project never holds more than 150,000, `,
		"--trip 2m": `--trip 2m0s is out of range: pass 0s to 1m`,
	} {
		code, out, errs := loading(t.Context(), append([]string{"--in-process"}, strings.Fields(args)...)...)
		if code != 2 || out != "" || !hasFacts(errs, "sluice: "+want) ||
			!hasFacts(errs, "; run `sluice load --help`\n") {
			t.Errorf("%s: exit code %d\n%s%s\nwant sluice: %s", args, code, out, errs, want)
		}
	}
}
