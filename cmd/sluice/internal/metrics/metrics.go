// Package metrics is `sluice metrics`: it prints the metrics, a dashboard and alarms. It calls nothing.
package metrics

import (
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/oncall"
	"github.com/sluice-go/sluice/runtime/metrics"
)

// Command is `sluice metrics`.
type Command struct {
	List           list           `cmd:"" help:"List the metrics: kind, unit, labels, and names in Prometheus."`
	Grafana        grafana        `cmd:"" help:"Print a dashboard for Grafana, on Prometheus."`
	Cloudformation cloudFormation `cmd:"" help:"Print a CloudFormation template with alarms."`
	Terraform      terraform      `cmd:"" help:"Print a Terraform configuration with alarms."`
	Collector      collector      `cmd:"" help:"Print the exporter of OpenTelemetry's collector for the alarms."`
}

type list struct {
	JSON bool `name:"json" help:"Print a JSON object per metric on a line."`
}

// Help says what records the metrics.
func (list) Help() string {
	return "The package runtime/otellimit records them with OpenTelemetry; runtime/metrics keeps them " +
		"in a process without it. No metric is labelled by entity. In Prometheus, the names of a " +
		"histogram end with _bucket, _sum and _count."
}

// Run prints the list.
func (c list) Run(p program.Env) error {
	if !c.JSON {
		return p.Print(oncall.List())
	}
	for _, m := range metrics.All() {
		if err := p.JSONLine(struct {
			Metric     string   `json:"metric"`
			Kind       string   `json:"kind"`
			Unit       string   `json:"unit"`
			Prometheus string   `json:"prometheus"`
			Labels     []string `json:"labels"`
		}{m.Name, m.Kind.String(), m.Unit, m.Prometheus(), append([]string{}, m.Labels...)}); err != nil {
			return err
		}
	}
	return nil
}

type grafana struct{}

// Help says how to use the dashboard.
func (grafana) Help() string {
	return "It shows the metrics that runtime/otellimit records, under their names in OpenTelemetry's " +
		"Prometheus exporter.\n\n" +
		"Example: sluice metrics grafana > sluice.json, then import it in Grafana."
}

// Run prints the dashboard.
func (grafana) Run(p program.Env) error { return p.Print(oncall.Grafana()) }

// inAlarms is the part of the help that both forms of the alarms have.
const inAlarms = "The alarms watch sluice's own metrics, which the exporter of `sluice metrics collector` " +
	"sends to CloudWatch. If you name a budget, they watch the table's consumption; if you name " +
	"the aggregating function, they watch the stream. For a table that `sluice infra` did not " +
	"make, they also watch throttling and failures. They go to an SNS topic that you name.\n\n"

type cloudFormation struct{}

// Help describes the template.
func (cloudFormation) Help() string {
	return inAlarms + "Example: sluice metrics cloudformation > alarms.yaml && " +
		"aws cloudformation deploy --template-file alarms.yaml --stack-name sluice-alarms --parameter-overrides " +
		"WriteBudget=60000"
}

// Run prints the template.
func (cloudFormation) Run(p program.Env) error { return p.Print(oncall.CloudFormation()) }

type terraform struct{}

// Help describes the configuration.
func (terraform) Help() string {
	return inAlarms + "Example: sluice metrics terraform > alarms.tf && terraform apply -var write_budget=60000"
}

// Run prints the configuration.
func (terraform) Run(p program.Env) error { return p.Print(oncall.Terraform()) }

type collector struct{}

// Help says where the settings belong.
func (collector) Help() string {
	return "It is an exporter for the collector's configuration. It sends CloudWatch the metrics and " +
		"labels that the alarms use, and no others.\n\n" +
		"Example: sluice metrics collector > sluice-collector.yaml && otelcol --config " +
		"collector.yaml --config sluice-collector.yaml"
}

// Run prints the settings.
func (collector) Run(p program.Env) error { return p.Print(oncall.Collector()) }
