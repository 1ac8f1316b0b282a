// Package infra is `sluice infra`: it prints the table and IAM policies for other tools. It never calls
// AWS.
package infra

import (
	"errors"

	"github.com/alecthomas/kong"
	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/infra"
)

// Command is `sluice infra`.
type Command struct {
	Cloudformation cloudFormation `cmd:"" help:"Print a CloudFormation template."`
	Terraform      terraform      `cmd:"" help:"Print a Terraform configuration."`
	Iam            iam            `cmd:"" name:"iam" help:"Print IAM policies with least rights for each role."`
}

// tableFlags are the flags of templates, which make the table.
type tableFlags struct {
	connect.NoRedis

	Table string `env:"SLUICE_TABLE" default:"rate_limits" help:"Name of the table: a default in the template."`
	connect.Billing
	Snapshots *string `placeholder:"URL" help:"${infra_snapshots}"`
}

// definition returns the table for production: with point-in-time recovery and protection from deletion,
// which cost next to nothing.
func (t tableFlags) definition() (s infra.Stack, err error) {
	if name, ok := operator.TableName(t.Table); !ok || name != t.Table {
		return s, program.Usagef(
			"table %q is not a table's name: pass 3 to 255 letters, digits, '_', '.' and '-', and no ARN, "+
				"since the template makes the table", t.Table)
	}
	if s.Definition, err = t.Definition(t.Table); err != nil {
		return s, err
	}
	s.Protected, s.Recoverable = true, true
	if s.Snapshots, err = published(t.Snapshots); err == nil {
		err = s.Check()
	}
	if err != nil {
		return s, program.Usagef("--snapshots: %v", err)
	}
	return s, nil
}

// published returns the value of --snapshots, or an empty string without the flag. An empty value is an
// error: it is probably an unset variable.
func published(flag *string) (string, error) {
	switch {
	case flag == nil:
		return "", nil
	case *flag == "":
		return "", errors.New("it is empty: pass s3://bucket/prefix, or leave the flag out")
	}
	return *flag, nil
}

// inTemplates is the part of the help that both templates have.
const inTemplates = "It has the table of `sluice table create`, with point-in-time recovery and " +
	"protection from " +
	"deletion. Alarms on throttling and on failures of DynamoDB go to an SNS topic that you " +
	"name. A policy for each role of `sluice infra iam` is there to attach to your services' " +
	"roles. `sluice table check` accepts the table.\n\n"

type cloudFormation struct{ tableFlags }

// Help describes the template.
func (cloudFormation) Help() string {
	return inTemplates + "Example: sluice infra cloudformation --table rate_limits > sluice.yaml && " +
		"aws cloudformation deploy --template-file sluice.yaml --stack-name sluice --capabilities CAPABILITY_IAM " +
		"--parameter-overrides AlarmTopicArn=arn:aws:sns:eu-west-1:123456789012:oncall"
}

// Run prints the template.
func (c cloudFormation) Run(p program.Env) error {
	d, err := c.definition()
	if err != nil {
		return err
	}
	return p.Print(infra.CloudFormation(d))
}

type terraform struct{ tableFlags }

// Help describes the configuration.
func (terraform) Help() string {
	return inTemplates +
		"It has no provider's region and no backend: use it as a module or beside your own files.\n\n" +
		"Example: sluice infra terraform --table rate_limits > sluice.tf && terraform apply -var " +
		"alarm_topic_arn=arn:aws:sns:eu-west-1:123456789012:oncall"
}

// Run prints the configuration.
func (c terraform) Run(p program.Env) error {
	d, err := c.definition()
	if err != nil {
		return err
	}
	return p.Print(infra.Terraform(d))
}

type iam struct {
	connect.NoRedis

	Role    *string `placeholder:"ROLE" help:"${infra_role}"`
	Table   string  `env:"SLUICE_TABLE" default:"rate_limits" help:"Name of the table, or its ARN."`
	Region  string  `placeholder:"REGION" help:"AWS region of the table. The default is any."`
	Account string  `placeholder:"ACCOUNT" help:"AWS account of the table: 12 digits. The default is any."`
	connect.Namespaced

	Snapshots *string `placeholder:"URL" help:"For region-sync: s3://bucket/prefix, to which regions publish."`
}

// Help describes the roles.
func (iam) Help() string {
	return "acquire is for services: it charges buckets and cannot change the limits of a kind. admin " +
		"is for operators: all commands of sluice, and the writes of lim.Entities() and lim.Config. " +
		"aggregator reads the table's stream and writes usage. read-only is for commands that change " +
		"nothing. region-sync is for sluice region, or a Lambda function in its place. A transaction " +
		"needs no right besides those of its items.\n\n" +
		"With --namespace, the roles are for the items of that namespace: admin and read-only then run no " +
		"commands on the whole table, which are table and migrate. Without it, they are for the part that has no " +
		"name; only migrate, by Scan, reads the others. A stream has the records of all namespaces.\n\n" +
		"Example: sluice infra iam --role acquire --table rate_limits --region eu-west-1 --account " +
		"123456789012 > acquire.json"
}

// Run prints the policies.
func (c iam) Run(p program.Env) error {
	at := infra.Place{Table: c.Table, Region: c.Region, Account: c.Account, Namespace: c.Name()}
	err := c.Check()
	if err != nil {
		return err
	}
	if at.Snapshots, err = published(c.Snapshots); err != nil {
		return program.Usagef("--snapshots: %v", err)
	}
	text, err := infra.Policies(at)
	if c.Role != nil && err == nil { // an unset variable must not print all roles
		text, err = infra.Policy(infra.Role(*c.Role), at)
	}
	if err != nil {
		return program.Usagef("%v", err) // only arguments can be wrong
	}
	p.Say("%s", text)
	return nil
}

// FlagHelp returns the help texts that are too long for a tag.
func (Command) FlagHelp() kong.Vars {
	return kong.Vars{
		"infra_snapshots": "The place to which regions publish, s3://bucket/prefix: it adds a policy for role " +
			"region-sync. The bucket is not created.",
		"infra_role": "acquire, admin, aggregator, read-only or region-sync. Without a role, the output is an " +
			"object with a key for each role. It contains region-sync only with --snapshots.",
	}
}

// NoRedisReason implements an interface of package connect.
func (Command) NoRedisReason() string { return "Redis needs no table" }
