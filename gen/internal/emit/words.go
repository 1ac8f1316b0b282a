package emit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/words"
)

// article puts a or an before a name, as it is spoken: an initialism such as LLMKey begins with the name of
// its first letter.
func article(name string) string {
	first, second := name[:1], name[1:min(2, len(name))]
	initialism := second == "" || strings.ToLower(second) == strings.ToUpper(second) || // a digit
		second != strings.ToLower(second)
	if strings.ContainsAny(first, "AEIOaeio") || initialism && strings.ContainsAny(first, "FHLMNRSX") {
		return "an " + name
	}
	return "a " + name
}

// deprecated is the start of a paragraph that tools look for.
const deprecated = "Deprecated:"

// paragraphs reports whether text needs paragraphs of its own.
func paragraphs(text string) bool {
	return strings.Contains(text, "\n") || strings.HasPrefix(text, deprecated)
}

// about appends a doc of limits.yaml to a generated sentence: in the same paragraph if it is one line.
func about(sentence, text string) string {
	switch {
	case text == "":
		return sentence
	case paragraphs(text):
		return sentence + "\n\n" + apart(text)
	}
	return sentence + " " + text
}

// apart puts a blank line before a deprecation, which tools do not find in the middle of a paragraph.
func apart(text string) string {
	var b strings.Builder
	before := ""
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, deprecated) && strings.TrimSpace(before) != "" {
			b.WriteByte('\n')
		}
		b.WriteString(line)
		before = line
	}
	return b.String()
}

// limitDoc is the doc comment of the constant of limit l.
func limitDoc(l *model.Limit) string {
	says := fmt.Sprintf("%s is limit %s", l.Const, l.Name)
	if l.Doc == "" || paragraphs(l.Doc) {
		return about(says+".", l.Doc)
	}
	return says + ": " + strings.TrimSuffix(l.Doc, ".") + "."
}

// limitNames returns the names of r's limits.
func limitNames(r *model.Resource) []string {
	return ofLimits(r, func(l *model.Limit) string { return l.Name })
}

// quotedLimits returns the names of r's limits as Go literals.
func quotedLimits(r *model.Resource) []string {
	return ofLimits(r, func(l *model.Limit) string { return strconv.Quote(l.Name) })
}

// limitFields returns the fields of r's limits.
func limitFields(r *model.Resource) []string {
	return ofLimits(r, func(l *model.Limit) string { return l.Field })
}

func ofLimits(r *model.Resource, name func(*model.Limit) string) []string {
	names := make([]string, len(r.Limits))
	for i, l := range r.Limits {
		names[i] = name(l)
	}
	return names
}

// chargedTypes returns the types of the kinds that have a bucket of r.
func chargedTypes(r *model.Resource, with func(string) string) []string {
	names := make([]string, len(r.Charged))
	for i, c := range r.Charged {
		names[i] = with(c.Kind.Type)
	}
	return names
}

func plain(s string) string { return s }

// chargedChains returns the types of the kinds that have a bucket of r, each with the ancestors that a call
// charges too.
func chargedChains(r *model.Resource, with func(string) string) []string {
	names := chargedTypes(r, with)
	for i, c := range r.Charged {
		var along []string
		for _, k := range c.Along {
			along = append(along, k.Type)
		}
		if len(along) > 0 {
			names[i] += " (then its " + words.List(along, "and") + " too)"
		}
	}
	return names
}

// parentNote is a note on the field of an entity's parent: the calls that charge it, or the parts that may
// stay empty.
func parentNote(p *model.Package, k *model.Kind) string {
	if len(k.PlanBy) > 0 {
		return required(k, p.Plans)
	}
	switch by, above := resourceNames(k.ParentBy), resourceNames(k.AboveBy); {
	case by != "" && above != "":
		return "charged too by calls on " + by + "; those on " + above + " need what is above it"
	case by != "":
		return "charged too by calls on " + by
	case above != "":
		return "its own ID may stay empty: calls on " + above + " charge what is above it"
	}
	return "not charged by this entity's calls: may stay empty in them"
}

