// Package metrics defines what sluice measures: names, units, labels and buckets, by OpenTelemetry's naming
// conventions.
//
//	counters := &metrics.Counters{}
//	expvar.Publish("sluice", counters)
//	lim, err := limits.New(dynamo.New(client, "rate_limits"), runtime.WithObserver(metrics.Observer(counters)))
//
//	now := counters.Snapshot()
//
//	fmt.Println(now.Sum(metrics.Decisions, metrics.LimitName, "tpm"), "denied by tpm")
//
// [Counters] keeps the metrics in this process. Package otellimit records them, and `sluice metrics` makes a
// dashboard and alarms of them.
//
// No metric has an entity for a label: there are as many as a service has users. Of the names of templates,
// the 200 most used ones have a value of their own.
package metrics

// Kind is how measurements of a metric add up.
type Kind uint8

// Kinds, as OpenTelemetry calls them.
const (
	Counter   Kind = iota // what is measured is added up, and never below 0
	Gauge                 // it replaces what was measured before
	Histogram             // it is counted by size
)

// String returns k's name.
func (k Kind) String() string { return [...]string{"counter", "gauge", "histogram"}[k] }

// Metric is one thing that is measured.
type Metric struct {
	Name        string // sluice.decisions
	Unit        string // in UCUM: s, {decision}
	Kind        Kind
	Description string
	Labels      []string  // at most as many as Values has room for
	Buckets     []float64 // upper bounds, of a Histogram
}

// Labels. Outcomes and operations are those of runtime.Observer, in lower case.
const (
	Resource   = "sluice.resource"    // gpt-4, or the template of a name; "" for calls about none
	Name       = "sluice.name"        // gpt-5, a name of a template; OtherName; "" for other resources
	EntityKind = "sluice.entity.kind" // user
	LimitName  = "sluice.limit.name"  // rpm: the limit that refused; "" where none did
	LimitKind  = "sluice.limit.kind"  // project: the kind whose limit that was
	Operation  = "sluice.operation"   // acquire, wait, settle, release
	// acquired, denied, degraded, shadowed, failed; settled, released, invalid; of a store call: applied,
	// refused, ...
	Outcome   = "sluice.outcome"
	ErrorType = "error.type"           // see TypeOf; "" where nothing is wrong
	System    = "db.system.name"       // aws.dynamodb, redis
	Call      = "db.operation.name"    // UpdateItem, EVALSHA
	Path      = "sluice.store.path"    // normal, retry, settle: see runtime.StoreEvent
	Capacity  = "sluice.capacity.type" // read, write
	Clock     = "sluice.clock"         // ahead, behind: this host's
	Currency  = "sluice.currency"      // USD
)

// OtherName is the value of Name for names of templates that are not among the 200 most used ones.
const OtherName = "_OTHER" // OpenTelemetry's word

// Values are the values of a metric's labels, in their order.
type Values [8]string

// The metrics.
var (
	Decisions = &Metric{
		Name: "sluice.decisions", Unit: "{decision}", Kind: Counter,
		Description: "Acquires and waits that have ended; an acquire of several resources is one for each.",
		Labels:      []string{Resource, EntityKind, Operation, Outcome, LimitName, LimitKind, ErrorType, Name},
	}
	DecisionDuration = &Metric{
		Name: "sluice.decision.duration", Unit: "s", Kind: Histogram,
		Description: "How long acquires and waits took, the waiting included.",
		Labels:      []string{Resource, Operation, Outcome}, Buckets: seconds,
	}
	DegradedNano = &Metric{
		Name: "sluice.degraded.nano", Unit: "{nano_unit}", Kind: Counter,
		Description: "Money that degraded decisions admitted and no budget in the store is charged for, in " +
			"billionths of its currency.",
		Labels: []string{Resource, Currency, Name},
	}
	Settlements = &Metric{
		Name: "sluice.settlements", Unit: "{settlement}", Kind: Counter,
		Description: "Leases settled or released, those that the store did not take (failed), and " +
			"settles that said nothing possible (invalid).",
		Labels: []string{Resource, EntityKind, Operation, Outcome, ErrorType, Name},
	}
	StoreCalls = &Metric{
		Name: "sluice.store.calls", Unit: "{call}", Kind: Counter,
		Description: "Calls to the store, by what they were for and how they ended.",
		Labels:      []string{Resource, System, Call, Path, Outcome},
	}
	StoreCallDuration = &Metric{
		Name: "sluice.store.call.duration", Unit: "s", Kind: Histogram,
		Description: "How long calls to the store took.",
		Labels:      []string{System, Call, Outcome}, Buckets: seconds,
	}
	StoreCapacity = &Metric{
		Name: "sluice.store.capacity", Unit: "{capacity_unit}", Kind: Counter,
		Description: "Capacity units that DynamoDB bills, those of failed conditions and cancelled transactions " +
			"included.",
		Labels: []string{Resource, Path, Capacity},
	}
	StoreCoalesced = &Metric{
		Name: "sluice.store.coalesced", Unit: "{request}", Kind: Histogram,
		Description: "How many acquires and settles a write served together.",
		Labels:      []string{Resource, System}, Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128},
	}
	LeasesLost = &Metric{
		Name: "sluice.leases.lost", Unit: "{lease}", Kind: Counter,
		Description: "Leases whose hold could not be extended: their calls were told to end, and others may have " +
			"had their slots.",
		Labels: []string{Resource, EntityKind, Name},
	}
	SlotsSwept = &Metric{
		Name: "sluice.slots.swept", Unit: "{token}", Kind: Counter,
		Description: "Slots and reservations that came back because nobody had extended them: of processes that " +
			"died, mostly.",
		Labels: []string{Resource, System},
	}
	PrefetchAdmitted = &Metric{
		Name: "sluice.prefetch.admitted", Unit: "{decision}", Kind: Counter,
		Description: "Acquires and waits that were admitted without a request, of tokens taken before.",
		Labels:      []string{Resource, EntityKind, Name},
	}
	PrefetchTaken = &Metric{
		Name: "sluice.prefetch.taken", Unit: "{token}", Kind: Counter,
		Description: "Tokens that were taken for calls to come; of a limit of money, billionths of its currency.",
		Labels:      []string{Resource, EntityKind, LimitName, Name},
	}
	PrefetchReturned = &Metric{
		Name: "sluice.prefetch.returned", Unit: "{token}", Kind: Counter,
		Description: "Tokens that were taken for calls to come and given back, since no call used them in time.",
		Labels:      []string{Resource, EntityKind, LimitName, Name},
	}
	BreakersOpen = &Metric{
		Name: "sluice.breakers.open", Unit: "{breaker}", Kind: Gauge,
		Description: "Circuit breakers that are open: the failure policy decides, and only probes ask the store.",
	}
	ClockSkew = &Metric{
		Name: "sluice.clock.skew", Unit: "s", Kind: Counter,
		Description: "How far this host's clock was off the store's, where that was more than a second; added " +
			"once a minute.",
		Labels: []string{Clock},
	}
)

// seconds are the buckets of durations: from a call in the same zone to a wait.
var seconds = []float64{0.0005, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
	10, 30, 60}

// All returns every metric.
func All() []*Metric {
	return []*Metric{
		Decisions, DecisionDuration, DegradedNano, Settlements, StoreCalls, StoreCallDuration, StoreCapacity,
		StoreCoalesced, LeasesLost, SlotsSwept, PrefetchAdmitted, PrefetchTaken, PrefetchReturned, BreakersOpen,
		ClockSkew,
	}
}
