package cli_test

import (
	"context"
	"encoding/json"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/examples/regionsync/limits"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// shared is a schema whose limits two regions share out, with windows of a minute.
const shared = "../../../examples/regionsync/limits.yaml"

// places are two regions, each with a table, on a clock that moves by a window with each cycle.
type places struct {
	t      *testing.T
	now    time.Time
	dir    string // where they publish
	names  []string
	tables []string
	outs   []string // of the last cycle
	then   func()   // after each region's cycle; may be nil
}

func newPlaces(t *testing.T) *places {
	t.Helper()
	w := &places{t: t, now: start, dir: t.TempDir(), names: []string{"eu-central-1", "us-east-1"}}
	for range w.names {
		w.tables = append(w.tables, dynamotest.Table(t, dynamotest.Client(t), operator.Table))
	}
	return w
}

// sync runs the command for the i-th region.
func (w *places) sync(i int, flags ...string) (code int, out, errs string) {
	w.t.Helper()
	return sluice(w.t, w.now, append([]string{
		"region", "sync", "--as", w.names[i], "--table", w.tables[i], "--file", shared, "--snapshots", "file://" +
			w.dir,
	}, flags...)...)
}

// status runs the command, which is about no table.
func (w *places) status(flags ...string) (code int, out, errs string) {
	w.t.Helper()
	var stdout, stderr strings.Builder
	program := cli.Program{Stdout: &stdout, Stderr: &stderr, Now: func() time.Time { return w.now }}
	code = program.Run(w.t.Context(), append([]string{"region", "status", "--file", shared, "--snapshots",
		"file://" + w.dir}, flags...))
	return code, stdout.String(), stderr.String()
}

// spend has user-1 make so many requests in the i-th region.
func (w *places) spend(i int, requests int64) {
	w.t.Helper()
	lim, err := limits.New(dynamo.New(storetest.Dated(dynamotest.Client(w.t), fixed{w.now}), w.tables[i]),
		runtime.WithClock(fixed{w.now}))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := lim.GPT4.Acquire(w.t.Context(), limits.User{ID: "1"},
		limits.GPT4Cost{RPM: requests}); err != nil {
		w.t.Fatal(err)
	}
}

// cycle has a window pass, in which user-1 makes so many requests in each region, and then a cycle of each.
func (w *places) cycle(requests ...int64) {
	w.t.Helper()
	w.now = w.now.Add(40 * time.Second)
	w.outs = nil
	for i, n := range requests {
		w.now = w.now.Add(10 * time.Second)
		w.spend(i, n)
		code, out, errs := w.sync(i, "--once")
		if code != 0 || errs != "" {
			w.t.Fatalf("%s: exit code %d\n%s%s", w.names[i], code, out, errs)
		}
		if w.outs = append(w.outs, out); w.then != nil {
			w.then()
		}
	}
}

// keeps is what is said of an epoch that begins.
const keeps = "  until the region has published, in the next cycles, its quota is what every region keeps\n"

// TestRegion shares a limit out by demand, 3 to 1, and shows on the way what each region holds.
func TestRegion(t *testing.T) {
	sequential(t)
	w := newPlaces(t)
	code, out, errs := w.status()
	expect(t, code, out, errs, 0, `REGION        STATE   AGE  EPOCH  SEQUENCE  ENTITIES
eu-central-1  unseen    -      -         -         -
us-east-1     unseen    -      -         -         -
no region has a quota yet
`, "")
	w.cycle(45, 15)
	expect(t, 0, w.outs[0]+w.outs[1], "", 0, "eu-central-1: epoch 1 has begun: it has published nothing yet\n"+
		keeps+
		"us-east-1: epoch 1 has begun: it has published nothing yet\n"+keeps, "")
	for range 2 {
		w.cycle(45, 15)
	}
	planned := func() string {
		t.Helper()
		code, out, errs := w.sync(0, "--dry-run")
		if code != 0 || errs != "" {
			t.Fatalf("exit code %d\n%s%s", code, out, errs)
		}
		return out
	}
	w.now = w.now.Add(50 * time.Second)
	w.spend(0, 45)
	before := w.published()
	plan := planned()
	expect(t, 0, plan, "", 0, `eu-central-1: 2 quotas
  REGION     STATE  AGE
  us-east-1  live   50s
  ENTITY  RESOURCE  LIMIT  TRIGGER      FROM      TO       OF
  user-1  gpt-4     rpm    exhaustion     50     950    1,000
  user-1  gpt-4     tpm    beside      5,000  50,000  100,000
1 quota item to be written
`, "")
	if planned() != plan || w.published() != before {
		t.Errorf("a plan changed something: %s", planned())
	}
	moved := false
	w.then = func() {
		t.Helper()
		for _, l := range w.seen().Limits {
			moved = moved || l.Moves != 0
			if l.Sum != l.Whole {
				t.Errorf("%+v", l)
			}
		}
	}
	for range 8 {
		w.cycle(45, 15)
	}
	if !moved {
		t.Error("nothing was ever on its way")
	}
	code, out, errs = w.status()
	expect(t, code, out, errs, 0, `REGION        STATE  AGE  EPOCH  SEQUENCE  ENTITIES
eu-central-1  live   10s      1         9         1
us-east-1     live    0s      1         9         1
LIMIT      eu-central-1  us-east-1  ON THE WAY   IN ALL       OF    LEFT
gpt-4 rpm           725        275           0    1,000    1,000     940
gpt-4 tpm        95,000      5,000           0  100,000  100,000  55,000
`, "")
	code, out, errs = w.status("--entity", "user-1")
	expect(t, code, out, errs, 0, `user-1 on gpt-4
  rpm                                  HELD    IN USE   RATE  LEFT
  eu-central-1  ###############-----    725       725  0.7/s   680
  us-east-1     ######--------------    275       275  0.2/s   260
  on the way                              0
  in all                              1,000  of 1,000          940
  tpm                                    HELD      IN USE  RATE    LEFT
  eu-central-1  ###################-   95,000      50,000   0/s  50,000
  us-east-1     #-------------------    5,000       5,000   0/s   5,000
  on the way                                0
  in all                              100,000  of 100,000        55,000
`, "")
	w.now = w.now.Add(4 * time.Minute)
	code, out, errs = w.status("--entity", "user-2")
	expect(t, code, out, errs, 0, "", "user-2: no region has published anything about it: it was not used, "+
		"is not counted yet, or the name is wrong; each region keeps 5 % of its limits\n")
	code, out, errs = w.sync(1, "--once")
	expect(t, code, out, errs, 0, `us-east-1: 2 quotas published in snapshot 10, heartbeat renewed
  REGION        STATE     AGE
  eu-central-1  silent  4m10s
0 quota items written
`, "")
}

// worldSeen is what region status --json prints.
type worldSeen struct {
	Regions []struct {
		Region, State   string
		Epoch, Sequence int64
	}
	Limits []struct {
		Entity, Limit string
		Held          map[string]int64
		Moves         int64 `json:"on_the_way"`
		Sum           int64 `json:"in_all"`
		Whole         int64 `json:"of"`
	}
}

// seen is what the command says.
func (w *places) seen() (seen worldSeen) {
	w.t.Helper()
	code, out, errs := w.status("--json")
	if err := json.Unmarshal([]byte(out), &seen); err != nil || code != 0 || errs != "" ||
		len(seen.Regions) != 2 {
		w.t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
	return seen
}

// published is all that lies in the directory.
func (w *places) published() string {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "*", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	var all []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(append(all, file...), text...)
	}
	return string(all)
}

// TestRegionJSON: a cycle as programs read it.
func TestRegionJSON(t *testing.T) {
	sequential(t)
	w := newPlaces(t)
	for range 3 {
		w.cycle(45, 15)
	}
	w.now = w.now.Add(50 * time.Second)
	w.spend(0, 45)
	code, out, errs := w.sync(0, "--once", "--json")
	expect(
		t,
		code,
		out,
		errs,
		0,
		`{"region":"eu-central-1","at":"2026-03-01T12:03:50Z","epoch":1,"sequence":2,"shares":2,`+
			`"heartbeat":true,"operated":0,"writes":[{"entity":"user-1","resource":"gpt-4","limits":[`+
			`{"limit":"rpm","trigger":"exhaustion","from":50,"to":950,"of":1000},`+
			`{"limit":"tpm","trigger":"beside","from":5000,"to":50000,"of":100000}],"done":true}],"failed":[],`+
			`"peers":[{"region":"us-east-1","state":"live","age_seconds":50}]}
`,
		"",
	)
}

// TestRegionFails: what failed is said, and is the exit code; what did not is printed all the same.
func TestRegionFails(t *testing.T) {
	sequential(t)
	w := newPlaces(t)
	for range 2 { // an epoch begins, and no bucket is read
		w.cycle(45, 15)
	}
	w.now = w.now.Add(time.Minute)
	if code, out, errs := w.sync(1, "--once"); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	if _, err := dynamotest.Client(t).PutItem(t.Context(),
		&dynamodb.PutItemInput{TableName: &w.tables[0], Item: map[string]types.AttributeValue{
			"PK":  &types.AttributeValueMemberS{Value: "KIND#user"},
			"SK":  &types.AttributeValueMemberS{Value: "#CONFIG#gpt-4"},
			"ver": &types.AttributeValueMemberS{Value: "yesterday's"},
		}}); err != nil {
		t.Fatal(err)
	}
	code, out, errs := w.sync(0, "--once")
	if code != 1 ||
		!strings.HasPrefix(out, "eu-central-1: 0 quotas published in snapshot 1, heartbeat renewed\n") ||
		!hasFacts(errs, "sluice: limits of gpt-4: ") || !strings.Contains(errs, "malformed") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}

	// The others cannot read what is no snapshot.
	file := filepath.Join(w.dir, "eu-central-1", "snapshot.json")
	if err := os.WriteFile(file, []byte("<html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs = w.status()
	if code != 1 || !strings.Contains(out, "eu-central-1  unreadable ") ||
		!strings.Contains(out, "us-east-1     live ") ||
		!hasFacts(errs,
			"sluice: the snapshot of eu-central-1, eu-central-1/snapshot.json, cannot be read: ") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	code, out, errs = w.sync(1, "--once")
	if code != 0 || !strings.Contains(out, "  eu-central-1  silent ") ||
		!strings.Contains(out, "the snapshot of eu-central-1, eu-central-1/snapshot.json, cannot be read: ") ||
		errs != "" {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}

	w.tables[1] = "cli-test-none"
	for _, flags := range [][]string{{"--once"}, {"--dry-run"}, nil} {
		code, out, errs = w.sync(1, flags...)
		if code != 1 || out != "" || !hasFacts(errs, "cli-test-none `sluice table create --table cli-test-none`") {
			t.Errorf("%v without a table: exit code %d\n%s%s", flags, code, out, errs)
		}
	}
	if err := os.RemoveAll(w.dir); err != nil {
		t.Fatal(err)
	}
	code, out, errs = w.sync(1, "--once")
	expect(t, code, out, errs, 1, "", "sluice: there is no directory "+w.dir+
		"; make it, or mount what the regions share\n")
}

// TestRegionWaits: a sync that is started before its folder is there says so, and waits for it.
func TestRegionWaits(t *testing.T) {
	w := newPlaces(t)
	if err := os.RemoveAll(w.dir); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := &until{text: "epoch 1 begins", ended: cancel}
	waits := &until{text: "waiting: ", ended: func() {
		if err := os.MkdirAll(w.dir, 0o700); err != nil {
			t.Error(err)
		}
	}}
	code := cli.Program{Stdout: begun, Stderr: both{begun, waits}, Now: time.Now}.Run(ctx, []string{
		"region", "sync", "--as", w.names[0], "--table", w.tables[0], "--file", shared, "--snapshots",
		"file://" + w.dir,
		"--endpoint", dynamotest.Endpoint(t)})
	want := "waiting: there is no directory " + w.dir + "; make it, or mount what the regions share\n"
	if got := waits.all.String(); code != 0 || strings.Count(got, want) != 1 {
		t.Errorf("exit code %d\n%s", code, got)
	}
}

// both writes to two.
type both [2]*until

// Write implements io.Writer.
func (b both) Write(p []byte) (int, error) {
	_, _ = b[0].Write(p)
	return b[1].Write(p)
}

// TestRegionTuned: drift and horizon are flags, and what they cannot be is said.
func TestRegionTuned(t *testing.T) {
	sequential(t)
	w := newPlaces(t)
	for range 9 {
		w.cycle(45, 15)
	}
	w.now = w.now.Add(50 * time.Second)
	w.spend(0, 45)
	w.spend(1, 13)
	if code, _, errs := w.sync(1, "--once"); code != 0 {
		t.Fatal(errs)
	}
	if _, out, _ := w.sync(0, "--dry-run"); !strings.Contains(out, "0 quota items to be written") {
		t.Errorf("by default a small drift is written:\n%s", out)
	}
	if _, out, _ := w.sync(0, "--dry-run", "--drift", "1"); !strings.Contains(out, "1 quota item to be") {
		t.Errorf("with --drift 1 a small drift is not written:\n%s", out)
	}
	for flags, want := range map[string]string{
		"--drift 0":     "--drift 0 is out of range: pass 1 to 100 percent",
		"--horizon 101": "--horizon 101 is out of range: pass 1 to 100 windows",
	} {
		if code, _, errs := w.sync(1, strings.Fields(flags)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d\n%s", flags, code, errs)
		}
	}
}

// TestRegionCosts: what the syncs come to, by kind and at prices.
func TestRegionCosts(t *testing.T) {
	sequential(t)
	w := newPlaces(t)
	if code, out, errs := w.status("--costs"); code != 0 || out != "" ||
		errs != "no region has published, so nothing is known of costs\n" {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	for range 10 {
		w.cycle(45, 15)
	}
	code, out, errs := w.status("--costs", "--price-write", "2")
	lines := strings.Split(out, "\n")
	if code != 0 || errs != "" || len(lines) != 9 ||
		strings.Join(strings.Fields(lines[1]), " ") != "read units 43,216 $0.01 43,216 $0.01" ||
		strings.Join(strings.Fields(lines[4]), " ") != "PUTs to S3 43,200 $0.22 43,200 $0.22" {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	var seen struct {
		Costs []struct {
			Region  string
			Dollars float64
			Costs   []struct {
				Kind            string
				Amount, Dollars float64
			}
		}
	}
	_, out, _ = w.status("--costs", "--json", "--price-write", "2")
	if err := json.Unmarshal([]byte(out), &seen); err != nil || len(seen.Costs) != 2 {
		t.Fatal(err, out)
	}
	for _, r := range seen.Costs {
		sum := 0.0
		for _, c := range r.Costs {
			if sum += c.Dollars; c.Kind == "write units" && (c.Amount < 43_200 || c.Dollars != c.Amount*2/1e6) {
				t.Errorf("%+v", c)
			}
		}
		if sum != r.Dollars {
			t.Errorf("%+v comes to %v", r, sum)
		}
	}
	if code, _, errs := w.status("--costs", "--price-read=-1"); code != 2 ||
		!strings.Contains(errs, "--price-read -1 is no price: pass dollars, 0 or above") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}

// until calls ended at the first line that has a text.
type until struct {
	all   strings.Builder
	text  string
	ended func()
}

// Write implements io.Writer.
func (u *until) Write(p []byte) (int, error) {
	u.all.Write(p)
	if strings.Contains(u.all.String(), u.text) {
		u.ended()
	}
	return len(p), nil
}

// TestRegionLoop: it runs until it is told to end, and says what it does.
func TestRegionLoop(t *testing.T) {
	for _, test := range []struct {
		flags   []string
		on      string // the output that ends it
		out     string
		json    bool
		written string
	}{
		{nil, "cycle 1: ", "1 cycle, 0 writes done, 0 failures\n", false,
			"cycle 1: 0 quotas, 0 writes, epoch 1 begins: it has published nothing yet\n"},
		{[]string{"--json"}, `"sequence":0`, "", true, ""},
	} {
		w := newPlaces(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		out, errs := &until{text: test.on, ended: cancel}, &until{text: test.on, ended: cancel}
		code := cli.Program{Stdout: out, Stderr: errs, Now: func() time.Time { return w.now }}.Run(ctx,
			append([]string{
				"region", "sync", "--as", w.names[0], "--table", w.tables[0], "--file", shared, "--snapshots", "file://" +
					w.dir,
				"--endpoint", dynamotest.Endpoint(t),
			}, test.flags...))
		if got := out.all.String(); code != 0 || errs.all.String() != test.written || !test.json &&
			got != test.out || test.json && !json.Valid([]byte(got)) {
			t.Errorf("%v: exit code %d\n%s%s", test.flags, code, out.all.String(), errs.all.String())
		}
	}
}

// TestRegionMistakes: what cannot be is met before anything is asked.
func TestRegionMistakes(t *testing.T) {
	sequential(t)
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	const sync, status = "; run `sluice region sync --help`\n", "; run `sluice region status --help`\n"
	const in = " --file " + shared
	for _, test := range []struct{ line, want string }{
		{"region sync" + in, "missing flags: --snapshots=URL" + sync},
		{"region status" + in, "missing flags: --snapshots=URL" + status},
		{"region sync --snapshots s3://b --once --dry-run" + in, "--once and --dry-run can't be used together" +
			sync},
		{"region sync --snapshots s3://b --redis redis://x" + in, "region is about DynamoDB alone, and takes no " +
			"--redis: regions share out limits that tables of DynamoDB hold" + sync},
		{"region status --snapshots s3://b --region=" + in,
			"--region is empty: pass REGION, or leave the flag out to use AWS's configuration" + status},
		{"region sync --region eu-west-1 --snapshots s3://b" + in,
			`the AWS region is "eu-west-1", which is not among the regions of ` + shared +
				": pass --as with one of eu-central-1, us-east-1" + sync},
		{"region sync --region eu-west-1 --as= --snapshots s3://b" + in,
			`--as is "", which is not among the regions of ` + shared +
				": pass --as with one of eu-central-1, us-east-1" + sync},
		{"region sync --region us-east-1 --evict 0s --snapshots s3://b" + in,
			"--evict 0s is too short: pass 5 windows or more, 5m0s" + sync},
		{"region sync --region us-east-1 --evict 4m --snapshots s3://b" + in,
			"--evict 4m0s is too short: pass 5 windows or more, 5m0s" + sync},
		{"region sync --region us-east-1 --evict soon --snapshots s3://b" + in,
			`--evict: expected duration but got "soon": time: invalid duration "soon"` + sync},
		{"region sync --endpoint http://127.0.0.1:1 --snapshots s3://b" + in, "which region of " + shared +
			" this is, nothing says: pass --as with one of eu-central-1, us-east-1, or --region" + sync},
		{"region sync --snapshots s3:///x" + in,
			`--snapshots "s3:///x" is no place: pass s3://bucket/prefix or file:///directory` + sync},
		{"region sync --region us-east-1 --snapshots file://b" + in,
			"--snapshots file://b is not a directory: pass three slashes and its path, such as file:///var/limits" +
				sync},
		{"region sync --region us-east-1 --snapshots /b" + in,
			`--snapshots "/b" is no place: pass s3://bucket/prefix or file:///directory` + sync},
		{"region status --region us-east-1 --snapshots= " + in,
			`--snapshots "" is no place: pass s3://bucket/prefix or file:///directory` + status},
		{"region status --snapshots file:///tmp --entity user" + in,
			`entity "user" is not of the form kind-id: write it as it is stored, such as user-123` + status},
	} {
		code, out, errs := run(t, strings.Fields(test.line)...)
		expect(t, code, out, errs, 2, "", "sluice: "+test.want)
	}
	code, out, errs := run(t, "region", "status", "--snapshots", "file:///tmp", "--file", demo)
	expect(t, code, out, errs, 1, "", "sluice: "+demo+
		" has no resource that regions divide: list regions in it, and mark a resource `global: true`\n")
}
