package migrate

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress is what one sees of a run: lines in a log, and one that is written over on a terminal.
func TestProgress(t *testing.T) {
	for name, test := range map[string]struct {
		job      Job
		before   int64 // the scan at which a run was ended that is gone on with
		terminal bool
		users    int
		want     string
	}{
		"lines": {job: Convert, users: 100, want: `
[####----------------]  21%  42 of 200 items read, 21 buckets converted, about 19s left
[########------------]  42%  84 of 200 items read, 42 buckets converted, about 14s left
[############--------]  63%  127 of 200 items read, 63 buckets converted, about 9s left
[################----]  84%  169 of 200 items read, 84 buckets converted, about 4s left
[####################] 100%  201 of 201 items read, 100 buckets converted
`},
		"gone on with": {job: Convert, before: 4, users: 100, want: `
[########------------]  44%  103 of 232 items read, 21 buckets converted, about 15s left
[############--------]  62%  145 of 232 items read, 42 buckets converted, about 11s left
[################----]  80%  187 of 232 items read, 63 buckets converted, about 6s left
[####################] 100%  201 of 201 items read, 70 buckets converted
`},
		"a terminal": {job: Convert, terminal: true, users: 3, want: "" +
			"<[######--------------]  33%  2 of 6 items read, 1 buckets converted, about 1s left" +
			"<[#############-------]  66%  4 of 6 items read, 2 buckets converted, about 1s left" +
			"<[####################] 100%  6 of 6 items read, 3 buckets converted               " +
			"<[####################] 100%  6 of 6 items read, 3 buckets converted\n"},
		"over at once": {job: DryRun, users: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tbl := bubble(t)
				tbl.put(users(test.users)...)
				c := tbl.config(test.job, nil)
				c.Segments, c.page, c.Now = 1, 20, time.Now
				if test.before > 0 {
					tbl.interrupted(c, test.before)
				}
				var out bytes.Buffer
				c.Units, c.Progress, c.Terminal = 34, &out, test.terminal
				tbl.run(c)
				want := strings.TrimPrefix(test.want, "\n")
				if got := strings.ReplaceAll(out.String(), "\r", "<"); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		})
	}
}

// TestProgressUnknown: DynamoDB counts a table's items every six hours, and at first there are none.
func TestProgressUnknown(t *testing.T) {
	for total, want := range map[int64]string{
		0:  "25 items read, 5 items deleted, 20s",
		24: "25 items read, 5 items deleted, 20s",
		25: "[####################] 100%  25 of 25 items read, 5 items deleted",
		50: "[##########----------]  50%  25 of 50 items read, 5 items deleted, about 20s left",
	} {
		p := &progress{now: still{}.Now, job: Cleanup}
		p.start(0, total)
		p.read, p.done = 25, 5
		if got := p.text(20 * time.Second); got != want {
			t.Errorf("of %d: %s, want %s", total, got, want)
		}
	}
}
