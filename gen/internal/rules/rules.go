// Package rules names the conditions that every limits.yaml must meet. Package schema checks them.
package rules

import "slices"

// Rule is a condition that every limits.yaml must meet.
type Rule struct {
	ID      string // as in problems
	Purpose string // the condition, in one sentence
	At      string // the key or name that it is about, for rules that no wrong value of one key breaks
}

// OutPath is the id of the rule about go.out. Package schema does not know the module: package gen checks
// that.
const OutPath = "OUT_PATH"

// The other rules' ids. Rules has the condition of each.
const (
	NotText      = "NOT_TEXT"
	YAMLSyntax   = "YAML_SYNTAX"
	YAMLFeature  = "YAML_FEATURE"
	OneDocument  = "ONE_DOCUMENT"
	WrongType    = "WRONG_TYPE"
	UnknownKey   = "UNKNOWN_KEY"
	DuplicateKey = "DUPLICATE_KEY"
	MissingKey   = "MISSING_KEY"
	Empty        = "EMPTY"
	UnknownValue = "UNKNOWN_VALUE"
	Repeated     = "REPEATED"

	Version     = "VERSION"
	PackageName = "PACKAGE_NAME"
	BadName     = "BAD_NAME"
	DocText     = "DOC_TEXT"

	RegionCount   = "REGION_COUNT"
	NoRegions     = "NO_REGIONS"
	NothingGlobal = "NOTHING_GLOBAL"
	GlobalStore   = "GLOBAL_STORE"

	UnknownParent  = "UNKNOWN_PARENT"
	ParentCycle    = "PARENT_CYCLE"
	UnknownKind    = "UNKNOWN_KIND"
	UnknownLimit   = "UNKNOWN_LIMIT"
	RestatedKey    = "RESTATED_KEY"
	RestatedNone   = "RESTATED_NONE"
	KindEmpty      = "KIND_EMPTY"
	PlanKind       = "PLAN_KIND"
	PlanCount      = "PLAN_COUNT"
	NoPlans        = "NO_PLANS"
	UnknownPlan    = "UNKNOWN_PLAN"
	PlansGlobal    = "PLANS_GLOBAL"
	RemovedCurrent = "REMOVED_CURRENT"
	ChainLength    = "CHAIN_LENGTH"

	HowLong        = "HOW_LONG"
	Starts         = "STARTS"
	WindowKeys     = "WINDOW_KEYS"
	UnlimitedKeys  = "UNLIMITED_KEYS"
	UnknownZone    = "UNKNOWN_ZONE"
	WindowGlobal   = "WINDOW_GLOBAL"
	CrashRefills   = "CRASH_REFILLS"
	InFlightGlobal = "IN_FLIGHT_GLOBAL"

	PrefetchInFlight = "PREFETCH_IN_FLIGHT"
	PrefetchNever    = "PREFETCH_NEVER"

	NamesKeys   = "NAMES_KEYS"
	NamesGlobal = "NAMES_GLOBAL"
	NamePrefix  = "NAME_PREFIX"

	Currency      = "CURRENCY"
	MoneyRate     = "MONEY_RATE"
	MoneyMixed    = "MONEY_MIXED"
	MoneyKeys     = "MONEY_KEYS"
	MoneyRedis    = "MONEY_REDIS"
	UnknownUsage  = "UNKNOWN_USAGE"
	BadPrice      = "BAD_PRICE"
	PriceFraction = "PRICE_FRACTION"

	BadNumber     = "BAD_NUMBER"
	ZeroNumber    = "ZERO_NUMBER"
	NumberRange   = "NUMBER_RANGE"
	BadPeriod     = "BAD_PERIOD"
	PeriodRange   = "PERIOD_RANGE"
	RefillRate    = "REFILL_RATE"
	FillTime      = "FILL_TIME"
	BurstCapacity = "BURST_BELOW_CAPACITY"
	PerCallBurst  = "PER_CALL_ABOVE_BURST"

	GoName = "GO_NAME"
)

// All returns every rule that schema.Read checks, in the order in which a reader of limits.yaml meets them.
func All() []Rule { return slices.Concat(formRules(), meaningRules(), numberRules()) }

