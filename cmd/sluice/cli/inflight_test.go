package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	inflight "github.com/sluice-go/sluice/gen/testdata/golden/inflight/out"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// inFlightFile is the schema of package inflight.
const inFlightFile = "../../../gen/testdata/golden/inflight/limits.yaml"

// heldIn returns cells that count what is held in an epoch and in the next one.
func heldIn(epoch, first, next int64) (cells [2]int64) {
	cells[epoch&1], cells[(epoch+1)&1] = first, next
	return cells
}

// inFlight runs commands against a table of package inflight. user-1 has 17 of 20 slots, and reserved 12 of
// its month, of which 100 are used. user-2 died: its slots are over, and were not swept.
func inFlight(t *testing.T) session {
	t.Helper()
	r := newRanking(t)
	epoch := bucket.Epoch(start.UnixMilli())
	parallel, month := bucket.InFlight(20), bucket.InWindows(500, 30*24*time.Hour)
	for _, b := range []inflight.CallsBucket{
		{
			Entity: "user-1",
			Month: bucket.Balance{Limit: month, Tokens: 388_000, Consumed: 112_000, Epoch: epoch,
				Ends:  time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC).UnixMilli(),
				Cells: heldIn(epoch, 0, 12_000)},
			Parallel: bucket.Balance{Limit: parallel, Tokens: 3_000, Consumed: 90_000, Epoch: epoch,
				Cells: heldIn(epoch, 12_000, 5_000)},
		},
		{
			Entity: "user-2",
			Month: bucket.Balance{Limit: month, Tokens: 400_000, Epoch: epoch, Ends: start.UnixMilli(),
				Cells: heldIn(epoch, 100_000, 0)},
			Parallel: bucket.Balance{Limit: parallel, Tokens: 13_000, Epoch: epoch - 2,
				Cells: heldIn(epoch-2, 6_000, 1_000)},
		},
	} {
		b.Refilled, b.Op, b.Version = start.UnixMilli(), "op", bucket.RevisionUnit
		b.TTL = start.Unix() + 3600
		b.RPM = bucket.Balance{Limit: bucket.Per(1000, time.Minute), Tokens: 1_000_000}
		r.store(b.MarshalItem())
	}
	return session{t, r.client, []string{"--table", r.table, "--file", inFlightFile}}
}

