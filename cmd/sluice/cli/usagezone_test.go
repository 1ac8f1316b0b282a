package cli_test

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// usageAt runs the command at an instant, as CSV, and returns the tokens of rpm by start: "2026-03-29" is
// when a day begins.
func (b *book) usageAt(now time.Time, line string) map[string]string {
	b.t.Helper()
	code, out, errs := sluice(b.t, now, append(append([]string{"usage"}, strings.Fields(line)...), "--csv",
		"--table", b.table)...)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if code != 0 || errs != "" || err != nil {
		b.t.Fatalf("%s: exit code %d, %v\n%s", line, code, err, errs)
	}
	tokens := map[string]string{}
	for _, row := range rows[1:] {
		tokens[row[0]] = row[2]
	}
	return tokens
}

// consumeHours has user-1 consume a token an hour.
func (b *book) consumeHours(from, to time.Time) {
	b.t.Helper()
	for at := from; at.Before(to); at = at.Add(time.Hour) {
		b.consume(at, "user-1", "gpt-4", map[string]int64{"rpm": 1_000})
	}
}

// TestUsageOfLongDays: a day on which clocks change has 23 or 25 hours, and begins after a midnight that does
// not exist.
func TestUsageOfLongDays(t *testing.T) {
	sequential(t)
	for name, test := range map[string]struct {
		zone string
		day  time.Time
		want map[string]string
	}{
		"23 hours": {"Europe/Berlin", time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC), map[string]string{
			"2026-03-28T00:00:00+01:00": "24", "2026-03-29T00:00:00+01:00": "23",
			"2026-03-30T00:00:00+02:00": "24"}},
		"25 hours": {"Europe/Berlin", time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC), map[string]string{
			"2026-10-24T00:00:00+02:00": "24", "2026-10-25T00:00:00+02:00": "25",
			"2026-10-26T00:00:00+01:00": "24"}},
		"no midnight": {"Africa/Cairo", time.Date(2026, 4, 24, 0, 0, 0, 0, time.UTC), map[string]string{
			"2026-04-23T00:00:00+02:00": "24", "2026-04-24T01:00:00+03:00": "23",
			"2026-04-25T00:00:00+03:00": "24"}},
		"two midnights": {"America/Havana", time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), map[string]string{
			"2026-10-31T00:00:00-04:00": "24", "2026-11-01T00:00:00-04:00": "25",
			"2026-11-02T00:00:00-05:00": "24"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			zone, err := time.LoadLocation(test.zone)
			if err != nil {
				t.Fatal(err)
			}
			until := time.Date(test.day.Year(), test.day.Month(), test.day.Day()+2, 0, 0, 0, 0, zone)
			b.consumeHours(test.day.AddDate(0, 0, -2), until)
			got := b.usageAt(until, "user-1 --zone "+test.zone+" --since "+
				test.day.AddDate(0, 0, -1).Format(time.DateOnly))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("days of %s (-want +got):\n%s", test.zone, diff)
			}
		})
	}
}

// TestUsageByZone: each hour counts in the day and the month that the zone's clock shows.
func TestUsageByZone(t *testing.T) {
	sequential(t)
	b := newBook(t)
	first := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	dice := rand.New(rand.NewPCG(1, 1))
	consumed := map[time.Time]int64{}
	for range longform.Count(t, "hours", 600, 150) {
		at := first.Add(time.Duration(dice.IntN(60*24)) * time.Hour)
		n := 1 + dice.Int64N(9)
		consumed[at] += n
		b.consume(at, "user-1", "gpt-4", map[string]int64{"rpm": 1_000 * n})
	}
	now := first.AddDate(0, 0, 60)
	for _, zone := range []string{"", "UTC", "Europe/Berlin", "America/New_York", "Africa/Cairo",
		"Pacific/Kiritimati", "America/Havana", "Asia/Tokyo"} {
		for by, layout := range map[string]string{"day": time.DateOnly, "month": "2006-01"} {
			line := "user-1 --since 2026-10-02 --by " + by
			if zone != "" {
				line += " --zone " + zone
			}
			at, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}
			want, got := map[string]int64{}, map[string]int64{}
			since := map[string]string{"day": "2026-10-02", "month": "2026-10"}[by]
			for hour, n := range consumed {
				if name := hour.In(at).Format(layout); name >= since {
					want[name] += n
				}
			}
			for start, tokens := range b.usageAt(now, line) {
				n, err := strconv.ParseInt(tokens, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				got[start[:len(layout)]] += n
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", line, diff)
			}
		}
	}
}

