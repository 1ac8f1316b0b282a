// Package breaking finds the effects of a change of limits.yaml on what exists: buckets and overrides in the
// table, and callers of the generated package.
//
//	old, new Schema -> each Rule's check -> Findings     (this file, then one per part or category)
//	breaking: in limits.yaml -> Check                    (exceptions.go)
//
// It compares the schemas as they were read: a key that is written out with its default changes nothing.
package breaking

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

// The severities: what a change breaks, the worst first.
const (
	Data      = "data"      // buckets, overrides and parents in the table, and the revision they are compared by
	API       = "api"       // callers of the generated package
	Behaviour = "behaviour" // the effect of calls
	Price     = "price"     // the units that calls take
)

// Rule finds one kind of breaking change.
type Rule struct {
	ID       string
	Severity string // one of the constants
	Purpose  string // its findings, in one sentence
	At       Form   // form of its places in ignore_only; "" if it is about the file

	removed bool // its places may exist in the old schema only
	check   func(*comparison)
}

// Form is a form of place. A rule has one, since a resource's name may have slashes, and may be that of a
// kind.
type Form string

// The forms.
const (
	AtKind     Form = "kind"
	AtPlan     Form = "plan"
	AtResource Form = "resource"
	AtLimit    Form = "resource/limit"
	AtCharged  Form = "resource/kind"
)

// Rules returns every rule, in the order in which they are listed.
func Rules() []Rule { return slices.Concat(stored(), called()) }

// stored returns the rules on what is stored, and on callers' code.
func stored() []Rule {
	return []Rule{
		{"LIMIT_REMOVED", Data, "A limit is gone and not in removed.", AtLimit, true, limitRemoved},
		{"LIMIT_RENAMED", Data, "A limit has another name, and so starts anew.", AtLimit, true, limitRenamed},
		{"LIMIT_ENDED", Data, "A kind no longer has a limit.", AtLimit, false, limitEnded},
		{"TOMBSTONE_DROPPED", Data, "A name is no longer in removed, while buckets may hold it.",
			AtLimit, true, tombstoneDropped},
		{"REMOVED_REUSED", Data, "A name that was in removed is a limit's again.", AtLimit, false,
			removedReused},
		{"PERIOD_UNIT", Data, "A limit has another every: its balances were counted by the old one.",
			AtLimit, false, periodUnit},
		{"HOW_LONG_CHANGED", Data, "Tokens of a limit come back in another way: by every, window or in_flight.",
			AtLimit, false, howLongChanged},
		{"MONEY_CHANGED", Data, "A limit is in another currency, or becomes or ceases to be of money.", AtLimit,
			false, moneyChanged},
		{"ALL_NAMES_CHANGED", Data, "A limit is of all names together now, or of each name for itself.", AtLimit,
			false, allNamesChanged},
		{"NAMES_CHANGED", Data, "A resource has names of a catalog now, or no longer.", AtResource, false,
			namesChanged},
		{"USAGE_RENAMED", Data, "A usage of a template has another name: its catalog has prices by the old one.",
			AtResource, false, usageRenamed},
		{"RESOURCE_REMOVED", Data, "A resource is gone.", AtResource, true, resourceRemoved},
		{"RESOURCE_RENAMED", Data, "A resource has another name, and so starts anew.", AtResource,
			true, resourceRenamed},
		{"KIND_REMOVED", Data, "A kind of entity is gone.", AtKind, true, kindRemoved},
		{"KIND_UNCHARGED", Data, "A kind no longer has a bucket of a resource.", AtCharged, true, kindUncharged},
		{"PARENT_CHANGED", Data, "A kind has another parent, or none: stored parents are of the old kind.",
			AtKind, false, parentChanged},
		{"PLAN_REMOVED", Data, "A plan is gone.", AtPlan, true, planRemoved},
		{"PLAN_KIND_CHANGED", Data, "Plans are those of another kind: what is stored is of the old one.", "", false,
			planKindChanged},

		{"LIMIT_GO_NAME_CHANGED", API, "The Go name of a limit is gone.", AtLimit, true, limitGoNameChanged},
		{"RESOURCE_GO_NAME_CHANGED", API, "The Go name of a resource is gone.", AtResource, true,
			resourceGoNameChanged},
		{"KIND_GO_NAME_CHANGED", API, "The Go name of a kind is gone.", AtKind, true, kindGoNameChanged},
		{"USAGE_REMOVED", API, "The Go name of a usage is gone.", AtResource, false, usageRemoved},
		{"PRICES_NEEDED", API, "Cost of a template's usage takes prices now, or no longer.", AtResource, false,
			pricesNeeded},
		{"PACKAGE_CHANGED", API, "The package has another name or folder.", "", false, packageChanged},
		{"STORE_REMOVED", API, "A store is no longer in stores: New refuses it.", "", false, storeRemoved},
		{"ENTITY_CHAIN", API, "A kind has a parent now, which calls charge.", AtKind, false, entityChain},
		{"ANCESTOR_CHARGED", API, "Calls charge an ancestor that they did not charge.", AtCharged,
			false, ancestorCharged},
		{"PARENT_NEEDED", API, "Calls need an ancestor that they did not need, for its plan.", AtCharged, false,
			parentNeeded},

		{"REVISION_REUSED", Data, "Numbers have changed under one revision.", "", false, revisionReused},
		{"REVISION_LOWERED", Data, "The revision is lower than it was.", "", false, revisionLowered},
	}
}