// formRules returns the rules about the text of the file.
func formRules() []Rule {
	return []Rule{
		{ID: NotText, Purpose: "The file is UTF-8 text without control characters."},
		{ID: YAMLSyntax, Purpose: "The file is YAML."},
		{ID: YAMLFeature, Purpose: "Anchors, aliases, merge keys and explicit tags are not used, so " +
			"that each value is where it applies."},
		{ID: OneDocument, Purpose: "The file holds exactly one document, which is not empty."},
		{ID: WrongType, Purpose: "Every value has the type that its key asks for."},
		{ID: UnknownKey, Purpose: "Every key is one that its mapping takes."},
		{ID: DuplicateKey, Purpose: "No key stands twice in one mapping."},
		{ID: MissingKey, Purpose: "Required keys are there. on_unavailable is one beside a limit with " +
			"in_flight or money."},
		{ID: Empty, Purpose: "Lists and mappings that need an entry are not empty."},
		{ID: UnknownValue, Purpose: "A value that is one of a fixed set is in it."},
		{ID: Repeated, Purpose: "No item stands twice in one list."},

		{ID: Version, Purpose: "version is a file format that this sluice reads."},
		{ID: PackageName, Purpose: "go.package is a name that a Go package can have."},
		{ID: OutPath, Purpose: "go.out is a relative path with forward slashes, to a folder whose " +
			"package Go can import. It is in the module."},
		{ID: BadName, Purpose: "owner, and the names of regions, kinds, plans, resources and limits have the " +
			"form that keys and expressions in the table need."},
		{ID: DocText, Purpose: "doc is text that can stand in a Go comment."},
	}
}

// meaningRules returns the rules about what the file says.
func meaningRules() []Rule {
	return []Rule{
		{ID: RegionCount, Purpose: "There are 2 to 32 regions, or none."},
		{ID: NoRegions, Purpose: "A resource is global only if there are regions."},
		{ID: NothingGlobal, Purpose: "If there are regions, a resource is global."},
		{ID: GlobalStore, Purpose: "If a resource is global, stores is dynamodb alone: no other store " +
			"keeps limits for several regions."},

		{ID: UnknownParent, Purpose: "The parent of a kind is a kind."},
		{ID: ParentCycle, Purpose: "No kind is its own ancestor."},
		{ID: UnknownKind, Purpose: "The entities of a resource are kinds of the schema's entities, and " +
			"the kinds of a limit and of a plan are entities of its resource."},
		{ID: UnknownLimit, Purpose: "A limit that is restated for a kind is one of the resource's limits."},
		{ID: RestatedKey, Purpose: "A limit restated for a kind changes capacity and what follows from " +
			"it; every, window, starts, zone, in_flight, on_crash, money, counts, refills, all_names, doc and " +
			"go_name are the limit's own. A plan does not change per_call.",
			At: "resources.<resource>.entities.<kind>.<limit>"},
		{ID: RestatedNone, Purpose: "A limit is restated only for kinds that have it.",
			At: "resources.<resource>.entities.<kind>.<limit>"},
		{ID: KindEmpty, Purpose: "Every kind that has a bucket has a limit.",
			At: "resources.<resource>.entities.<kind>"},
		{ID: PlanKind, Purpose: "Plans are those of one kind. A resource's plans have numbers for that kind and " +
			"those below it.", At: "resources.<resource>.plans.<plan>.<kind>"},
		{ID: PlanCount, Purpose: "There are at most 100 plans."},
		{ID: NoPlans, Purpose: "A resource has plans only if the schema has."},
		{ID: UnknownPlan, Purpose: "A plan of a resource is one of the schema's plans."},
		{ID: PlansGlobal, Purpose: "No global resource has plans.", At: "resources.<resource>.plans"},
		{ID: RemovedCurrent, Purpose: "A removed limit is not one of the resource's limits."},
		{ID: ChainLength, Purpose: "A call charges at most 100 buckets: that of its entity, and those " +
			"of its ancestors.", At: "resources.<resource>.entities.<kind>"},

		{ID: HowLong, Purpose: "A limit has one of every, window and in_flight."},
		{ID: Starts, Purpose: "starts fits window: a time of the day, a day of the week or of the month, or " +
			"entity. A window that is a duration has starts: first_use."},
		{ID: WindowKeys, Purpose: "refill, burst and refills go with every alone, starts and zone with " +
			"a window that ends; zone does not go with starts: first_use.",
			At: "resources.<resource>.limits.<limit>"},
		{ID: UnlimitedKeys, Purpose: "refill and burst do not go with capacity: unlimited.",
			At: "resources.<resource>.limits.<limit>"},
		{ID: UnknownZone, Purpose: "zone is a name of the IANA's time zones, or entity."},
		{ID: WindowGlobal, Purpose: "No limit of a global resource has a window.",
			At: "resources.<resource>.limits.<limit>"},
		{ID: CrashRefills, Purpose: "on_crash goes with window alone: other limits recover by themselves.",
			At: "resources.<resource>.limits.<limit>"},
		{ID: InFlightGlobal, Purpose: "No limit of a global resource is in flight.",
			At: "resources.<resource>.limits.<limit>"},
		{ID: PrefetchInFlight, Purpose: "No limit of a resource with prefetch has in_flight or on_crash: release.",
			At: "resources.<resource>"},
		{ID: PrefetchNever, Purpose: "No limit of a resource with prefetch has window: never.",
			At: "resources.<resource>"},
		{ID: NamesKeys, Purpose: "all_names goes with names: catalog.",
			At: "resources.<resource>.limits.<limit>"},
		{ID: NamesGlobal, Purpose: "No global resource has names: catalog.", At: "resources.<resource>.names"},
		{ID: NamePrefix, Purpose: "No resource has a name that begins with that of a resource with names: " +
			"catalog and a slash.", At: "resources.<resource>"},
	}
}

