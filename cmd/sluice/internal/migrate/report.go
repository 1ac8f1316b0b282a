package migrate

import (
	"math"
	"strings"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/sluice-go/sluice/internal/tool/migrate"
	"github.com/sluice-go/sluice/internal/tool/texttable"
)

// done is what a job has done, or would do.
var done = map[migrate.Job]string{
	migrate.DryRun: "looked at", migrate.Carry: "migrated", migrate.Verify: "verified", migrate.Cleanup: "cleaned up",
}

// describe prints what a run did and what is left to do.
func describe(p program.Env, r *migrate.Report) error {
	what := "table " + r.Table
	if r.Resource != "" {
		what += ", resource " + r.Resource
	}
	how := ""
	if r.Resumed {
		how = ", going on where another run was"
	}
	if !r.Complete {
		how += ", as far as it came"
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

// figures returns the rows of what a run came to.
func figures(r *migrate.Report) (rows [][]string) {
	add := func(what string, n int64, why string) { rows = append(rows, []string{what, texttable.Count(n), why}) }
	some := func(what string, n int64, why string) {
		if n > 0 {
			add(what, n, why)
		}
	}
	if c := r.Carried; c != nil && r.Job == migrate.DryRun {
		add("buckets to carry over", c.Buckets, "")
		add("items to mark", c.Items, "")
		add("write units it takes", c.Units, within(c.Seconds))
	} else if c != nil {
		add("buckets carried over", c.Buckets, "")
		add("items marked", c.Items, "")
		some("carried over by others", c.There, "programs that needed them meanwhile")
	}
	if c := r.Checked; c != nil {
		add("buckets that hold", c.Buckets, "")
		add("items marked", c.Items, "")
		some("of them in no bucket", c.Expired, "it was full and has expired, or their limits are in `removed:`: they count no more")
	}
	if c := r.Cleaned; c != nil {
		add("items deleted", c.Deleted, "")
		some("items kept", c.Expired, "their bucket has expired")
	}
	add("items read", r.Scanned, "of whatever kind")
	if r.Job == migrate.Carry || r.Job == migrate.Cleanup {
		add("write units", int64(r.WriteUnits), "")
	}
	return append(rows, []string{"took", seconds(r.Seconds), ""})
}

// within says how long something takes at the given rate, if there is one.
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
	rows := [][]string{{"RESOURCE", "LIMIT", "CONSUMED", "CARRIED OVER", "EXPIRED", "SINCE"}}
	for _, s := range all {
		rows = append(rows, []string{s.Resource, s.Limit, format.Tokens(s.Items), format.Tokens(s.Carried), format.Tokens(s.Expired), format.Tokens(s.Since)})
	}
	return rows
}

// printDiffering prints the commands that have buckets keep their items' numbers.
func printDiffering(p program.Env, r *migrate.Report) {
	all := r.Differing
	switch n := format.Quantity(len(all), "bucket"); {
	case len(all) == 0:
		return
	case r.Job == migrate.DryRun:
		p.Say("%s would get other numbers than their items have. To keep the items', run, before programs with "+
			"dynamo.PerLimitItems() or `sluice migrate` take them over:\n", n)
	case r.Job == migrate.Verify:
		p.Say("%s with other numbers than the marked items, those overridden since included until their next call. To give them the "+
			"items', run:\n", n)
	default:
		p.Say("%s got other numbers than their items had. To give them the items', run:\n", n)
	}
	for _, d := range all[:min(format.First, len(all))] {
		p.Say("  %s\n", d.Override)
	}
	printMore(p, len(all), "; if many are alike, override the kind instead, or change limits.yaml")
}

// printAhead prints whose buckets would be in debt.
func printAhead(p program.Env, r *migrate.Report) {
	if len(r.Ahead) == 0 {
		return
	}
	p.Say("%s last refilled more than a minute ahead of this machine's clock, in another unit than ms or by a clock that was ahead. "+
		"Mend last_refill_ms, before programs with dynamo.PerLimitItems() or `sluice migrate` take them over, or their buckets will be in "+
		"debt until then:\n", format.Quantity(len(r.Ahead), "item"))
	for _, a := range r.Ahead[:min(format.First, len(r.Ahead))] {
		p.Say("  %s on %s, limit %s: %s ahead\n", a.Entity, a.Resource, a.Limit, far(a.Ms))
	}
	printMore(p, len(r.Ahead), "")
}

// far writes how far ms ahead is, which may be more than a time.Duration holds.
func far(ms int64) string {
	const day = int64(24 * time.Hour / time.Millisecond)
	if ms >= 2*day {
		return texttable.Count(ms/day) + " days"
	}
	return seconds(float64(ms) / 1000)
}

// printLeft prints what stays as it is.
func printLeft(p program.Env, r *migrate.Report) {
	for _, l := range r.Left {
		n := format.Quantity(int(l.Items), "item")
		switch l.Why {
		case migrate.NoResource:
			p.Say("%s of resource %s, which the schema does not have: add it, or delete them\n", n, l.Resource)
		case migrate.NoBucket:
			p.Say("%s of %s on %s, which gives kind %s no bucket: add it to the resource's entities, or delete them\n", n, l.Kind, l.Resource, l.Kind)
		case migrate.NoLimit:
			p.Say("%s of limit %s on %s, which the schema does not have: add it, or put it in `removed:`\n", n, l.Limit, l.Resource)
		case migrate.NotYet:
			p.Say("%s of limit %s on %s not carried over: run `sluice migrate`, which does it or says what is wrong\n", n, l.Limit, l.Resource)
		}
	}
}

// printBeside prints buckets that were made without a look at their items.
func printBeside(p program.Env, r *migrate.Report) {
	if len(r.Beside) == 0 {
		return
	}
	p.Say("%s made beside items without taking them over, full, by a program without dynamo.PerLimitItems() or before the limit "+
		"was in the schema. Deploy it with that, and delete either the items, or the bucket to have it made of them:\n", format.Quantity(len(r.Beside), "bucket"))
	for _, b := range r.Beside[:min(format.First, len(r.Beside))] {
		p.Say("  %s on %s\n", b.Entity, b.Resource)
	}
	printMore(p, len(r.Beside), "")
}

// printWrong prints what is wrong with single buckets.
func printWrong(p program.Env, r *migrate.Report) {
	if len(r.Wrong) == 0 {
		return
	}
	p.Say("%s wrong:\n", format.Quantity(len(r.Wrong), "bucket"))
	for _, w := range r.Wrong[:min(format.First, len(r.Wrong))] {
		p.Say("  %s on %s: %s\n", w.Entity, w.Resource, strings.TrimPrefix(w.What, "sluice: "))
	}
	printMore(p, len(r.Wrong), "")
}

// printMore says what is not printed of n.
func printMore(p program.Env, n int, then string) {
	if n > format.First {
		p.Say("  and %s more: --json has all%s\n", format.Count(n-format.First), then)
	}
}

// printNext says what to do once all is well.
func printNext(p program.Env, r *migrate.Report) {
	if !r.Complete || wrongIn(r) != nil {
		return
	}
	switch {
	case r.Job == migrate.DryRun:
		if r.Carried.Items > 0 {
			p.Say("next: deploy programs with dynamo.PerLimitItems(), then `sluice migrate`\n")
		}
	case r.Job == migrate.Carry && !r.Resumed && r.Carried.Buckets+r.Carried.There == 0: // it has left no note in the table
		p.Say("there was nothing to carry over; where buckets were carried over before, next: `sluice migrate --verify`\n")
	case r.Job == migrate.Carry:
		p.Say("next: `sluice migrate --verify`; until `sluice migrate --cleanup` says that no item is left, Check fails in programs " +
			"without dynamo.PerLimitItems()\n")
	case r.Job == migrate.Verify:
		p.Say("nothing is wrong; next: `sluice migrate --cleanup`\n")
	case r.Job != migrate.Cleanup:
	case r.Cleaned.Done:
		p.Say("no per-limit item is left: programs need dynamo.PerLimitItems() no more\n")
	case r.Cleaned.Expired > 0:
		p.Say("items whose bucket has expired are the last that says what was consumed; they count no more. " +
			"Programs need dynamo.PerLimitItems() until they are gone: run `sluice migrate --cleanup --expired`, " +
			"or this again once the buckets are in use\n")
	case r.Resource != "":
		p.Say("there are items of other resources: programs need dynamo.PerLimitItems() until they are gone\n")
	default:
		p.Say("there are items that the runs before kept: run `sluice migrate --cleanup` again\n")
	}
}
