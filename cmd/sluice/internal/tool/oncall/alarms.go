package oncall

import (
	"slices"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/infra"
	"github.com/sluice-go/sluice/runtime/metrics"
)

// alarm is one of CloudWatch's. It goes off where its metric was at least Threshold in 3 minutes out of 5.
type alarm struct {
	Name       string // setup-failures
	Why        string
	Own        *metrics.Metric // ours, or
	Namespace  string          // AWS's, and
	AWS        string          // the name of its metric
	Dimensions []dimension
	Statistic  string
	Threshold  string // a number, or
	Parameter  string // which has it: without it there is no alarm
	Relative   bool   // the threshold is a percentage of what there is without the dimensions
}

// dimension is one with a value, or with a parameter that has it.
type dimension struct{ Name, Value, Parameter string }

// parameter is what who applies the templates says.
type parameter struct {
	Name, Default, Description string
	Number                     bool
	Optional                   bool // without it there are no alarms that need it
}

// Parameters of the templates.
const (
	namespaceParameter  = "Namespace"
	tableParameter      = "TableName"
	throttledParameter  = "ThrottledTable"
	aggregatorParameter = "AggregatorFunction"
	budgetParameter     = "WriteBudget"
	deniedParameter     = "DeniedPercent"
)

var parameters = []parameter{
	{Name: "AlarmTopicArn",
		Description: "ARN of the SNS topic that alarms go to. Without one they show in the console alone."},
	{Name: namespaceParameter, Default: "sluice",
		Description: "CloudWatch namespace that the collector sends sluice's own metrics to."},
	{Name: tableParameter, Default: "rate_limits", Description: "Name of the table that WriteBudget is about."},
	{Name: budgetParameter, Default: "0", Number: true, Optional: true,
		Description: "Write units that the table may use in a minute. 0 for no alarm."},
	{Name: deniedParameter, Default: "0", Number: true, Optional: true,
		Description: "Percentage of acquires that may be denied. 0 for no alarm."},
	{Name: aggregatorParameter, Optional: true, Description: "Name of the Lambda function that aggregates " +
		"usage. Without one, nobody watches the stream."},
	{Name: throttledParameter, Optional: true,
		Description: "Name of a table to watch for throttling and failures. " +
			"Leave it out for one that sluice infra made: it has these alarms."},
}

// alarms returns all alarms, those on sluice's own metrics first.
func alarms() []alarm {
	return slices.Concat(decisionAlarms(), storeAlarms(), tableAlarms())
}

// outcome matches decisions by their outcome.
func outcome(of string) dimension { return dimension{Name: metrics.Outcome, Value: of} }

// decisionAlarms returns the alarms on how acquires end.
func decisionAlarms() []alarm {
	failed := func(why string) []dimension {
		return []dimension{outcome("failed"), {Name: metrics.ErrorType, Value: why}}
	}
	return []alarm{
		{
			Name: "setup-failures", Own: metrics.Decisions, Dimensions: failed("setup"), Statistic: "Sum",
			Threshold: "1",
			Why: "Calls fail because the installation is at fault: a table, a right or a script is missing. The " +
				"log says which.",
		},
		{
			Name: "unavailable", Own: metrics.Decisions, Dimensions: failed("unavailable"), Statistic: "Sum",
			Threshold: "1",
			Why:       "Calls are refused because the store does not answer, and the failure policy is deny.",
		},
		{
			Name: "throttled", Own: metrics.Decisions, Dimensions: failed("throttled"), Statistic: "Sum",
			Threshold: "1",
			Why: "Calls are refused because the store throttles, and the failure policy is deny: a bucket is hot, " +
				"or the table short of units.",
		},
		{
			Name: "degraded", Own: metrics.Decisions, Dimensions: []dimension{outcome("degraded")}, Statistic: "Sum",
			Threshold: "1",
			Why:       "The store does not answer, or throttles: calls are admitted that it has no record of.",
		},
		{
			Name: "contended", Own: metrics.Decisions, Dimensions: failed("contended"), Statistic: "Sum",
			Threshold: "1",
			Why:       "Calls fail because too many write to the same bucket at once.",
		},
		{
			Name: "denied", Own: metrics.Decisions, Dimensions: []dimension{outcome("denied")}, Statistic: "Sum",
			Parameter: deniedParameter, Relative: true,
			Why: "More calls are denied than should be: demand has grown, or a limit is wrong.",
		},
	}
}

