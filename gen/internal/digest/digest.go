// Package digest finds numbers of a limits.yaml that changed under an old revision (docs/design.md,
// "Overrides and cv"), and when a limit takes a name that an earlier one had.
//
// Generated code carries a digest of the numbers of each resource and kind. Buckets in the table are compared
// by revision alone, so new numbers under an old revision would reach some of them and not others.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

// The rules that Check holds a schema against.
const (
	RuleReused        = "REVISION_REUSED"
	RuleLowered       = "REVISION_LOWERED"
	RuleRemovedReused = "REMOVED_REUSED"
)

// Rules returns the rules of Check.
func Rules() []schema.Rule {
	const at = "revision"
	return []schema.Rule{
		{ID: RuleReused, Purpose: "Numbers change only with a higher revision.", At: at},
		{ID: RuleLowered, Purpose: "revision is never lowered.", At: at},
		{ID: RuleRemovedReused, Purpose: "No limit has a name that was in removed, unless breaking says why.",
			At: "resources.<resource>.limits.<limit>"},
	}
}

// Entry is one line of the record: the digest of a resource's numbers for one kind, or for one kind on a
// plan, or a name that its removed has. A kind on a plan is pro.key. Removed names stand for themselves,
// because only those that are added need a new revision.
type Entry struct{ Resource, Kind, Sum, Removed string }

// onPlan separates a plan from a kind. No name of either has it.
const onPlan = "."

// line returns e as generated code has it.
func (e Entry) line() string {
	if e.Removed != "" {
		return e.Resource + " -" + e.Removed
	}
	return e.Resource + " " + e.Kind + " " + e.Sum
}

// Of returns the entries of s, in its order.
func Of(s *schema.Schema) []Entry {
	var entries []Entry
	for _, r := range s.Resources {
		for _, c := range r.Charged {
			entries = append(entries, Entry{Resource: r.Name, Kind: s.Kinds[c.Kind].Name, Sum: sum(s, r, c)})
		}
		entries = append(entries, ofPlans(s, r)...)
		for _, name := range r.Removed {
			entries = append(entries, Entry{Resource: r.Name, Removed: name})
		}
	}
	return entries
}

// sum is a digest of the numbers that a bucket stores, and of the regions that quotas of them depend on. So
// limits that the kind does not have are not in it. Of windows, it has that there are any, their length, and
// whether a bucket counts what open leases hold. That of a limit in flight shows in its period.
// It ignores their starts and zones, the order of limits, and docs and per_call, which no bucket holds.
func sum(s *schema.Schema, r *schema.Resource, c schema.Charged) string {
	lines := numbers(r, c.Limits)
	if g := s.Regions; r.Global {
		lines = append(lines, fmt.Sprintf("regions=%s floor=%d window=%s", strings.Join(g.Names, ","), g.Floor,
			g.Window))
	}
	slices.Sort(lines)
	return hash(lines)
}

// ofPlans returns the entries of a resource's plans: for each of the schema's plans and each kind on plans,
// also if the plan restates nothing for it. So a plan that begins to is a changed entry, and a new plan is a
// new one.
func ofPlans(s *schema.Schema, r *schema.Resource) []Entry {
	if !r.OnPlans {
		return nil
	}
	var entries []Entry
	for i, plan := range s.Plans.Names {
		for _, c := range r.Charged {
			if !s.OnPlans(c.Kind) {
				continue
			}
			lines := append(numbers(r, c.Plans[i]), "plan of "+s.Kinds[s.Plans.Kind].Name)
			entries = append(entries, Entry{
				Resource: r.Name, Kind: plan.Name + onPlan + s.Kinds[c.Kind].Name, Sum: hash(lines),
			})
		}
	}
	return entries
}

