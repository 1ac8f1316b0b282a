package metrics

import (
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/internal/tool/oncall"
)

// metricsCommand prints what people on call look at. None of its commands calls anything.
type Command struct {
	List           list           `cmd:"" help:"List the metrics: their kind, unit and labels, and their names in Prometheus."`
	Grafana        grafana        `cmd:"" help:"Print a dashboard for Grafana, on Prometheus."`
	Cloudformation cloudFormation `cmd:"" help:"Print a CloudFormation template with alarms."`
	Terraform      terraform      `cmd:"" help:"Print a Terraform configuration with alarms."`
	Collector      collector      `cmd:"" help:"Print what OpenTelemetry's collector needs for the alarms."`
}

type list struct{}

// Help says what records them.
func (list) Help() string {
	return "The package runtime/otellimit records them with OpenTelemetry, and runtime/metrics keeps them in a process without it. " +
		"No metric has an entity for a label. A histogram's names in Prometheus go on with _bucket, _sum and _count."
}

// Run prints the list.
func (list) Run(p program.Env) error { return p.Print(oncall.List()) }

type grafana struct{}

// Help says how to use it.
func (grafana) Help() string {
	return "It is of the metrics that runtime/otellimit records, by their names in OpenTelemetry's Prometheus exporter.\n\n" +
		"Example: sluice metrics grafana > sluice.json, then import it in Grafana."
}

// Run prints the dashboard.
func (grafana) Run(p program.Env) error { return p.Print(oncall.Grafana()) }

// inAlarms says what both have.
const inAlarms = "The alarms are on sluice's own metrics, which the exporter of `sluice metrics collector` sends to CloudWatch; on " +
	"what the table consumes, if you name a budget; on the stream, if you name the function that aggregates usage; and on throttling and " +
	"failures of a table that `sluice infra` did not make. They go to an SNS topic that you name.\n\n"

type cloudFormation struct{}

// Help says what the template has, and how to use it.
func (cloudFormation) Help() string {
	return inAlarms + "Example: sluice metrics cloudformation > alarms.yaml && " +
		"aws cloudformation deploy --template-file alarms.yaml --stack-name sluice-alarms --parameter-overrides WriteBudget=60000"
}

// Run prints the template.
func (cloudFormation) Run(p program.Env) error { return p.Print(oncall.CloudFormation()) }

type terraform struct{}

// Help says what the configuration has, and how to use it.
func (terraform) Help() string {
	return inAlarms + "Example: sluice metrics terraform > alarms.tf && terraform apply -var write_budget=60000"
}

// Run prints the configuration.
func (terraform) Run(p program.Env) error { return p.Print(oncall.Terraform()) }

type collector struct{}

// Help says where it belongs.
func (collector) Help() string {
	return "It is an exporter for the collector's configuration, which sends CloudWatch the metrics that the alarms look at, by the " +
		"labels that they look at, and no others.\n\nExample: sluice metrics collector > sluice-collector.yaml && " +
		"otelcol --config collector.yaml --config sluice-collector.yaml"
}

// Run prints the settings.
func (collector) Run(p program.Env) error { return p.Print(oncall.Collector()) }