// TestInFlight: commands show what open leases hold, and until when. Holds that are over count as given back.
func TestInFlight(t *testing.T) {
	sequential(t)
	s := inFlight(t)
	s.run("peek user-1 calls", 0, `user-1 on calls
  LIMIT     AVAILABLE  CAPACITY  BURST  REFILL          FULL IN
  month           388       500    500  windows of 30d  resets 2026-04-01 00:00 UTC, in 30d 12h; `+
		`reserved: 12 until 12:02 UTC
  parallel          3        20     20  in flight       17 of 20 in flight: 12 until 12:01, 5 until 12:02 UTC
  rpm           1,000     1,000  1,000  1,000 every 1m  now
`, "")
	s.run("peek user-2 calls", 0, `user-2 on calls
  LIMIT     AVAILABLE  CAPACITY  BURST  REFILL          FULL IN
  month           500       500    500  windows of 30d  now
  parallel         20        20     20  in flight       0 of 20 in flight
  rpm           1,000     1,000  1,000  1,000 every 1m  now
`, "")
	s.run("peek user-1 calls --json", 0, `{"entity":"user-1","resource":"calls","per_limit":false,"limits":[`+
		`{"limit":"month","available_milli":388000,"capacity_milli":500000,"burst_milli":500000,"refill_milli":0,`+
		`"period_ms":2592000000,"full_in_ms":2635200000,"held":[{"tokens_milli":12000,`+
		`"until":"2026-03-01T12:02:00Z"}],"resets":"2026-04-01T00:00:00Z"},`+
		`{"limit":"parallel","available_milli":3000,"capacity_milli":20000,"burst_milli":20000,"refill_milli":0,`+
		`"period_ms":1,"full_in_ms":120000,"held":[{"tokens_milli":12000,"until":"2026-03-01T12:01:00Z"},`+
		`{"tokens_milli":5000,"until":"2026-03-01T12:02:00Z"}]},`+
		`{"limit":"rpm","available_milli":1000000,"capacity_milli":1000000,"burst_milli":1000000,`+
		`"refill_milli":1000000,"period_ms":60000,"full_in_ms":0}]}
`, "")
	code, out, errs := sluice(t, start, "top", "calls", "--limit", "parallel", s.flags[0], s.flags[1])
	if code != 0 || errs != "" ||
		!strings.HasPrefix(out, `ENTITY  LIMIT                           USED  AVAILABLE  BURST  FULL IN
user-1  parallel  #################---   85%          3     20  17 of 20 in flight
user-2  parallel  --------------------    0%         20     20  0 of 20 in flight
`) {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	code, out, errs = sluice(t, start, "top", "calls", "--limit", "parallel", "--most", "1", "--json",
		s.flags[0], s.flags[1])
	if code != 0 || errs != "" || strings.Count(out, `"until": "2026-03-01T12:0`) != 2 {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// TestInFlightLater: a minute later, what ended then is not shown any more.
func TestInFlightLater(t *testing.T) {
	sequential(t)
	s := inFlight(t)
	for after, want := range map[time.Duration]string{
		59_999 * time.Millisecond: "17 of 20 in flight: 12 until 12:01, 5 until 12:02 UTC",
		time.Minute:               "5 of 20 in flight: 5 until 12:02 UTC",
		2 * time.Minute:           "0 of 20 in flight",
	} {
		code, out, errs := sluice(t, start.Add(after), append([]string{"peek", "user-1", "calls"}, s.flags...)...)
		if code != 0 || errs != "" || !strings.Contains(out, "in flight       "+want+"\n") {
			t.Errorf("after %v: exit code %d\n%s%s", after, code, out, errs)
		}
	}
}

// lost is what a reset says of leases that hold tokens.
const lost = "open leases hold nothing any more: those from before are lost within two minutes, and their " +
	"calls may run beside new ones until then\n"

// TestResetInFlight: a reset frees all slots, and says what becomes of the calls that have them.
func TestResetInFlight(t *testing.T) {
	sequential(t)
	s := inFlight(t)
	s.run("reset user-1 calls --limit rpm", 0, `user-1 on calls: filled
  LIMIT  BEFORE  AFTER  BURST
  rpm     1,000  1,000  1,000
`, "")
	s.run("reset user-1 calls --limit parallel", 0, `user-1 on calls: filled
  LIMIT     BEFORE  AFTER  BURST
  parallel       3     20     20
`+lost, "")
	s.run("reset user-2 calls --limit parallel", 0, `user-2 on calls: filled
  LIMIT     BEFORE  AFTER  BURST
  parallel      20     20     20
`, "")
	code, out, errs := sluice(t, start, append([]string{"peek", "user-1", "calls"}, s.flags...)...)
	if code != 0 || errs != "" || !strings.Contains(out, "0 of 20 in flight\n") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// TestOverrideInFlight: of a limit in flight, only the capacity can be overridden, and no limit becomes one.
func TestOverrideInFlight(t *testing.T) {
	sequential(t)
	s := inFlight(t)
	for _, value := range []string{"parallel=5/1m", "parallel=5,burst=6", "parallel=5,refill=1"} {
		s.run("override set user-1 calls "+value, 2, "", `sluice: "`+value+`": parallel is of calls in flight: `+
			"there is no every, burst or refill to change, write parallel=5; run `sluice override set --help`\n")
	}
	code, out, errs := sluice(t, start, append([]string{"override", "set", "user-1", "calls", "parallel=5",
		"rpm=7", "--refill"}, s.flags...)...)
	if code != 0 || errs != "" || !strings.Contains(out, "was        20     20  in flight       schema\n") ||
		!strings.Contains(out, "now         5      5  in flight       user-1\n") ||
		!strings.HasSuffix(out, "user-1 on calls: filled\n"+lost) {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	code, out, errs = sluice(t, start, append([]string{"override", "explain", "user-1", "calls"}, s.flags...)...)
	if code != 0 || errs != "" || !strings.Contains(out, "the bucket has the limits in force\n") ||
		!strings.Contains(out, "  parallel          5         5      5  in flight       0 of 5 in flight\n") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	_, exported, _ := sluice(t, start, append([]string{"override", "export"}, s.flags...)...)
	for name, test := range map[string]struct{ old, new, want string }{
		"as it is": {"", "", ""},
		"slots that refill": {`"refill_milli":0`, `"refill_milli":5`, "limit parallel of user-1: it is of calls " +
			"in flight, so only its capacity can differ from limits.yaml: write burst_milli 5000, refill_milli 0 " +
			"and period_ms 1\n"},
		"a window": {`"period_ms":1}`, `"period_ms":60000}`, "write burst_milli 5000, refill_milli 0 and " +
			"period_ms 1\n"},
		"no refill": {`"refill_milli":7000,"period_ms":60000`, `"refill_milli":0,"period_ms":1`, "limit rpm of " +
			"user-1: refill 0 is for limits with windows or of calls in flight, and it refills: write the refill, " +
			"such as the capacity\n"},
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

// TestLoadSettlesNoSlots: slots come back as calls end, so a load has no other cost to settle them to.
func TestLoadSettlesNoSlots(t *testing.T) {
	for _, text := range []string{"parallel=0..2", "calls:parallel=1"} {
		code, out, errs := loading(t.Context(), "--in-process", "--file", inFlightFile, "--mix", "user:calls",
			"--settle", text)
		expect(t, code, out, errs, 2, "", `sluice: --settle "`+text+`": parallel of calls is of calls in flight, `+
			"whose slots come back when the call ends: leave it out; run `sluice load --help`\n")
	}
}