// numbers returns what a digest has of limits of r, sorted.
func numbers(r *schema.Resource, all []schema.Numbers) []string {
	var lines []string
	for i, n := range all {
		l := r.Limits[i]
		if n.Absent() {
			continue
		}
		line := fmt.Sprintf("%s capacity=%d burst=%d refill=%d period=%s", l.Name, n.Capacity, n.Burst, n.Refill,
			n.Period)
		if l.Window != nil {
			line += " window"
		}
		if n.Currency != "" {
			line += " money=" + n.Currency
		}
		if l.Release {
			line += " release"
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// total is a digest of all entries, in their order.
func total(entries []Entry) string {
	var lines []string
	for _, e := range entries {
		lines = append(lines, e.line())
	}
	return hash(lines)
}

func hash(lines []string) string {
	h := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(h[:8])
}

// Comment returns the comment that carries entries, one line each. Its first line has their total. Two
// branches that change numbers both change that line, so git stops at a conflict although the entries are
// lines apart.
func Comment(revision int64, entries []Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// Numbers of revision %d (%s), by which sluice generate notices a change under an old "+
		"revision:\n//", revision, total(entries))
	for _, e := range entries {
		b.WriteString("\n//\t" + e.line())
	}
	return b.String()
}

// Record is the digests in generated code of the numbers that it was made from.
type Record struct {
	Revision int64 // 0 for none
	Entries  []Entry
	Mixed    bool // the entries do not fit their total: a merge or a person changed them
}

// RecordOf returns the record of s.
func RecordOf(s *schema.Schema) Record { return Record{Revision: s.Revision, Entries: Of(s)} }

// Parse returns the record in a generated file. A merge conflict leaves several: Parse returns the one of the
// highest revision. If that revision is there twice, it returns the entries of both, as either may be in use.
func Parse(src []byte) Record {
	head := regexp.MustCompile(`^// Numbers of revision ([0-9]+)(?: \(([0-9a-f]*)\))?`)
	numbers := regexp.MustCompile(`^//\t(\S+) (\S+) ([0-9a-f]{16})$`)
	removed := regexp.MustCompile(`^//\t(\S+) -(\S+)$`)
	var rec Record
	var revision int64 // of the lines being read
	var heads []string // totals of the highest revision
	for text := range strings.Lines(string(src)) {
		text = strings.TrimRight(text, "\r\n")
		if m := head.FindStringSubmatch(text); m != nil {
			revision, _ = strconv.ParseInt(m[1], 10, 64) // not a number that we wrote: 0, none
			if revision > rec.Revision {
				rec, heads = Record{Revision: revision}, nil
			}
			if revision == rec.Revision {
				heads = append(heads, m[2])
			}
			continue
		}
		if revision == 0 || revision < rec.Revision {
			continue
		}
		if m := numbers.FindStringSubmatch(text); m != nil {
			rec.Entries = append(rec.Entries, Entry{Resource: m[1], Kind: m[2], Sum: m[3]})
		} else if m := removed.FindStringSubmatch(text); m != nil {
			rec.Entries = append(rec.Entries, Entry{Resource: m[1], Removed: m[2]})
		}
	}
	rec.Mixed = rec.Revision > 0 && (len(heads) != 1 || heads[0] != total(rec.Entries))
	return rec
}

// Check reports the following; new entries of s are no mistake:
//
//   - numbers of rec that changed in s without a higher revision;
//   - limits of s that rec has as removed, unless s has an exception for them. Code generated with the
//     exception no longer has the name as removed, so the next run needs none.
func Check(s *schema.Schema, rec Record) schema.Problems {
	var problems schema.Problems
	switch {
	case s.Revision < rec.Revision:
		problems.Add(s.RevisionPos, RuleLowered,
			"revision %d is lower than %d, which the generated code has: buckets may have its numbers; raise "+
				"revision to %d, also to bring old numbers back",
			s.Revision, rec.Revision, rec.Revision+1)
	case s.Revision == rec.Revision && rec.Mixed:
		problems.Add(s.RevisionPos, RuleReused,
			"two branches changed numbers under revision %d: raise revision to %d", s.Revision, s.Revision+1)
	case s.Revision == rec.Revision:
		if changed := Changes(Of(s), rec.Entries); changed != "" {
			problems.Add(s.RevisionPos, RuleReused,
				"the numbers of revision %d have changed (%s): raise revision to %d",
				s.Revision, changed, s.Revision+1)
		}
	}
	Reused(s, rec.Entries, func(r *schema.Resource, l *schema.Limit, message string) {
		if s.Excepted(RuleRemovedReused, schema.Place(r.Name, l.Name)) == "" {
			problems.Add(l.Pos, RuleRemovedReused, "%s", message)
		}
	})
	return problems
}

// Reused calls report with each limit of s whose name is removed in before. A Reshape starts a limit full if
// the bucket does not have it, by if_not_exists. A limit that the bucket has goes on, whatever it meant.
func Reused(s *schema.Schema, before []Entry, report func(r *schema.Resource, l *schema.Limit,
	message string)) {
	for _, r := range s.Resources {
		for _, l := range r.Limits {
			if slices.Contains(before, Entry{Resource: r.Name, Removed: l.Name}) {
				place := schema.Place(r.Name, l.Name)
				report(r, l, fmt.Sprintf("limit %s of %s has a name that was in removed: a bucket that was not written "+
					"since goes on with the balance it had then, instead of starting full, and overrides stored under the "+
					"name apply again; choose another name, or say under breaking why no bucket has it: ignore_only: "+
					"[{rule: %s, at: %s, reason: ...}]", l.Name, r.Name, RuleRemovedReused, place))
			}
		}
	}
}

// Changes lists the entries of before that now does not have, the names that now removes anew, and resources
// that have their first plans.
func Changes(now, before []Entry) string {
	var list []string
	for _, e := range before {
		if e.Removed != "" {
			continue
		}
		i := slices.IndexFunc(now, func(n Entry) bool { return n.Resource == e.Resource && n.Kind == e.Kind })
		switch {
		case i < 0:
			list = append(list, e.Resource+" for "+e.Kind+" is gone")
		case now[i] != e:
			list = append(list, e.Resource+" for "+e.Kind)
		}
	}
	for _, n := range now {
		known := slices.ContainsFunc(before, func(e Entry) bool { return e.Resource == n.Resource })
		planned := slices.ContainsFunc(before, func(e Entry) bool {
			return e.Resource == n.Resource && strings.Contains(e.Kind, onPlan)
		})
		switch {
		case !known:
		case n.Removed != "" && !slices.Contains(before, n):
			list = append(list, n.Resource+" removes "+n.Removed)
		case strings.Contains(n.Kind, onPlan) && !planned:
			list = append(list, n.Resource+" has plans")
		}
	}
	return strings.Join(slices.Compact(list), ", ")
}