// required is parentNote for a kind whose entities are on the plan of an ancestor: calls need all ancestors
// up to that.
func required(k *model.Kind, plans *model.Plans) string {
	says, which := "required: calls on "+resourceNames(k.PlanBy)+" go by ", "its plan"
	if k.Parent != plans.Kind {
		which = "the plan above it"
	}
	if by := resourceNames(k.ParentBy); by != "" {
		which += "; charged too by calls on " + by
	}
	return says + which
}

// resourceNames lists names of resources, or returns their number if they are many.
func resourceNames(names []string) string {
	if n := len(names); n > manyResources {
		return fmt.Sprintf("%d resources", n)
	}
	return words.List(names, "and")
}

// manyResources is the most resources that a comment lists.
const manyResources = 12

// costNote is a note on the field of a limit in a cost: the kinds that have it, its doc, and the tokens that
// a 0 stands for.
func costNote(r *model.Resource, l *model.Limit) string {
	before := semicolon(kindsNote(r, l), zeroNote(r, l.Index))
	switch {
	case paragraphs(l.Doc) && before != "":
		return before + "\n\n" + apart(l.Doc)
	case paragraphs(l.Doc):
		return apart(l.Doc)
	}
	return semicolon(semicolon(kindsNote(r, l), l.Doc), zeroNote(r, l.Index))
}

// overrideNote is a note on the field of a limit in overrides: the kinds that have it, and its doc.
func overrideNote(r *model.Resource, l *model.Limit) string {
	kinds := kindsNote(r, l)
	if kinds != "" && paragraphs(l.Doc) {
		return kinds + "\n\n" + apart(l.Doc)
	}
	return semicolon(kinds, apart(l.Doc))
}

// semicolon puts a semicolon between two notes, either of which may be empty.
func semicolon(note, more string) string {
	if note == "" || more == "" {
		return note + more
	}
	return strings.TrimSuffix(note, ".") + "; " + more
}

// kindsNote names the kinds that have l, or is "" if all have it. It says if all names have l together.
func kindsNote(r *model.Resource, l *model.Limit) string {
	var kinds []string
	for _, c := range r.Charged {
		if c.Has(l) {
			kinds = append(kinds, article(c.Kind.Type))
		}
	}
	switch {
	case len(kinds) < len(r.Charged) && l.AllNames:
		return "of all names of " + words.List(kinds, "and")
	case len(kinds) < len(r.Charged):
		return "of " + words.List(kinds, "and")
	case l.AllNames:
		return "of all names together"
	}
	return ""
}

// zeroNote returns the tokens that a 0 stands for in a cost, kind by kind if they differ, for the kinds whose
// calls are charged for limit i.
func zeroNote(r *model.Resource, i int) string {
	same, first := true, int64(-1)
	var kinds []string
	for _, c := range r.Charged {
		if !r.Charges(c, r.Limits[i]) {
			continue
		}
		if first < 0 {
			first = c.PerCall[i]
		}
		same = same && c.PerCall[i] == first
		kinds = append(kinds, fmt.Sprintf("%s for %s", words.Count(r.Limits[i].Currency, c.PerCall[i]),
			article(c.Kind.Type)))
	}
	switch {
	case !same:
		return "0 means " + words.List(kinds, "and") + " (per_call)"
	case first == 0:
		return ""
	}
	return "0 means " + words.Count(r.Limits[i].Currency, first) + " (per_call)"
}

// bucketNumbers lists the numbers of each kind's bucket, and those that plans restate.
func bucketNumbers(p *model.Package, r *model.Resource) string {
	var b strings.Builder
	list := func(of string, numbers []schema.Numbers) {
		var limits []string
		for i, n := range numbers {
			if !n.Absent() {
				limits = append(limits, r.Limits[i].Name+" "+words.Limit(n, r.Limits[i].Window))
			}
		}
		fmt.Fprintf(&b, "\n  - %s: %s", of, strings.Join(limits, "; "))
	}
	for _, c := range r.Charged {
		types := bucketTypes(c.Buckets)
		for j, b := range c.Buckets {
			list(types[j], b.Numbers)
			for i, numbers := range b.Plans {
				if numbers != nil {
					list(fmt.Sprintf("%s on plan %s", types[j], p.Plans.All[i].Name), numbers)
				}
			}
		}
	}
	return b.String()
}
