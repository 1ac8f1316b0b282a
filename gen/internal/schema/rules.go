package schema

// Rule is a condition that every limits.yaml must meet.
type Rule struct {
	ID      string // as in problems
	Purpose string // the condition, in one sentence
}

// The rules' ids. Rules has the condition of each.
const (
	ruleNotText      = "NOT_TEXT"
	ruleYAMLSyntax   = "YAML_SYNTAX"
	ruleYAMLFeature  = "YAML_FEATURE"
	ruleOneDocument  = "ONE_DOCUMENT"
	ruleWrongType    = "WRONG_TYPE"
	ruleUnknownKey   = "UNKNOWN_KEY"
	ruleDuplicateKey = "DUPLICATE_KEY"
	ruleMissingKey   = "MISSING_KEY"
	ruleEmpty        = "EMPTY"
	ruleUnknownValue = "UNKNOWN_VALUE"
	ruleRepeated     = "REPEATED"

	ruleVersion     = "VERSION"
	rulePackageName = "PACKAGE_NAME"
	ruleOutPath     = "OUT_PATH"
	ruleBadName     = "BAD_NAME"
	ruleDocText     = "DOC_TEXT"

	ruleRegionCount   = "REGION_COUNT"
	ruleNoRegions     = "NO_REGIONS"
	ruleNothingGlobal = "NOTHING_GLOBAL"
	ruleGlobalStore   = "GLOBAL_STORE"

	ruleUnknownParent  = "UNKNOWN_PARENT"
	ruleParentCycle    = "PARENT_CYCLE"
	ruleUnknownKind    = "UNKNOWN_KIND"
	ruleUnknownLimit   = "UNKNOWN_LIMIT"
	ruleRestatedKey    = "RESTATED_KEY"
	ruleRemovedCurrent = "REMOVED_CURRENT"

	ruleBadNumber     = "BAD_NUMBER"
	ruleZeroNumber    = "ZERO_NUMBER"
	ruleNumberRange   = "NUMBER_RANGE"
	ruleBadPeriod     = "BAD_PERIOD"
	rulePeriodRange   = "PERIOD_RANGE"
	ruleRefillRate    = "REFILL_RATE"
	ruleFillTime      = "FILL_TIME"
	ruleBurstCapacity = "BURST_BELOW_CAPACITY"
	rulePerCallBurst  = "PER_CALL_ABOVE_BURST"

	ruleGoName       = "GO_NAME"
	ruleGoClash      = "GO_CLASH"
	ruleReservedName = "RESERVED_NAME"
)

// Rules returns every rule that Read checks, in the order in which a reader of limits.yaml meets them.
func Rules() []Rule {
	return []Rule{
		{ruleNotText, "The file is UTF-8 text without control characters."},
		{ruleYAMLSyntax, "The file is YAML."},
		{ruleYAMLFeature, "Anchors, aliases, merge keys and explicit tags are not used, so that each value is " +
			"where it applies."},
		{ruleOneDocument, "The file holds exactly one document, which is not empty."},
		{ruleWrongType, "Every value has the type that its key asks for."},
		{ruleUnknownKey, "Every key is one that its mapping takes."},
		{ruleDuplicateKey, "No key stands twice in one mapping."},
		{ruleMissingKey, "Required keys are there."},
		{ruleEmpty, "Lists and mappings that need an entry are not empty."},
		{ruleUnknownValue, "A value that is one of a fixed set is in it."},
		{ruleRepeated, "No item stands twice in one list."},

		{ruleVersion, "version is a file format that this sluice reads."},
		{rulePackageName, "go.package is a name that a Go package can have."},
		{ruleOutPath, "go.out is a relative path with forward slashes, to a folder whose package Go can import."},
		{ruleBadName, "Names of regions, kinds, resources and limits have the form that keys and expressions in " +
			"the table need."},
		{ruleDocText, "doc is text that can stand in a Go comment."},

		{ruleRegionCount, "There are 2 to 32 regions, or none."},
		{ruleNoRegions, "A resource is global only if there are regions."},
		{ruleNothingGlobal, "If there are regions, a resource is global."},
		{ruleGlobalStore, "If a resource is global, stores has dynamodb: no other store keeps limits for several " +
			"regions."},

		{ruleUnknownParent, "The parent of a kind is a kind."},
		{ruleParentCycle, "No kind is its own ancestor."},
		{ruleUnknownKind, "The entities of a resource are kinds of the schema's entities."},
		{ruleUnknownLimit, "A limit that is restated for a kind is one of the resource's limits."},
		{ruleRestatedKey, "A limit restated for a kind changes capacity and what follows from it; every, doc and " +
			"go_name are the limit's own."},
		{ruleRemovedCurrent, "A removed limit is not one of the resource's limits."},

		{ruleBadNumber, "Numbers are digits and '_' between digits, without a leading 0."},
		{ruleZeroNumber, "No number is 0, floor aside."},
		{ruleNumberRange, "Tokens are at most 10^12, revision is at most 90,000, floor is at most 50."},
		{ruleBadPeriod, "every and window are durations such as 1s, 1m, 12h or 1d."},
		{rulePeriodRange, "every is whole milliseconds from 1ms to 366d, window whole seconds from 1s to 1h."},
		{ruleRefillRate, "A limit refills at most 10^7 tokens per second."},
		{ruleFillTime, "A limit is full from empty within 3,650 days."},
		{ruleBurstCapacity, "burst is at least capacity."},
		{rulePerCallBurst, "per_call is at most burst: a call that takes more could never be served."},

		{ruleGoName, "Every name gives an exported Go identifier of ASCII letters and digits."},
		{ruleGoClash, "No two names give the same Go identifier or file."},
		{ruleReservedName, "No name gives an identifier or file that Go or generated code uses for itself."},
	}
}