// numberRules returns the rules about numbers, money and Go names.
func numberRules() []Rule {
	return []Rule{
		{ID: Currency, Purpose: "money is the three capital letters of a currency, such as USD."},
		{ID: MoneyRate, Purpose: "money goes with window.", At: "resources.<resource>.limits.<limit>"},
		{ID: MoneyMixed, Purpose: "A resource has one currency: each price counts in all of its limits of " +
			"money.", At: "resources.<resource>.limits.<limit>"},
		{ID: MoneyKeys, Purpose: "counts goes with tokens alone, and price with a limit of money.",
			At: "resources.<resource>"},
		{ID: MoneyRedis, Purpose: "With redis in stores, a capacity of money is at most 9,000,000.",
			At: "resources.<resource>.limits.<limit>"},
		{ID: UnknownUsage, Purpose: "counts names usages of the resource."},
		{ID: BadPrice, Purpose: "A price is a decimal such as 0.01, or one per 1k or 1M such as 2.50/1M."},
		{ID: PriceFraction, Purpose: "A price is a whole number of trillionths a unit: it has at most 6 " +
			"decimals per 1M, 9 per 1k, and 12 for one."},

		{ID: BadNumber, Purpose: "Numbers are digits and '_' between digits, without a leading 0. Amounts " +
			"of money may have a point and up to 6 decimals."},
		{ID: ZeroNumber, Purpose: "No number is 0, floor aside."},
		{ID: NumberRange, Purpose: "Tokens are at most 10^12, money is at most 10^8, a price at most 10^6 " +
			"a unit, revision is at most 90,000, floor is at " +
			"most 50, drift and horizon are at most 100."},
		{ID: BadPeriod, Purpose: "every, window and prefetch are durations such as 1s, 1m, 12h or 1d. A limit's " +
			"window may be one of the calendar's instead."},
		{ID: PeriodRange, Purpose: "every is whole milliseconds from 1ms to 366d, a limit's window from 1m " +
			"to 366d. prefetch is whole milliseconds from 100ms to 5s. The window of regions is whole seconds " +
			"from 1s to 1h."},
		{ID: RefillRate, Purpose: "A limit refills at most 10^7 tokens per second."},
		{ID: FillTime, Purpose: "A limit is full from empty within 3,650 days."},
		{ID: BurstCapacity, Purpose: "burst is at least capacity."},
		{ID: PerCallBurst, Purpose: "per_call is at most burst: a call that takes more could never be " +
			"served."},

		{ID: GoName, Purpose: "Every name gives an exported Go identifier of ASCII letters and digits."},
	}
}