// called returns the rules on calls.
func called() []Rule {
	return []Rule{
		{"BURST_LOWERED", Behaviour, "A limit's burst is lower: calls that cost more can never be served.",
			AtLimit, false, burstLowered},
		{"RATE_LOWERED", Behaviour, "A limit refills more slowly: it admits fewer calls.", AtLimit, false,
			rateLowered},
		{"PLAN_LOWERED", Behaviour, "A plan gives less of a limit.", AtLimit, false, planLowered},
		{"WINDOW_CHANGED", Behaviour, "A limit has another window, or another start of it.", AtLimit, false,
			windowChanged},
		{"WINDOW_ZONE_CHANGED", Behaviour, "Windows of a limit start in another zone.", AtLimit, false,
			windowZoneChanged},
		{"ON_CRASH_CHANGED", Behaviour, "What a dead process had reserved comes back now, or no longer.", AtLimit,
			false, onCrashChanged},
		{"LIMIT_BEGUN", Behaviour, "A kind has a limit that it did not have.", AtLimit, false, limitBegun},
		{"PRICE_CHANGED", Behaviour, "A usage has another price.", AtResource, false, priceChanged},
		{"COUNTS_CHANGED", Behaviour, "A limit counts other usages.", AtLimit, false, countsChanged},
		{"PER_CALL_CHANGED", Behaviour, "A cost of 0 takes something else.", AtLimit, false,
			perCallChanged},
		{"CASCADE_CHANGED", Behaviour, "Calls charge ancestors in another way, or no longer.", AtResource,
			false, cascadeChanged},
		{"ON_UNAVAILABLE_CHANGED", Behaviour, "An outage of the table has other consequences.", AtResource,
			false, onUnavailableChanged},
		{"SETTLE_CHANGED", Behaviour, "Settles and releases wait for their write now, or no longer.",
			AtResource, false, settleChanged},
		{"PREFETCH_CHANGED", Behaviour, "Processes take tokens earlier before their use now, or later.",
			AtResource, false, prefetchChanged},
		{"SHADOW_CHANGED", Behaviour, "Calls begin to be denied, or are denied no longer.", AtResource,
			false, shadowChanged},
		{"GLOBAL_CHANGED", Behaviour, "Limits are for all regions together now, or no longer.", AtResource,
			false, globalChanged},
		{"REGION_ADDED", Behaviour, "There are more regions.", "", false, regionAdded},
		{"REGION_REMOVED", Behaviour, "There are fewer regions.", "", false, regionRemoved},
		{"REGION_FLOOR_CHANGED", Behaviour, "Every region keeps another part of a limit.", "", false,
			regionFloorChanged},
		{"REGION_WINDOW_CHANGED", Behaviour, "Regions compute their quotas at other times.", "", false,
			regionWindowChanged},

		{"PRICE_RAISED", Price, "A call or its settle takes more write units of DynamoDB.", AtCharged,
			false, priceRaised},
	}
}

// Finding is one thing that a change breaks.
type Finding struct {
	schema.Pos        // in the new file: of the change, or of the nearest entry around it
	Rule       string // its id
	Severity   string // its rule's
	Place      string // as ignore_only names it; "" for the file
	Message    string // the change, its effect, and the cure: one line
	Ignored    string // the reason of the new schema's exception, "" if there is none
}

// String returns f as file:line:col: RULE (severity): message.
func (f Finding) String() string { return fmt.Sprintf("%s: %s: %s", f.Pos, f.Title(), f.Message) }

// Title returns the rule and its severity: RULE (severity).
func (f Finding) Title() string { return fmt.Sprintf("%s (%s)", f.Rule, f.Severity) }

// Compare returns the findings about the change from one schema to another, sorted by place. Both schemas
// must have no problems. Findings that the later one excepts are included, with Ignored set.
func Compare(before, after *schema.Schema) []Finding {
	c := &comparison{old: before, new: after}
	for _, r := range Rules() {
		c.rule = r
		r.check(c)
	}
	slices.SortFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(a.Compare(b.Pos), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return c.findings
}

// comparison is the input of checks, and collects their findings.
type comparison struct {
	old, new *schema.Schema
	rule     Rule // whose check runs
	findings []Finding
}

func (c *comparison) report(pos schema.Pos, place, format string, args ...any) {
	c.findings = append(c.findings, Finding{
		Pos:      pos,
		Rule:     c.rule.ID,
		Severity: c.rule.Severity,
		Place:    place,
		Message:  fmt.Sprintf(format, args...),
		Ignored:  c.new.Excepted(c.rule.ID, place),
	})
}
