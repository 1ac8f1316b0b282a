package migrate

import (
	"math"
	"strings"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/migrate"
	"github.com/sluice-go/sluice/internal/tool/texttable"
)

// done is what a job has done, or would do.
var done = map[migrate.Job]string{
	migrate.DryRun: "examined", migrate.Convert: "migrated", migrate.Verify: "verified",
	migrate.Cleanup: "cleaned up",
}

// describe prints the results of a run and what is left to do.
func describe(p program.Env, r *migrate.Report) error {
	what := "table " + r.Table
	if r.Resource != "" {
		what += ", resource " + r.Resource
	}
	how := ""
	if r.Resumed {
		how = ", resumed"
	}
	if !r.Complete {
		how += ", incomplete"
	}
	p.Say("%s: %s%s\n", what, done[r.Job], how)
	if err := texttable.Write(p.Stdout, "  ", "lrl", figures(r)); err != nil {
		return err
	}
	if r.Checked != nil && len(r.Checked.Sums) > 0 {
		if err := texttable.Write(p.Stdout, "  ", "llrrrr", sums(r.Checked.Sums)); err != nil {
			return err
		}
	}
	printDiffering(p, r)
	printAhead(p, r)
	printLeft(p, r)
	printBeside(p, r)
	printWrong(p, r)
	printNext(p, r)
	return nil
}

// figures returns the rows of the results.
func figures(r *migrate.Report) (rows [][]string) {
	add := func(what string, n int64, why string) {
		rows = append(rows,
			[]string{what, texttable.Count(n), why})
	}
	some := func(what string, n int64, why string) {
		if n > 0 {
			add(what, n, why)
		}
	}
	if c := r.Converted; c != nil && r.Job == migrate.DryRun {
		add("buckets to be created", c.Buckets, "")
		add("items to mark", c.Items, "")
		add("write units it takes", c.Units, within(c.Seconds))
	} else if c != nil {
		add("converted to buckets", c.Buckets, "")
		add("items marked", c.Items, "")
		some("converted by programs", c.There, "by acquires during the run")
	}
	if c := r.Checked; c != nil {
		add("buckets confirmed", c.Buckets, "")
		add("items marked", c.Items, "")
		some("of them in no bucket", c.Expired,
			"it was full and has expired, or their limits are in `removed:`: they no longer count")
	}
	if c := r.Cleaned; c != nil {
		add("items deleted", c.Deleted, "")
		some("items kept", c.Expired, "their bucket has expired")
	}
	add("items read", r.Scanned, "of any kind")
	if r.Job == migrate.Convert || r.Job == migrate.Cleanup {
		add("write units", int64(r.WriteUnits), "")
	}
	return append(rows, []string{"took", seconds(r.Seconds), ""})
}

// within writes the time that something takes at the given rate, if there is one.
func within(s float64) string {
	if s == 0 {
		return ""
	}
	return seconds(s) + " at the given --write-units"
}

func seconds(s float64) string {
	return format.Span(time.Duration(math.Ceil(s)) * time.Second)
}

// sums returns the rows of what was consumed.
func sums(all []migrate.Sum) [][]string {
	rows := [][]string{{"RESOURCE", "LIMIT", "CONSUMED", "INTO BUCKETS", "EXPIRED", "SINCE"}}
	for _, s := range all {
		rows = append(rows, []string{s.Resource, s.Limit, format.Tokens(s.Items), format.Tokens(s.Converted),
			format.Tokens(s.Expired), format.Tokens(s.Since)})
	}
	return rows
}

// printDiffering prints the command lines that give buckets the limits of their items.
func printDiffering(p program.Env, r *migrate.Report) {
	all := r.Differing
	switch n := format.Quantity(len(all), "bucket"); {
	case len(all) == 0:
		return
	case r.Job == migrate.DryRun:
		p.Say("%s would get other limits than their items have. To keep those of the items, run this before "+
			"programs with migrating.New or `sluice migrate` convert them:\n", n)
	case r.Job == migrate.Verify:
		p.Say("%s with other limits than the marked items, including those overridden since, until their next "+
			"call. To give them the limits of the items, run:\n", n)
	default:
		p.Say("%s got other limits than their items had. To give them those of the items, run:\n", n)
	}
	for _, d := range all[:min(format.First, len(all))] {
		p.Say("  %s\n", d.Override)
	}
	printMore(p, len(all), "; if many are the same, override the kind instead, or change limits.yaml")
}

