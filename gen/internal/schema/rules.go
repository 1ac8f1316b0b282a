package schema

// Rule is a condition that every limits.yaml must meet.
type Rule struct {
	ID      string // as in problems
	Purpose string // the condition, in one sentence
	At      string // the key or name that it is about, for rules that no wrong value of one key breaks
}

// RuleOutPath is the id of the rule about go.out. Read does not know the module: package gen checks that.
const RuleOutPath = "OUT_PATH"

// The other rules' ids. Rules has the condition of each.
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
	ruleRestatedNone   = "RESTATED_NONE"
	ruleKindEmpty      = "KIND_EMPTY"
	ruleRemovedCurrent = "REMOVED_CURRENT"
	ruleChainLength    = "CHAIN_LENGTH"

	ruleHowLong        = "HOW_LONG"
	ruleStarts         = "STARTS"
	ruleWindowKeys     = "WINDOW_KEYS"
	ruleUnknownZone    = "UNKNOWN_ZONE"
	ruleWindowGlobal   = "WINDOW_GLOBAL"
	ruleCrashRefills   = "CRASH_REFILLS"
	ruleInFlightGlobal = "IN_FLIGHT_GLOBAL"

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
func Rules() []Rule { return append(formRules(), meaningRules()...) }

// formRules returns the rules about the text of the file.
func formRules() []Rule {
	return []Rule{
		{ID: ruleNotText, Purpose: "The file is UTF-8 text without control characters."},
		{ID: ruleYAMLSyntax, Purpose: "The file is YAML."},
		{ID: ruleYAMLFeature, Purpose: "Anchors, aliases, merge keys and explicit tags are not used, so " +
			"that each value is where it applies."},
		{ID: ruleOneDocument, Purpose: "The file holds exactly one document, which is not empty."},
		{ID: ruleWrongType, Purpose: "Every value has the type that its key asks for."},
		{ID: ruleUnknownKey, Purpose: "Every key is one that its mapping takes."},
		{ID: ruleDuplicateKey, Purpose: "No key stands twice in one mapping."},
		{ID: ruleMissingKey, Purpose: "Required keys are there. on_unavailable is one beside a limit with " +
			"in_flight."},
		{ID: ruleEmpty, Purpose: "Lists and mappings that need an entry are not empty."},
		{ID: ruleUnknownValue, Purpose: "A value that is one of a fixed set is in it."},
		{ID: ruleRepeated, Purpose: "No item stands twice in one list."},

		{ID: ruleVersion, Purpose: "version is a file format that this sluice reads."},
		{ID: rulePackageName, Purpose: "go.package is a name that a Go package can have."},
		{ID: RuleOutPath, Purpose: "go.out is a relative path with forward slashes, to a folder whose " +
			"package Go can import. It is in the module."},
		{ID: ruleBadName, Purpose: "owner, and the names of regions, kinds, resources and limits have the form " +
			"that keys and expressions in the table need."},
		{ID: ruleDocText, Purpose: "doc is text that can stand in a Go comment."},
	}
}

// meaningRules returns the rules about what the file says.
func meaningRules() []Rule {
	return []Rule{
		{ID: ruleRegionCount, Purpose: "There are 2 to 32 regions, or none."},
		{ID: ruleNoRegions, Purpose: "A resource is global only if there are regions."},
		{ID: ruleNothingGlobal, Purpose: "If there are regions, a resource is global."},
		{ID: ruleGlobalStore, Purpose: "If a resource is global, stores is dynamodb alone: no other store " +
			"keeps limits for several regions."},

		{ID: ruleUnknownParent, Purpose: "The parent of a kind is a kind."},
		{ID: ruleParentCycle, Purpose: "No kind is its own ancestor."},
		{ID: ruleUnknownKind, Purpose: "The entities of a resource are kinds of the schema's entities, and " +
			"the kinds of a limit are entities of its resource."},
		{ID: ruleUnknownLimit, Purpose: "A limit that is restated for a kind is one of the resource's limits."},
		{ID: ruleRestatedKey, Purpose: "A limit restated for a kind changes capacity and what follows from " +
			"it; every, window, starts, zone, in_flight, on_crash, refills, doc and go_name are the limit's own.",
			At: "resources.<resource>.entities.<kind>.<limit>"},
		{ID: ruleRestatedNone, Purpose: "A limit is restated only for kinds that have it.",
			At: "resources.<resource>.entities.<kind>.<limit>"},
		{ID: ruleKindEmpty, Purpose: "Every kind that has a bucket has a limit.",
			At: "resources.<resource>.entities.<kind>"},
		{ID: ruleRemovedCurrent, Purpose: "A removed limit is not one of the resource's limits."},
		{ID: ruleChainLength, Purpose: "A call charges at most 100 buckets: that of its entity, and those " +
			"of its ancestors.", At: "resources.<resource>.entities.<kind>"},

		{ID: ruleHowLong, Purpose: "A limit has one of every, window and in_flight."},
		{ID: ruleStarts, Purpose: "starts fits window: a time of the day, a day of the week or of the month, or " +
			"entity. A window that is a duration has starts: first_use."},
		{ID: ruleWindowKeys, Purpose: "refill, burst and refills go with every alone, starts and zone with " +
			"window; zone does not go with starts: first_use.", At: "resources.<resource>.limits.<limit>"},
		{ID: ruleUnknownZone, Purpose: "zone is a name of the IANA's time zones, or entity."},
		{ID: ruleWindowGlobal, Purpose: "No limit of a global resource has a window.",
			At: "resources.<resource>.limits.<limit>"},
		{ID: ruleCrashRefills, Purpose: "on_crash goes with window alone: other limits recover by themselves.",
			At: "resources.<resource>.limits.<limit>"},
		{ID: ruleInFlightGlobal, Purpose: "No limit of a global resource is in flight.",
			At: "resources.<resource>.limits.<limit>"},

		{ID: ruleBadNumber, Purpose: "Numbers are digits and '_' between digits, without a leading 0."},
		{ID: ruleZeroNumber, Purpose: "No number is 0, floor aside."},
		{ID: ruleNumberRange, Purpose: "Tokens are at most 10^12, revision is at most 90,000, floor is at " +
			"most 50, drift and horizon are at most 100."},
		{ID: ruleBadPeriod, Purpose: "every and window are durations such as 1s, 1m, 12h or 1d. A limit's " +
			"window may be one of the calendar's instead."},
		{ID: rulePeriodRange, Purpose: "every is whole milliseconds from 1ms to 366d, a limit's window from 1m " +
			"to 366d. The window of regions is whole seconds from 1s to 1h."},
		{ID: ruleRefillRate, Purpose: "A limit refills at most 10^7 tokens per second."},
		{ID: ruleFillTime, Purpose: "A limit is full from empty within 3,650 days."},
		{ID: ruleBurstCapacity, Purpose: "burst is at least capacity."},
		{ID: rulePerCallBurst, Purpose: "per_call is at most burst: a call that takes more could never be " +
			"served."},

		{ID: ruleGoName, Purpose: "Every name gives an exported Go identifier of ASCII letters and digits."},
		{ID: ruleGoClash, Purpose: "No two names give the same Go identifier or file."},
		{ID: ruleReservedName, Purpose: "No name gives an identifier or file that Go or generated code uses " +
			"for itself."},
	}
}
