// Package digest tells when the numbers of a limits.yaml changed under an old revision (design.md, section 6).
//
// Generated code carries a digest of the numbers of each resource and kind. Buckets in the table are compared by
// revision alone, so new numbers under an old revision would reach some of them and not others.
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
	RuleReused  = "REVISION_REUSED"
	RuleLowered = "REVISION_LOWERED"
)

// Entry is the digest of one resource's numbers for one kind.
type Entry struct{ Resource, Kind, Sum string }

// Of returns the digests of s, in its order.
func Of(s *schema.Schema) []Entry {
	var entries []Entry
	for _, r := range s.Resources {
		for _, c := range r.Charged {
			entries = append(entries, Entry{Resource: r.Name, Kind: s.Kinds[c.Kind].Name, Sum: sum(r, c)})
		}
	}
	return entries
}

// sum is a digest of what a bucket stores. Order does not count, nor do docs and per_call, which no bucket holds.
func sum(r *schema.Resource, c schema.Charged) string {
	var lines []string
	for i, l := range r.Limits {
		n := c.Limits[i]
		lines = append(lines, fmt.Sprintf("%s capacity=%d burst=%d refill=%d period=%s", l.Name, n.Capacity, n.Burst, n.Refill, n.Period))
	}
	for _, name := range r.Removed {
		lines = append(lines, name+" removed")
	}
	slices.Sort(lines)
	hash := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(hash[:8])
}

// Comment returns the comment that carries entries, one line each.
func Comment(revision int64, entries []Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// Numbers of revision %d, by which sluice generate notices a change under an old revision:\n//", revision)
	for _, e := range entries {
		fmt.Fprintf(&b, "\n//\t%s %s %s", e.Resource, e.Kind, e.Sum)
	}
	return b.String()
}

// Record is what generated code says of the numbers that it was made from.
type Record struct {
	Revision int64 // 0 for none
	Entries  []Entry
}

// Parse returns the record in a generated file. Of several, as a merge conflict leaves them, it returns the one of the
// highest revision, and all of it if that stands there twice: the numbers of either side may be in use.
func Parse(src []byte) Record {
	head := regexp.MustCompile(`^// Numbers of revision ([0-9]+), `)
	line := regexp.MustCompile(`^//\t(\S+) (\S+) ([0-9a-f]{16})$`)
	var rec Record
	var revision int64 // of the lines being read
	for text := range strings.Lines(string(src)) {
		text = strings.TrimRight(text, "\r\n")
		if m := head.FindStringSubmatch(text); m != nil {
			revision, _ = strconv.ParseInt(m[1], 10, 64) // not a number that we wrote: 0, none
			if revision > rec.Revision {
				rec = Record{Revision: revision}
			}
		} else if m := line.FindStringSubmatch(text); m != nil && revision > 0 && revision == rec.Revision {
			rec.Entries = append(rec.Entries, Entry{Resource: m[1], Kind: m[2], Sum: m[3]})
		}
	}
	return rec
}

// Check reports what of rec the numbers of s contradict without a higher revision. What is new in s contradicts
// nothing.
func Check(s *schema.Schema, rec Record) schema.Problems {
	var problems schema.Problems
	switch {
	case s.Revision < rec.Revision:
		problems.Add(s.RevisionPos, RuleLowered,
			"revision %d is lower than %d, which the generated code has: buckets may have its numbers; raise revision to %d, also to bring old numbers back",
			s.Revision, rec.Revision, rec.Revision+1)
	case s.Revision == rec.Revision:
		if changed := changes(Of(s), rec.Entries); changed != "" {
			problems.Add(s.RevisionPos, RuleReused, "the numbers of revision %d have changed (%s): raise revision to %d",
				s.Revision, changed, s.Revision+1)
		}
	}
	return problems
}

// changes lists what of before is not in now.
func changes(now, before []Entry) string {
	var list []string
	for _, e := range before {
		i := slices.IndexFunc(now, func(n Entry) bool { return n.Resource == e.Resource && n.Kind == e.Kind })
		text := e.Resource + " for " + e.Kind
		switch {
		case i < 0:
			text += " is gone"
		case now[i].Sum == e.Sum:
			continue
		}
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, ", ")
}