// TestUsageZoneForms: every form has days and months of the zone.
func TestUsageZoneForms(t *testing.T) {
	sequential(t)
	b := newBook(t)
	b.fill()
	for name, line := range map[string]string{
		"zone-days.txt":   "project-7 --zone America/New_York",
		"zone-days.json":  "project-7 --zone America/New_York --json",
		"zone-plot.txt":   "project-7 --zone America/New_York --plot --file " + demo,
		"months.txt":      "project-7 --by month --since 2026-02-01",
		"zone-months.txt": "project-7 --by month --zone Asia/Tokyo",
		"months-plot.txt": "project-7 --by month --plot --file " + demo,
	} {
		code, out, errs := b.usage(line)
		if code != 0 || errs != "" {
			t.Errorf("%s: exit code %d, stderr\n%s", line, code, errs)
		}
		golden(t, name, out)
	}
	code, out, errs := b.usage("user-2 --zone Europe/Berlin")
	expect(t, code, out, errs, 0, "", "user-2: no usage by day is stored since 2026-02-22 00:00 Europe/Berlin: "+
		"nothing was consumed, or neither `sluice aggregate` nor a Lambda function has counted it\n")
}

// TestUsageZoneFails: a zone of whose days hours in UTC are no part is refused, with what to do instead.
func TestUsageZoneFails(t *testing.T) {
	sequential(t)
	b := newBook(t)
	const help = "; run `sluice usage --help`\n"
	offset := func(zone, offset, day string) string {
		return fmt.Sprintf("--zone %s is %s from UTC on %s: usage is stored by hours in UTC, which do not add "+
			"up to days of this zone: leave --zone out for days in UTC, or pass a zone that is whole hours from "+
			"UTC", zone, offset, day)
	}
	const svg = "--svg draws hours and days in UTC: pass --plot instead, or another --by and no --zone"
	april := time.Date(2026, 4, 10, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		now        time.Time
		line, want string
	}{
		{start, "--zone Asia/Kolkata", offset("Asia/Kolkata", "+05:30", "2026-02-22")},
		{start, "--zone Asia/Kolkata --by month", offset("Asia/Kolkata", "+05:30", "2026-02-01")},
		{start, "--zone America/St_Johns", offset("America/St_Johns", "-03:30", "2026-02-22")},
		{april, "--zone Australia/Lord_Howe", offset("Australia/Lord_Howe", "+10:30", "2026-04-05")},
		{start, "--zone Mars/Olympus", `--zone Mars/Olympus is no zone of the tz database: pass one such as ` +
			`Europe/Berlin`},
		{start, "--zone Local", `--zone Local is no zone of the tz database: pass one such as Europe/Berlin`},
		{start, "--zone=", `--zone "" is no zone of the tz database: pass one such as Europe/Berlin`},
		{start, "--zone Europe/Berlin --by hour",
			"--zone is for --by day, month and window: leave it out for hours"},
		{start, "--zone Europe/Berlin --svg x.svg", svg},
		{start, "--by month --svg x.svg", svg},
		{start, "--by window --svg x.svg", svg},
		{start.Add(11 * time.Hour).Add(-time.Minute), "--zone Europe/Berlin --since 2026-03-02",
			"--since 2026-03-02: that day has not begun in Europe/Berlin: pass an earlier one"},
	} {
		code, out, errs := sluice(t, test.now, append([]string{"usage", "user-1", "--table", b.table},
			strings.Fields(test.line)...)...)
		expect(t, code, out, errs, 2, "", "sluice: "+test.want+help)
	}
	// Lord Howe is 11 hours from UTC in its summer, which is the time that is asked for.
	b.consumeHours(start.AddDate(0, 0, -3), start)
	got := b.usageAt(start, "user-1 --zone Australia/Lord_Howe --since 2d")
	if got["2026-02-28T00:00:00+11:00"] != "24" {
		t.Errorf("days of Lord Howe: %v", got)
	}
}

