package cli_test

import (
	"github.com/sluice-go/sluice/internal/test/storetest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	windows "github.com/sluice-go/sluice/gen/testdata/golden/windows/out"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

// windowsFile is the schema of package windows.
const windowsFile = "../../../gen/testdata/golden/windows/limits.yaml"

// inWindows runs commands against a table of package windows, whose clock is start.
func inWindows(t *testing.T) (session, *windows.Limiter) {
	t.Helper()
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, operator.Table)
	lim, err := windows.New(dynamo.New(storetest.Dated(client, fixed{start}), table),
		runtime.WithClock(fixed{start}))
	if err != nil {
		t.Fatal(err)
	}
	return session{t, client, []string{"--table", table, "--file", windowsFile}}, lim
}

// TestWindows: the list has windows of each kind, and lengths that differ where a clock changes.
func TestWindows(t *testing.T) {
	code, out, errs := sluice(t, start, "windows", "--file", windowsFile, "--next", "2")
	expect(t, code, out, errs, 0, `gateway tpd: day from 04:00 America/New_York
  STARTS                UTC               LENGTH
  2026-03-02 04:00 EST  2026-03-02 09:00  1d
  2026-03-03 04:00 EST  2026-03-03 09:00  1d
gateway cycle: month from the entity's own start, in its zone; by default month from day 1 UTC
  STARTS                UTC               LENGTH
  2026-04-01 00:00 UTC  2026-04-01 00:00  30d
  2026-05-01 00:00 UTC  2026-05-01 00:00  31d
gateway session: 5h0m0s from first use
mail weekly: week from Monday UTC
  STARTS                UTC               LENGTH
  2026-03-02 00:00 UTC  2026-03-02 00:00  7d
  2026-03-09 00:00 UTC  2026-03-09 00:00  7d
mail daily: day from 00:30 Europe/Berlin
  STARTS                UTC               LENGTH
  2026-03-02 00:30 CET  2026-03-01 23:30  1d
  2026-03-03 00:30 CET  2026-03-02 23:30  1d
mail monthly: month from day 31 UTC
  STARTS                UTC               LENGTH
  2026-03-31 00:00 UTC  2026-03-31 00:00  30d
  2026-04-30 00:00 UTC  2026-04-30 00:00  31d
mail quarterly: quarter from the entity's own start, in UTC; by default quarter from January 1 UTC
  STARTS                UTC               LENGTH
  2026-04-01 00:00 UTC  2026-04-01 00:00  91d
  2026-07-01 00:00 UTC  2026-07-01 00:00  92d
mail yearly: year from January 1 Australia/Lord_Howe
  STARTS                UTC               LENGTH
  2027-01-01 00:00 +11  2026-12-31 13:00  365d
  2028-01-01 00:00 +11  2027-12-31 13:00  366d
`, "")
	spring := time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
	code, out, errs = sluice(t, spring, "windows", "--file", windowsFile, "--next", "1", "--json")
	if code != 0 || errs != "" || !strings.HasPrefix(out, `{"resource":"gateway","limit":"tpd","calendar":"day `+
		`from `+
		`04:00 America/New_York","zone":"America/New_York","starts":[{"local":"2026-03-08T04:00:00-04:00",`+
		`"utc":"2026-03-08T08:00:00Z","length_ms":86400000}]}`+"\n") ||
		!strings.Contains(out, `"limit":"session","calendar":"5h0m0s from first `+
			`use","length_ms":18000000,"starts":[]}`) {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// TestWindowsOfEntity: an entity's windows go by its own calendar, or by that of its nearest stored ancestor.
func TestWindowsOfEntity(t *testing.T) {
	sequential(t)
	s, _ := inWindows(t)
	const session, month = "gateway session of org-1: 5h0m0s from first use\n",
		"mail weekly of org-1: week from Monday UTC\n"
	first := func(entity string) string {
		t.Helper()
		args := append([]string{"windows", "--entity", entity, "--next", "1"}, s.flags...)
		code, out, errs := sluice(t, start, args...)
		if code != 0 || errs != "" {
			t.Fatalf("exit code %d\n%s%s", code, out, errs)
		}
		return out
	}
	if out := first("org-1"); !strings.HasPrefix(out, "gateway cycle of org-1: month from the entity's "+
		"own start, in "+
		"its zone; neither it nor a stored parent has a calendar: month from day 1 UTC\n"+
		"  STARTS                UTC               LENGTH\n"+
		"  2026-04-01 00:00 UTC  2026-04-01 00:00  30d\n"+session+month) {
		t.Error(out)
	}
	s.run("entity calendar org-1 --since 2026-01-31T09:00 --zone Europe/Berlin", 0,
		"org-1: billed since 2026-01-31 09:00 Europe/Berlin, was -\n"+takenUp, "")
	if out := first("org-1"); !strings.HasPrefix(out, "gateway cycle of org-1: month from day 31 09:00 "+
		"Europe/Berlin, "+
		"by the calendar of org-1\n"+
		"  STARTS                 UTC               LENGTH\n"+
		"  2026-03-31 09:00 CEST  2026-03-31 07:00  30d\n"+session+month) ||
		!strings.Contains(out, "mail quarterly of org-1: quarter from January 31 08:00 UTC, by the calendar "+
			"of org-1\n") {
		t.Error(out)
	}
	// Of a key, no limit has a calendar of its own: nothing is read.
	if out := first("key-1"); strings.Contains(out, "calendar") || !strings.HasPrefix(out, "gateway tpd "+
		"of key-1: ") {
		t.Error(out)
	}
	s.run("windows --entity user-1", 2, "", `sluice: entity "user-1" is of kind user, which limits.yaml `+
		`does not have: `+
		"it has org and key; run `sluice windows --help`\n")
	s.run("windows --next 0", 2, "", "sluice: --next 0 is out of range: pass 1 to 1000; run `sluice "+
		"windows --help`\n")
}

// TestNoWindows: a schema without windows has none to list.
func TestNoWindows(t *testing.T) {
	file := schemaFile(t, tree)
	code, out, errs := sluice(t, start, "windows", "--file", file)
	expect(t, code, out, errs, 0, "", "no limit of "+file+" has windows\n")
	code, out, errs = sluice(t, start, "windows", "--file", file, "--entity", "user-1")
	expect(t, code, out, errs, 0, "", "no limit of kind user has windows\n")
}

// TestEntityCalendar: a calendar is stored beside the link of an entity, and neither changes the other.
func TestEntityCalendar(t *testing.T) {
	sequential(t)
	s, _ := inWindows(t)
	const since = "2026-01-31T09:00 --zone Europe/Berlin"
	s.run("entity calendar key-1 --since "+since, 0,
		"key-1: billed since 2026-01-31 09:00 Europe/Berlin, was -\n"+takenUp, "")
	s.run("entity show key-1", 0, `  ENTITY  PARENT  CASCADE  BILLED SINCE
  key-1   -       -        2026-01-31 09:00 Europe/Berlin  not stored: look-ups for gateway fail, `+
		"run `sluice entity put key-1 --parent org-<id>`\n", "")
	const chain = `  ENTITY  PARENT  CASCADE  BILLED SINCE
  key-1   org-1   yes      2026-01-31 09:00 Europe/Berlin
  org-1   -       -        -                               not stored (not needed)
`
	s.run("entity put key-1 --parent org-1", 0, "stored key-1\n"+chain+takenUp, "")
	s.run("entity put key-1 --parent org-1", 0, "stored key-1, unchanged\n"+chain+takenUp, "")
	s.run("entity show key-1 --json", 0, `{"entity":"key-1","parent":"org-1","cascade":true,"stored":true,`+
		`"since":"2026-01-31T09:00:00+01:00","zone":"Europe/Berlin"}`+"\n"+
		`{"entity":"org-1","cascade":false,"stored":false}`+"\n", "")
	s.run("entity calendar key-1 --since 2026-02-01", 0,
		"key-1: billed since 2026-02-01 00:00 UTC, was 2026-01-31 09:00 Europe/Berlin\n"+takenUp, "")
	s.run("entity delete key-1", 0, "deleted key-1\n"+takenUp+
		"its calendar stays: `sluice entity erase key-1` deletes it too\n", "")
	s.run("entity calendar key-1 --since tomorrow", 2, "", `sluice: --since "tomorrow" is no time: write `+
		`the local `+
		"time in --zone, such as 2026-01-31T09:00 or 2026-01-31; run `sluice entity calendar --help`\n")
	s.run("entity calendar key-1 --since 2026-02-01 --zone CEST", 2, "", `sluice: --zone "CEST" is no `+
		`time zone: `+
		"write a name of the IANA database, such as Europe/Berlin or UTC; run `sluice entity calendar --help`\n")
	s.run("entity calendar key-1 --since 2026-02-01 --zone Local", 2, "", `sluice: --zone "Local" is no `+
		`time zone: `+
		"write a name of the IANA database, such as Europe/Berlin or UTC; run `sluice entity calendar --help`\n")
	other, _ := newSession(t, schemaFile(t, tree))
	other.run("entity calendar org-1 --since 2026-02-01", 0, "org-1: billed since 2026-02-01 00:00 UTC, "+
		"was -\n"+takenUp,
		"note: no limit of "+other.flags[3]+" has starts: entity or zone: entity, so nothing uses it\n")
}

// TestPeekWindows: peek and explain show when windows end in the zones of the limits, and in UTC without the
// schema.
func TestPeekWindows(t *testing.T) {
	sequential(t)
	s, lim := inWindows(t)
	org := windows.Org{ID: "1"}
	since := time.Date(2026, 1, 31, 9, 0, 0, 0, bucket.MustZone("Europe/Berlin"))
	if err := lim.Entities().SetCalendar(t.Context(), org, since); err != nil {
		t.Fatal(err)
	}
	if _, err := lim.Gateway.Acquire(t.Context(), windows.Key{ID: "1", Org: org},
		windows.GatewayCost{TPD: 400, Session: 5}); err != nil {
		t.Fatal(err)
	}
	s.run("peek key-1 gateway", 0, `key-1 on gateway
  LIMIT    AVAILABLE   CAPACITY      BURST  REFILL         FULL IN
  rpm             99        100        100  100 every 1m   600ms
  session    199,995    200,000    200,000  windows of 5h  resets 2026-03-01 17:00 UTC, in 5h
  tpd        999,600  1,000,000  1,000,000  windows of 1d  resets 2026-03-02 04:00 America/New_York, in 21h
`, "")
	const cycle, inBerlin = "  cycle        9,999     10,000     10,000  windows of 30d  resets ",
		"2026-03-31 09:00 Europe/Berlin, in 29d 19h\n"
	code, out, errs := sluice(t, start, append([]string{"peek", "org-1", "gateway"}, s.flags...)...)
	if code != 0 || errs != "" || !strings.Contains(out, cycle+inBerlin) {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	code, out, errs = sluice(t, start, "peek", "org-1", "gateway", s.flags[0], s.flags[1])
	if code != 0 || errs != "" || !strings.Contains(out, cycle+"2026-03-31 07:00 UTC, in 29d 19h\n") {
		t.Errorf("without the schema: exit code %d\n%s%s", code, out, errs)
	}
	args := append([]string{"override", "explain", "org-1", "gateway"}, s.flags...)
	code, out, errs = sluice(t, start, args...)
	if code != 0 || errs != "" || !strings.Contains(out, cycle+inBerlin) ||
		!strings.Contains(out, "the bucket has the limits in force\n") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	code, out, errs = sluice(t, start, append([]string{"top", "gateway", "--limit", "cycle"}, s.flags[:2]...)...)
	if code != 0 || errs != "" || !strings.Contains(out, "29d 19h\n") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	// After its window, a limit is full, and no end is shown until a call opens the next one.
	code, out, errs = sluice(t, start.AddDate(0, 2, 0), append([]string{"peek", "org-1", "gateway", "--json"},
		s.flags...)...)
	if code != 0 || errs != "" || strings.Contains(out, "resets") ||
		!strings.Contains(out, `{"limit":"cycle","available_milli":10000000,`) {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	s.run("reset org-1 gateway --limit cycle", 0, `org-1 on gateway: filled
  LIMIT  BEFORE   AFTER   BURST
  cycle   9,999  10,000  10,000
`, "")
}

// TestOverrideWindows: of a limit with windows, only the capacity can be overridden, and no limit becomes
// one.
func TestOverrideWindows(t *testing.T) {
	sequential(t)
	s, _ := inWindows(t)
	const cure = "tpd has windows, which are those of limits.yaml: there is no every, burst or refill to " +
		"change, " +
		"write tpd=5; run `sluice override set --help`\n"
	for _, value := range []string{"tpd=5/1m", "tpd=5,burst=6", "tpd=5,refill=1"} {
		s.run("override set key-1 gateway "+value, 2, "", `sluice: "`+value+`": `+cure)
	}
	code, out, errs := sluice(t, start, append([]string{"override", "set", "key-1", "gateway", "tpd=5", "rpm=7"},
		s.flags...)...)
	if code != 0 || errs != "" || !strings.Contains(out, "now          5          5  windows of 1d  key-1\n") {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	_, exported, _ := sluice(t, start, append([]string{"override", "export"}, s.flags...)...)
	for name, test := range map[string]struct{ old, new, want string }{
		"as it is": {"", "", ""},
		"a window that refills": {`"refill_milli":0`, `"refill_milli":5`, "limit tpd of key-1: it has " +
			"windows, so only " +
			"its capacity can differ from limits.yaml: write burst_milli 5000, refill_milli 0 and period_ms " +
			"86400000"},
		"a refill of 0": {`"refill_milli":7000`, `"refill_milli":0`, "limit rpm of key-1: refill 0 is for " +
			"limits with windows or of calls in flight, and it refills: write the refill, such as the capacity"},
	} {
		file := filepath.Join(t.TempDir(), "overrides.jsonl")
		if err := os.WriteFile(file, []byte(strings.Replace(exported, test.old, test.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := sluice(t, start, append([]string{"override", "import", file}, s.flags...)...)
		if (code == 0) != (test.want == "") || !strings.Contains(errs, test.want) {
			t.Errorf("%s: exit code %d\n%s%s", name, code, out, errs)
		}
	}
}
