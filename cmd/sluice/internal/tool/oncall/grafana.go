package oncall

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/sluice-go/sluice/runtime/metrics"
)

// panel is one picture of the dashboard.
type panel struct {
	title, says string
	unit        string // as Grafana names it
	queries     []query
}

// query is one of Prometheus's, and what its series are called.
type query struct{ text, legend string }

// row is a heading with the panels below it.
type row struct {
	title  string
	panels []panel
}

// rows returns the rows of the dashboard.
func rows() []row { return []row{decisionRow(), leaseRow(), storeRow(), healthRow()} }

// one returns the queries of a panel with one query.
func one(text, legend string) []query { return []query{{text, legend}} }

// decisionRow returns the panels about decisions and how long they took.
func decisionRow() row {
	took := func(operation string) []query {
		where := is(metrics.Operation, operation)
		return []query{
			{quantile(0.5, metrics.DecisionDuration, where, metrics.Resource), "p50 " + legend(metrics.Resource)},
			{quantile(0.99, metrics.DecisionDuration, where, metrics.Resource), "p99 " + legend(metrics.Resource)},
		}
	}
	return row{"Decisions", []panel{
		{"Decisions", "Acquires and waits that ended, by how. Degraded: the store did not answer, and the " +
			"failure policy admitted.", "reqps",
			one(rate(metrics.Decisions, "", metrics.Outcome), legend(metrics.Outcome))},
		{"Portion denied", "Of a resource's acquires and waits.", "percentunit",
			one(fraction(metrics.Decisions, is(metrics.Outcome, "denied"), metrics.Resource),
				legend(metrics.Resource))},
		{"Refusals by limit", "Which limit denies, and the kind of whose bucket. Shadowed: it would have.",
			"reqps",
			one(rate(metrics.Decisions, among(metrics.Outcome, "denied|shadowed"), metrics.Resource,
				metrics.LimitKind, metrics.LimitName, metrics.Outcome),
				legend(metrics.Resource)+" "+legend(metrics.LimitKind)+" "+legend(metrics.LimitName)+" "+
					legend(metrics.Outcome))},
		{"Failed and degraded",
			"Why. Setup is for you to fix, invalid for callers; contended are too many at one bucket.", "reqps",
			one(rate(metrics.Decisions, among(metrics.Outcome, "failed|degraded"), metrics.Outcome,
				metrics.ErrorType),
				legend(metrics.Outcome)+" "+legend(metrics.ErrorType))},
		{"Money of degraded calls", "Estimates that the failure policy admitted, in billionths each second: no " +
			"budget in the store is charged for them.", "short",
			one(rate(metrics.DegradedNano, "", metrics.Resource, metrics.Currency),
				legend(metrics.Resource)+" "+legend(metrics.Currency))},
		{"Time of acquires", "What a caller waits for a decision.", "s", took("acquire")},
		{"Time of waits", "The time until there are tokens included.", "s", took("wait")},
	}}
}

// leaseRow returns the panels about settlements and holds.
func leaseRow() row {
	return row{"Leases", []panel{
		{"Settled and released", "", "reqps",
			one(rate(metrics.Settlements, "", metrics.Outcome), legend(metrics.Outcome))},
		{"Settlements lost", "What was charged stands.", "reqps",
			one(rate(metrics.Settlements, is(metrics.Outcome, "failed"), metrics.Resource, metrics.Operation,
				metrics.ErrorType),
				legend(metrics.Resource)+" "+legend(metrics.Operation)+" "+legend(metrics.ErrorType))},
		{"Leases lost", "Calls that were told to end, as what they held could not be extended.", "reqps",
			one(rate(metrics.LeasesLost, "", metrics.Resource, metrics.EntityKind),
				legend(metrics.Resource)+" "+legend(metrics.EntityKind))},
		{"Slots swept", "Slots and reservations of dead processes that came back.", "reqps",
			one(rate(metrics.SlotsSwept, "", metrics.Resource), legend(metrics.Resource))},
	}}
}

