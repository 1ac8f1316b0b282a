package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportOnRedis: what export prints of one Redis, import writes into another one.
func TestImportOnRedis(t *testing.T) {
	from, to := newRedis(t, demo), newRedis(t, demo)
	set := append(strings.Fields("override set user-123 gpt-4 rpm=200,burst=300"), from.flags...)
	if code, _, errs := command(t.Context(), set...); code != 0 {
		t.Fatal(errs)
	}
	for _, format := range []string{"jsonl", "csv"} {
		code, text, errs := command(t.Context(), append([]string{"override", "export", "--format", format},
			from.flags...)...)
		if code != 0 || errs != "exported 1 override\n" {
			t.Fatalf("exit code %d, %s", code, errs)
		}
		file := filepath.Join(t.TempDir(), "all."+format)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		to.server.FlushAll()
		to.run("override import "+file+" --dry-run", 0, `AT        RESOURCE  LIMIT       CAPACITY  BURST  REFILL
user-123  gpt-4     rpm    was         -      -  -
                           now       200    300  200 every 1m
would write 1 override; 0 unchanged
`, "")
		to.run("override import "+file, 0, "wrote 1 override; 0 unchanged\n", takenUp)
		to.run("override import "+file, 0, "wrote 0 overrides; 1 unchanged\n", "")
	}
}

// TestImport: the output of export is imported; a dry run prints what changes, and mistakes have their lines.
func TestImport(t *testing.T) {
	sequential(t)
	s, _ := newSession(t, demo)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const header = "at,resource,revision,limit,capacity_milli,burst_milli,refill_milli,period_ms\n"
	first := file("first.csv", header+"user-123,gpt-4,none,rpm,200000,300500,200000,60000\n"+
		"project,gpt-4,,rpm,5000000,5000000,5000000,60000\n")
	const diff = `AT        RESOURCE  LIMIT       CAPACITY  BURST  REFILL
user-123  gpt-4     rpm    was         -      -  -
                           now       200  300.5  200 every 1m
project   gpt-4     rpm    was         -      -  -
                           now     5,000  5,000  5,000 every 1m
would write 2 overrides; 0 unchanged
`
	s.run("override import "+first+" --dry-run", 0, diff, "")
	if n := s.items(); n != 0 {
		t.Errorf("the dry run wrote %d items", n)
	}
	s.run("override import "+first+" --rate 1000", 0, "wrote 2 overrides; 0 unchanged\n", takenUp)
	s.run("override import "+first, 0, "wrote 0 overrides; 2 unchanged\n", "")
	code, lines, errs := sluice(t, start, append(strings.Fields("override export gpt-4"), s.flags...)...)
	if want := "exported 2 overrides\n"; code != 0 || errs != want || strings.Count(lines, "\n") != 2 {
		t.Fatalf("exit code %d, %s%s", code, lines, errs)
	}
	s.run("override import "+file("same.jsonl", lines), 0, "wrote 0 overrides; 2 unchanged\n", "")
	both := file("both.jsonl", lines+lines)
	s.run("override import "+both, 1, "", both+":3: project on gpt-4 is in line 1 already: leave one out\n"+
		both+":4: user-123 on gpt-4 is in line 2 already: leave one out\nsluice: nothing was written\n")
	s.run("override import "+dir+"/none.csv", 1, "", "sluice: open "+dir+"/none.csv: no such file or directory"+
		"; pass a file that `sluice override export` wrote, or - for the standard input\n")
	s.run("override import "+dir, 1, "", dir+":1: read "+dir+": is a directory: pass a file that `sluice "+
		"override export` wrote\nsluice: nothing was written\n")
	long := file("long.jsonl", lines+strings.Repeat(" ", 1<<20+1))
	s.run("override import "+long, 1, "", long+":3: more than 1 MiB: write an object of at most 1 MiB on each "+
		"line\nsluice: nothing was written\n")
	changed := file("changed.csv", header+"user-123,gpt-4,5,rpm,100000,100000,100000,60000\n")
	code, _, errs = sluice(t, start, append(strings.Fields("override import "+changed), s.flags...)...)
	if code != 1 || !strings.Contains(errs, "changed.csv:2: user-123 on gpt-4 is at revision ") ||
		!strings.Contains(errs, ", not 5: export it again, or pass --overwrite\nsluice: nothing was written") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	s.run("override import "+changed+" --overwrite", 0, "wrote 1 override; 0 unchanged\n", takenUp)
	s.run("override import "+changed+" --rate=-1", 2, "", "sluice: --rate -1 is below 0: pass the most writes "+
		"a second, or leave the flag out; run `sluice override import --help`\n")
}
