// Package declared lists the names that generated code declares, and finds entries of a limits.yaml that give
// the same name, or one of generated code's own.
//
// Generated code has these scopes, each a section of this package: the package, its structs, its folder. The
// names in them are listed here only. The generator's tests hold its output against Names.
package declared

import (
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/gen/internal/goname"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// packageNames are the names that generated code and its tests declare for every schema.
func packageNames() []string {
	return []string{
		"Entity", "ParseEntity", "Limiter", "Config", "New", "ExtractDeltas", "Revision", "ErrSettled",
		"DeniedError", "CostTooLargeError", "UnavailableError", "InvalidError", "SetupError", "ContendedError",
		"ConflictError", "QueueFullError", "ErrLeaseLost",
		"TestEntities",
	}
}

// someNames are the names that generated code declares if s has plans, without their constants, or templates.
func someNames(s *schema.Schema) (names []string) {
	if s.Plans != nil {
		names = []string{"Plan", "ParsePlan", "UnknownPlanError"}
	}
	if slices.ContainsFunc(s.Resources, func(r *schema.Resource) bool { return r.Template }) {
		names = append(names, "UnknownNameError")
	}
	return names
}

// plans returns those of s.
func plans(s *schema.Schema) []*schema.Plan {
	if s.Plans == nil {
		return nil
	}
	return s.Plans.Names
}

// kindNamesInGo are the names that generated code declares for a kind.
func kindNamesInGo(k *schema.Kind) []string {
	names := []string{k.GoName, "kind" + k.GoName}
	if k.Parent >= 0 {
		names = append(names, k.GoName+"ByID")
	}
	return names
}

// typeSuffixes are the ends of the names of a resource's exported types.
func typeSuffixes() []string {
	return []string{"Resource", "Acquirer", "Lease", "Entity", "Cost", "Limit", "Limits", "Bucket"}
}

// resourceNamesInGo are the names that generated code and its tests declare for r, without its limits'
// constants. chain is the most buckets that a call on it charges. ends are those of the names of variants of
// its DynamoDB code; nil if there are none.
func resourceNamesInGo(r *schema.Resource, chain int, ends []string) []string {
	goName := r.GoName
	names := []string{goName}
	for _, s := range typeSuffixes() {
		names = append(names, goName+s)
	}
	if r.Usage != nil {
		names = append(names, goName+UsageSuffix)
	}
	if r.OnPlans || r.Template {
		names = append(names, goName+ConfigSuffix)
	}
	private := goname.Unexported(goName)
	names = append(names, private)
	if r.Template {
		names = append(names, templateNames(r, private)...)
	}
	for _, s := range []string{"Vector", "Cost", "LimitsVector", "LimitsOf"} {
		names = append(names, private+s)
	}
	if r.Windows() {
		names = append(names, private+WindowsSuffix)
	}
	for n := range chain {
		names = append(names, fmt.Sprintf("%sScript%d", private, n+1))
	}
	variants := []string{private}
	if ends != nil {
		variants = nil
	}
	for _, end := range ends {
		variants = append(variants, private+end)
		names = append(names, private+end)
	}
	for _, v := range variants {
		names = append(names, v+"CreateCondition")
		for _, path := range []string{"Normal", "Retry", "Adjust", "Reshape"} {
			names = append(names, v+path+"Update", v+path+"Condition")
		}
	}
	for _, s := range []string{"Test", "Benchmark"} {
		names = append(names, s+goName)
	}
	return names
}

// limitNameInGo is the constant that generated code declares for a limit.
func limitNameInGo(r *schema.Resource, l *schema.Limit) string { return r.GoName + l.GoName }

// limiterMembers are the members of Limiter besides its resources, with the methods of runtime.Limiter. A
// resource may hide Specs, which Limiter.Limiter still has.
func limiterMembers(s *schema.Schema) []string {
	members := []string{"Limiter", "Config", "AcquireAll", "Entities", "Check", "Close"}
	if s.Plans != nil {
		members = append(members, "SetPlan", "PlanOf")
	}
	return members
}

// kindMembers are the members of a kind's struct besides its parent.
func kindMembers() []string { return []string{"ID", "Chain", "String"} }

// ConfigSuffix ends the name of the overrides of a resource with plans.
const ConfigSuffix = "Config"

// UsageSuffix ends the name of a resource's struct of usage.
const UsageSuffix = "Usage"

// usageMembers are the members of a resource's struct of usage besides its usages.
func usageMembers() []string { return []string{"Cost"} }

// costMembers are the members of a resource's structs of costs and overrides besides its limits.
func costMembers() []string { return []string{"String"} }

// bucketMembers are the members of r's bucket struct besides its limits.
func bucketMembers(r *schema.Resource) []string {
	members := []string{"Entity", "Refilled", "Version", "Op", "TTL", "MarshalItem", "UnmarshalItem"}
	if r.OnPlans {
		members = append(members, "PlanOf")
	}
	return members
}

// Names returns the package-level names that code generated from s may declare, with its tests. Each is there
// once, in the schema's order. Any other name in generated code could clash with one from a limits.yaml.
func Names(s *schema.Schema) []string {
	names := append(packageNames(), someNames(s)...)
	for _, p := range plans(s) {
		names = append(names, schema.PlanPrefix+p.GoName)
	}
	for _, k := range s.Kinds {
		names = append(names, kindNamesInGo(k)...)
	}
	for _, r := range s.Resources {
		names = append(names, resourceNamesInGo(r, longest(s, r), variants(s, r))...)
		names = append(names, allNames(s, r, goname.Unexported(r.GoName))...)
		for _, l := range r.Limits {
			names = append(names, limitNameInGo(r, l))
		}
	}
	return names
}

// longest returns the most buckets that a call on r charges. It stops at a cycle of parents, which has been
// reported.
func longest(s *schema.Schema, r *schema.Resource) (most int) {
	for _, c := range r.Charged {
		chain, k := 0, c.Kind
		for range s.Kinds {
			for _, above := range r.Charged {
				if k >= 0 && above.Kind == k {
					chain += len(r.Buckets(above))
				}
			}
			if k < 0 || r.Cascade == schema.CascadeNone {
				break
			}
			k = s.Kinds[k].Parent
		}
		most = max(most, chain)
	}
	return max(1, most)
}

// WindowsSuffix ends the name of a resource's calendars.
const WindowsSuffix = "Windows"

// VariantInfix joins the names of a resource and of a kind in that of the code for the kind's buckets.
const VariantInfix = "Of"

// variants returns what ends the names of variants of r: of the first kind of each set of limits that buckets
// have. It returns nil if all have all limits.
func variants(s *schema.Schema, r *schema.Resource) (ends []string) {
	var buckets []schema.Charged
	for _, c := range r.Charged {
		buckets = append(buckets, r.Buckets(c)...)
	}
	partial := func(c schema.Charged) bool { return slices.ContainsFunc(c.Limits, schema.Numbers.Absent) }
	if !slices.ContainsFunc(buckets, partial) {
		return nil
	}
	same := func(a, b schema.Numbers) bool { return a.Absent() == b.Absent() }
	for i, c := range buckets {
		known := slices.ContainsFunc(buckets[:i], func(other schema.Charged) bool {
			return slices.EqualFunc(other.Limits, c.Limits, same)
		})
		if !known && c.Kind >= 0 && s.Kinds[c.Kind].GoName != "" { // else a mistake that has been reported
			infix := VariantInfix
			if c.AllNames {
				infix = AllNamesInfix + VariantInfix
			}
			ends = append(ends, infix+s.Kinds[c.Kind].GoName)
		}
	}
	return ends
}
