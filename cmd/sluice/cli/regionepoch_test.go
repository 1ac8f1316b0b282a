package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRegionBegins: what begins an epoch is said, and why, before it does and when it does; then for how long
// it waits.
func TestRegionBegins(t *testing.T) {
	sequential(t)
	w := newPlaces(t)
	begins := func(flags, line string) {
		t.Helper()
		code, out, errs := w.sync(0, strings.Fields(flags)...)
		// the log says it too
		if before, _, ok := strings.Cut(errs, "level=WARN"); ok && strings.HasPrefix(before, "time=") {
			errs = ""
		}
		expect(t, code, out, errs, 0, line, "")
	}
	begins("--dry-run", "eu-central-1: epoch 1 would begin: it has published nothing yet\n"+keeps)
	begins("--dry-run --json",
		`{"region":"eu-central-1","at":"2026-03-01T12:00:00Z","epoch":1,"epoch_begins":"it has published `+
			`nothing yet","sequence":0,"shares":0,`+
			`"heartbeat":false,"operated":0,"writes":[],"failed":[],"peers":[]}`+"\n")
	for range 5 {
		w.cycle(45, 15)
	}
	if err := os.Remove(filepath.Join(w.dir, "eu-central-1", "snapshot.json")); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Minute)
	begins("--dry-run", "eu-central-1: epoch 2 would begin: its snapshot is missing\n"+keeps)
	begins("--once", "eu-central-1: epoch 2 has begun: its snapshot is missing\n"+keeps)
	const waits = "eu-central-1: epoch 2 has begun; nothing is published or written before " +
		"2026-03-01T12:08:00Z, when no process uses an older quota" + `
  REGION     STATE  AGE
  us-east-1  live    1m
`
	for _, flag := range []string{"--dry-run", "--once"} {
		begins(flag, waits)
	}
	begins(
		"--once --json",
		`{"region":"eu-central-1","at":"2026-03-01T12:06:00Z","epoch":2,`+
			`"waits_until":"2026-03-01T12:08:00Z","sequence":0,"shares":0,"heartbeat":false,"operated":0,`+
			`"writes":[],"failed":[],"peers":[{"region":"us-east-1","state":"live","age_seconds":60}]}`+"\n",
	)
}

// TestRegionOfAnother: the wrong --as on a table is refused, however sync is run, and the table and what is
// published stay as they are.
func TestRegionOfAnother(t *testing.T) {
	sequential(t)
	w := newPlaces(t)
	for range 4 {
		w.cycle(45, 15)
	}
	before := w.published()
	w.tables[1] = w.tables[0]
	for _, flags := range [][]string{{"--dry-run"}, {"--once"}, nil} {
		code, out, errs := w.sync(1, flags...)
		expect(t, code, out, errs, 1, "", "sluice: this is the regional sync of us-east-1, and the heartbeat in "+
			"its table is that of eu-central-1, alive until 2026-03-01T12:06:50Z; "+
			"name the table of us-east-1; or, if this is its table, stop the sync that runs for eu-central-1 on "+
			"it, and wait until then\n")
	}
	if w.published() != before {
		t.Error("something was published")
	}
	w.cycle(45) // who is refused has not been in the way
	if !strings.HasPrefix(w.outs[0], "eu-central-1: 2 quotas published in snapshot ") {
		t.Errorf("%s", w.outs)
	}
}

// TestRegionUnwritable: where nothing can be published, that is said before an epoch begins, and none does.
func TestRegionUnwritable(t *testing.T) {
	w := newPlaces(t)
	folder := filepath.Join(w.dir, "eu-central-1")
	// even for root there is no writing there
	if err := os.Symlink(filepath.Join(w.dir, "unmounted"), folder); err != nil {
		t.Skip(err)
	}
	for _, flags := range [][]string{{"--once"}, nil} {
		code, out, errs := w.sync(0, flags...)
		if code != 1 || out != "" || !hasFacts(errs, "sluice: this region's own snapshot: open "+folder) ||
			!hasFacts(errs, "; see to it that "+w.dir+
				" is there, has space, and is writable for this process\n") {
			t.Errorf("%v: exit code %d\n%s%s", flags, code, out, errs)
		}
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	code, out, errs := w.sync(0, "--once")
	expect(t, code, out, errs, 0, "eu-central-1: epoch 1 has begun: it has published nothing yet\n"+keeps, "")
}