// printAhead prints items whose buckets would be in debt.
func printAhead(p program.Env, r *migrate.Report) {
	if len(r.Ahead) == 0 {
		return
	}
	p.Say("%s last refilled more than a minute ahead of this machine's clock: the unit is not ms, or a clock "+
		"was ahead. Correct last_refill_ms before programs with migrating.New or `sluice migrate` "+
		"convert them, or their buckets will be in debt until then:\n", format.Quantity(len(r.Ahead), "item"))
	for _, a := range r.Ahead[:min(format.First, len(r.Ahead))] {
		p.Say("  %s on %s, limit %s: %s ahead\n", term.Quote(a.Entity), term.Quote(a.Resource),
			term.Quote(a.Limit), far(a.Ms))
	}
	printMore(p, len(r.Ahead), "")
}

// far writes how far ahead ms is, which may be more than a time.Duration can hold.
func far(ms int64) string {
	const day = int64(24 * time.Hour / time.Millisecond)
	if ms >= 2*day {
		return texttable.Count(ms/day) + " days"
	}
	return seconds(float64(ms) / 1000)
}

// printLeft prints the items that stay.
func printLeft(p program.Env, r *migrate.Report) {
	for _, l := range r.Left {
		n := format.Quantity(int(l.Items), "item")
		limit, resource, kind := term.Quote(l.Limit), term.Quote(l.Resource), term.Quote(l.Kind)
		switch l.Why {
		case migrate.NoResource:
			p.Say("%s of resource %s, which the schema does not have: add it, or delete them\n", n, resource)
		case migrate.NoBucket:
			p.Say("%s of %s on %s, which gives kind %s no bucket: add it to the resource's entities, or delete them\n",
				n, kind, resource, kind)
		case migrate.NoLimit:
			p.Say("%s of limit %s on %s, which the schema does not have: add it, or put it in `removed:`\n", n,
				limit, resource)
		case migrate.NotYet:
			p.Say("%s of limit %s on %s not converted: run `sluice migrate`, which converts them or says what is "+
				"wrong\n",
				n, limit, resource)
		}
	}
}

// printBeside prints buckets that were made without reading their items.
func printBeside(p program.Env, r *migrate.Report) {
	if len(r.Beside) == 0 {
		return
	}
	p.Say("%s made full beside items that were not converted: by a program without migrating.New, "+
		"or before the limit was in the schema. Deploy programs with migrating.New. Then delete either "+
		"the items, or the bucket, which is then made from them:\n", format.Quantity(len(r.Beside), "bucket"))
	for _, b := range r.Beside[:min(format.First, len(r.Beside))] {
		p.Say("  %s on %s\n", term.Quote(b.Entity), term.Quote(b.Resource))
	}
	printMore(p, len(r.Beside), "")
}

// printWrong prints the errors of single buckets.
func printWrong(p program.Env, r *migrate.Report) {
	if len(r.Wrong) == 0 {
		return
	}
	p.Say("%s wrong:\n", format.Quantity(len(r.Wrong), "bucket"))
	for _, w := range r.Wrong[:min(format.First, len(r.Wrong))] {
		p.Say("  %s on %s: %s\n", term.Quote(w.Entity), term.Quote(w.Resource),
			term.Escape(strings.TrimPrefix(w.What, "sluice: ")))
	}
	printMore(p, len(r.Wrong), "")
}

// printMore prints how many of n entries are not printed.
func printMore(p program.Env, n int, then string) {
	if n > format.First {
		p.Say("  and %s more: --json has all%s\n", format.Count(n-format.First), then)
	}
}

// printNext prints the next step if nothing is wrong.
func printNext(p program.Env, r *migrate.Report) {
	if !r.Complete || wrongIn(r) != nil {
		return
	}
	switch {
	case r.Job == migrate.DryRun:
		if r.Converted.Items > 0 {
			p.Say("next: deploy programs with migrating.New, then `sluice migrate`\n")
		}
	case r.Job == migrate.Convert && !r.Resumed && r.Converted.Buckets+r.Converted.There == 0:
		// this run has left no mark in the table
		p.Say("there was nothing to convert; after an earlier run, next: `sluice migrate --verify`\n")
	case r.Job == migrate.Convert:
		p.Say("next: `sluice migrate --verify`; until `sluice migrate --cleanup` says that no item is left, " +
			"Check fails in programs " +
			"without migrating.New\n")
	case r.Job == migrate.Verify:
		p.Say("nothing is wrong; next: `sluice migrate --cleanup`\n")
	case r.Job != migrate.Cleanup:
	case r.Cleaned.Done:
		p.Say("no per-limit item is left: programs may use dynamo.New again\n")
	case r.Cleaned.Expired > 0:
		p.Say("items whose bucket has expired are the last record of consumption; they no longer count. " +
			"Programs need migrating.New until they are deleted: run `sluice migrate --cleanup " +
			"--expired`, or this again once the buckets are in use\n")
	case r.Resource != "":
		p.Say("there are items of other resources: programs need migrating.New until they are deleted\n")
	default:
		p.Say("there are items that earlier runs kept: run `sluice migrate --cleanup` again\n")
	}
}