// storeAlarms returns the alarms on settlements, calls to the store and clocks.
func storeAlarms() []alarm {
	return []alarm{
		{
			Name: "settlements-lost", Own: metrics.Settlements, Dimensions: []dimension{outcome("failed")},
			Statistic: "Sum", Threshold: "1",
			Why: "Leases could not be settled or released: what was charged stands.",
		},
		{
			Name: "leases-lost", Own: metrics.LeasesLost, Statistic: "Sum", Threshold: "1",
			Why: "Leases could not be extended: their calls were told to end, and others may have their slots.",
		},
		{
			Name: "replies-lost", Own: metrics.StoreCalls, Dimensions: []dimension{outcome("unknown")},
			Statistic: "Sum", Threshold: "1",
			Why: "Calls to the store end without a reply: time-outs, or failures of the store.",
		},
		{
			Name: "breaker-open", Own: metrics.BreakersOpen, Statistic: "Maximum", Threshold: "1",
			Why: "A circuit breaker is open: the store answered nothing during several calls, and only probes ask it.",
		},
		{
			Name: "clock-skew", Own: metrics.ClockSkew, Statistic: "Sum", Threshold: "1",
			Why: "The clock of a host is off by more than a second, which costs refill. Look at its time " +
				"synchronisation.",
		},
	}
}

// tableAlarms returns the alarms on AWS's metrics of the table and of the Lambda function that aggregates.
func tableAlarms() []alarm {
	all := []alarm{
		{
			Name: "over-budget", Namespace: "AWS/DynamoDB", AWS: "ConsumedWriteCapacityUnits", Statistic: "Sum",
			Parameter:  budgetParameter,
			Dimensions: []dimension{{Name: "TableName", Parameter: tableParameter}},
			Why:        "The table costs more than it should: it takes more write units than its budget.",
		},
		{
			Name: "stream-behind", Namespace: "AWS/Lambda", AWS: "IteratorAge", Statistic: "Maximum",
			Threshold:  "900000",
			Dimensions: []dimension{{Name: "FunctionName", Parameter: aggregatorParameter}},
			Why:        "Usage is a quarter of an hour behind. The stream keeps what was not read for 24 hours.",
		},
	}
	for _, operation := range infra.Operations() {
		of := []dimension{{Name: "TableName", Parameter: throttledParameter}, {Name: "Operation", Value: operation}}
		all = append(all,
			alarm{
				Name: operation + "-throttled", Namespace: "AWS/DynamoDB", AWS: "ThrottledRequests", Dimensions: of,
				Statistic: "Sum", Threshold: "1",
				Why: "Whole requests are throttled: a bucket is hot, or the table short of units.",
			},
			alarm{
				Name: operation + "-failures", Namespace: "AWS/DynamoDB", AWS: "SystemErrors", Dimensions: of,
				Statistic: "Sum", Threshold: "1",
				Why: "DynamoDB fails: outcomes are unknown, and the failure policy decides.",
			})
	}
	return all
}

// Needs returns the parameter without which there is no such alarm, nil for none.
func (a alarm) Needs() *parameter {
	for i, p := range parameters {
		if p.Optional &&
			(p.Name == a.Parameter ||
				slices.ContainsFunc(a.Dimensions, func(d dimension) bool { return d.Parameter == p.Name })) {
			return &parameters[i]
		}
	}
	return nil
}

// Metric returns the name of what the alarm looks at.
func (a alarm) Metric() string {
	if a.Own != nil {
		return a.Own.Name
	}
	return a.AWS
}
