package breaking

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

// The rules that Check holds a schema against.
const (
	RuleUnknownRule  = "UNKNOWN_RULE"
	RuleUnknownPlace = "UNKNOWN_PLACE"
)

// ExceptionRules returns the rules of Check.
func ExceptionRules() []schema.Rule {
	return []schema.Rule{
		{ID: RuleUnknownRule, Purpose: "Each exception names a rule that `sluice breaking --rules` lists.",
			At: "breaking.except[].rule"},
		{ID: RuleUnknownPlace, Purpose: "The rule of an exception can find something at its place.",
			At: "breaking.ignore_only[].at"},
	}
}

// Check reports exceptions of s that name no rule, or a place at which the rule can find nothing. It does not
// know the old schema: for a limit or kind that only the old one has, it checks the resource alone. A
// misspelt one excepts nothing.
func Check(s *schema.Schema) schema.Problems {
	var problems schema.Problems
	for _, e := range s.Exceptions {
		rules := Rules()
		i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == e.Rule })
		switch {
		case e.Rule == "": // reported
		case i < 0:
			ids := make([]string, len(rules))
			for i, r := range rules {
				ids[i] = r.ID
			}
			problems.Add(e.RulePos, RuleUnknownRule, "there is no rule %q: %s; `sluice breaking --rules` lists them",
				e.Rule, schema.Cure(e.Rule, ids))
		case e.At != "":
			if why := rules[i].misplaced(s, e.At); why != "" {
				problems.Add(e.AtPos, RuleUnknownPlace, "at %s: %s", e.At, why)
			}
		}
	}
	return problems
}

// misplaced returns the reason why r can find nothing at a place, "" if it can.
func (r Rule) misplaced(s *schema.Schema, at string) string {
	if r.At == "" {
		return r.ID + " is about the file, not a place in it: move it to except"
	}
	if r.removed && (r.At == AtKind || r.At == AtPlan || r.At == AtResource) {
		return ""
	}
	about, known := fmt.Sprintf("%s is about a %s", r.ID, r.At), r.At.places(s)
	cut := strings.LastIndexByte(at, '/')
	switch {
	case slices.Contains(known, at), len(known) == 0: // an empty section has been reported
		return ""
	case !r.removed:
		return about + ", and there is none of that name: remove the entry if it is gone; " + schema.Cure(at, known)
	case cut < 0:
		return about + ": write both, with the slash"
	case resource(s, at[:cut]) == nil:
		return fmt.Sprintf("%s, and there is no resource %q: remove the entry if it is gone; %s", about, at[:cut],
			schema.Cure(at[:cut], AtResource.places(s)))
	}
	return ""
}

// places returns the places of form f that s has.
func (f Form) places(s *schema.Schema) []string {
	var places []string
	for _, r := range s.Resources {
		switch f {
		case AtResource:
			places = append(places, r.Name)
		case AtLimit:
			for _, l := range r.Limits {
				places = append(places, schema.Place(r.Name, l.Name))
			}
		case AtCharged:
			for _, c := range r.Charged {
				if c.Kind >= 0 { // an unknown kind has been reported
					places = append(places, schema.Place(r.Name, s.Kinds[c.Kind].Name))
				}
			}
		}
	}
	for _, k := range s.Kinds {
		if f == AtKind {
			places = append(places, k.Name)
		}
	}
	if s.Plans != nil && f == AtPlan {
		for _, plan := range s.Plans.Names {
			places = append(places, plan.Name)
		}
	}
	return places
}