// deleteHour deletes an hour of user-1, as TTL does.
func (b *book) deleteHour(hour time.Time) {
	b.t.Helper()
	key := codec.Item{"PK": codec.S("ENTITY#user-1"),
		"SK": codec.S("#USAGE#gpt-4#hour#" + hour.Format("2006-01-02T15"))}
	if _, err := b.client.DeleteItem(b.t.Context(),
		&dynamodb.DeleteItemInput{TableName: &b.table, Key: key}); err != nil {
		b.t.Fatal(err)
	}
}

// TestUsageZoneWithoutHours: hours that were deleted are missed, since days in UTC are kept for longer. The
// cure works.
func TestUsageZoneWithoutHours(t *testing.T) {
	sequential(t)
	b := newBook(t)
	b.consumeHours(start.AddDate(0, 0, -20), start)
	for hour := start.AddDate(0, 0, -20); hour.Before(start.AddDate(0, 0, -10)); hour = hour.Add(time.Hour) {
		b.deleteHour(hour)
	}
	missing := func(before, span, zone, since string) string {
		return fmt.Sprintf("sluice: user-1: hours before %s 00:00 UTC are not stored any more, and a %s in %s is "+
			"made of hours: pass --since %s, or keep them longer with --keep-hours of `sluice aggregate`\n", before,
			span, zone, since)
	}
	dayMissing := missing("2026-02-20", "day", "Europe/Berlin", "2026-02-21")
	monthMissing := missing("2026-02-20", "month", "America/New_York", "2026-03-01")
	for line, want := range map[string]string{
		"--since 15d --zone Europe/Berlin":                dayMissing,
		"--since 9d --zone America/New_York":              "",
		"--since 2026-02-21 --zone Europe/Berlin":         "",
		"--since 2026-02-20 --zone America/New_York":      "",
		"--by month --since 9d --zone America/New_York":   monthMissing,
		"--by month --since 1d --zone Pacific/Kiritimati": "",
	} {
		code, out, errs := sluice(t, start, append([]string{"usage", "user-1", "--table", b.table},
			strings.Fields(line)...)...)
		if want != "" {
			expect(t, code, out, errs, 1, "", want)
		} else if code != 0 || errs != "" {
			t.Errorf("%s: exit code %d\n%s", line, code, errs)
		}
	}
	b = newBook(t)
	b.consume(start.AddDate(0, 0, -3), "user-1", "gpt-4", map[string]int64{"rpm": 1_000})
	b.deleteHour(start.AddDate(0, 0, -3))
	code, out, errs := b.usage("user-1 --by month --since 2026-02-27 --zone Europe/Berlin")
	expect(t, code, out, errs, 1, "", missing("2026-02-27", "month", "Europe/Berlin", "2026-03-01"))
	code, out, errs = sluice(t, start.AddDate(0, 0, -1), "usage", "user-1", "--table", b.table, "--by", "month",
		"--zone", "Europe/Berlin")
	expect(t, code, out, errs, 1, "", "sluice: user-1: hours before 2026-02-27 00:00 UTC are not stored any "+
		"more, and a month in Europe/Berlin is made of hours: keep them longer with --keep-hours of "+
		"`sluice aggregate`\n")
}