// storeRow returns the panels about calls to the store.
func storeRow() row {
	return row{"Store", []panel{
		{"Calls", "By what they are for: in the steady state retry, normal or transact.", "reqps",
			one(rate(metrics.StoreCalls, "", metrics.Path), legend(metrics.Path))},
		{"Calls without success",
			"Refused and conflict are races lost; throttled, unapplied and unknown are the store's.", "reqps",
			one(rate(metrics.StoreCalls, among(metrics.Outcome,
				"refused|conflict|throttled|unapplied|unknown|failed"), metrics.Call, metrics.Outcome),
				legend(metrics.Call)+" "+legend(metrics.Outcome))},
		{"Time of calls, p99", "", "s",
			one(quantile(0.99, metrics.StoreCallDuration, "", metrics.System, metrics.Call), legend(metrics.System)+
				" "+legend(metrics.Call))},
		{"Capacity units", "What DynamoDB bills, each second.", "short",
			one(rate(metrics.StoreCapacity, "", metrics.Capacity, metrics.Resource), legend(metrics.Capacity)+" "+
				legend(metrics.Resource))},
		{"Write units per acquire", "1 for one bucket and 4 for two in a transaction; less where writes serve " +
			"several, and more by settles, releases and refusals.", "short",
			one(rate(metrics.StoreCapacity, is(metrics.Capacity, "write"), metrics.Resource)+"\n/ "+
				rate(metrics.Decisions, is(metrics.Outcome, "acquired"), metrics.Resource), legend(metrics.Resource))},
		{"Calls without a request", "The portion of admitted calls whose tokens had been prefetched.",
			"percentunit", one(rate(metrics.PrefetchAdmitted, "", metrics.Resource)+"\n/ "+
				rate(metrics.Decisions, is(metrics.Outcome, "acquired"), metrics.Resource), legend(metrics.Resource))},
		{"Prefetched tokens", "Those taken for calls to come, and those that no call used in time.", "short",
			slices.Concat(one(rate(metrics.PrefetchTaken, "", metrics.Resource, metrics.LimitName),
				legend(metrics.Resource)+" "+legend(metrics.LimitName)+" taken"),
				one(rate(metrics.PrefetchReturned, "", metrics.Resource, metrics.LimitName),
					legend(metrics.Resource)+" "+legend(metrics.LimitName)+" returned"))},
		{"Requests per write", "How many acquires and settles a write serves together.", "short",
			one(mean(metrics.StoreCoalesced, metrics.Resource), legend(metrics.Resource))},
	}}
}

// healthRow returns the panels about circuit breakers and clocks.
func healthRow() row {
	return row{"Health", []panel{
		{"Circuit breakers open",
			"While one is, only probes ask the store, and the failure policy decides.", "short",
			one("sum ("+selector(metrics.BreakersOpen, "", "")+")", "open")},
		{"Clock skew", "How far hosts' clocks are off together, of those that are by more than a second: it " +
			"costs refill.", "s",
			one("60 * "+rate(metrics.ClockSkew, "", metrics.Clock), legend(metrics.Clock))},
	}}
}

// Grafana returns the dashboard, as JSON to be imported.
func Grafana() ([]byte, error) {
	type object = map[string]any
	source := object{"type": "prometheus", "uid": "${datasource}"}
	const width, height = 12, 8 // two beside each other
	panels := []object{}
	y, id := 0, 0
	place := func(x, w, h int) object { return object{"x": x, "y": y, "w": w, "h": h} }
	for _, r := range rows() {
		id++
		panels = append(panels, object{"id": id, "type": "row", "title": r.title, "collapsed": false,
			"panels": []object{}, "gridPos": place(0, 2*width, 1)})
		y++
		for i, p := range r.panels {
			id++
			panels = append(panels, object{
				"id": id, "type": "timeseries", "title": p.title, "description": p.says, "datasource": source,
				"targets":     targets(p.queries, source),
				"gridPos":     place(i%2*width, width, height),
				"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}},
				"options": object{"legend": object{"displayMode": "list", "placement": "bottom"},
					"tooltip": object{"mode": "multi", "sort": "desc"}},
			})
			if i%2 == 1 || i == len(r.panels)-1 {
				y += height
			}
		}
	}
	choice := func(name, label, query string) object {
		return object{
			"name": name, "label": label, "type": "query", "datasource": source, "definition": query,
			"query":   object{"query": query, "refId": name},
			"refresh": 2, "sort": 1, "multi": true, "includeAll": true, "allValue": ".*",
			"current": object{"text": "All", "value": "$__all"},
		}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(object{
		"title": "sluice", "uid": "sluice", "tags": []string{"sluice"}, "schemaVersion": 39, "version": 1,
		"editable":    true,
		"description": "Written by `sluice metrics grafana`: run it again after an upgrade.",
		"time":        object{"from": "now-1h", "to": "now"}, "refresh": "30s", "timezone": "browser",
		"templating": object{"list": []object{
			{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1},
			choice("job", "Job", "label_values("+metrics.Decisions.Prometheus()+", job)"),
			choice("resource", "Resource", "label_values("+metrics.Decisions.Prometheus()+", "+
				metrics.PrometheusLabel(metrics.Resource)+")"),
		}},
		"panels": panels,
	})
	return out.Bytes(), err
}

// targets are a panel's queries, as Grafana has them.
func targets(queries []query, source map[string]any) []map[string]any {
	all := []map[string]any{}
	for i, q := range queries {
		all = append(all, map[string]any{
			"refId": string(rune('A' + i)), "datasource": source, "expr": q.text, "legendFormat": q.legend,
			"editorMode": "code", "range": true,
		})
	}
	return all
}
