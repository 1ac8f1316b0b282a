package infra

import (
	"errors"

	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	"github.com/sluice-go/sluice/internal/tool/infra"
)

// infraCommand prints what others set up AWS with. None of its commands calls AWS.
type Command struct {
	Cloudformation cloudFormation `cmd:"" help:"Print a CloudFormation template."`
	Terraform      terraform      `cmd:"" help:"Print a Terraform configuration."`
	Iam            iam            `cmd:"" name:"iam" help:"Print IAM policies: what each role may do with the table, and no more."`
}

// infraTable is the table that a template makes.
type tableFlags struct {
	connect.NoRedis

	Table string `env:"SLUICE_TABLE" default:"rate_limits" help:"Name of the table; the template has it as a default."`
	connect.Billing
	Snapshots *string `placeholder:"URL" help:"Where regions publish, s3://bucket/prefix: role region-sync has a policy then, too. The bucket is not made."`
}

// definition returns the table as production wants it: what it has beyond others costs next to nothing, and is missed once.
func (t tableFlags) definition() (s infra.Stack, err error) {
	if name, ok := operator.TableName(t.Table); !ok || name != t.Table {
		return s, program.Usagef(
			"table %q: want a name of 3 to 255 letters, digits, '_', '.' and '-': the template makes the table, which has no ARN yet", t.Table)
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

// published returns where regions publish, nothing where the flag is left out: one that is empty is a variable that is not set.
func published(flag *string) (string, error) {
	switch {
	case flag == nil:
		return "", nil
	case *flag == "":
		return "", errors.New("it is empty: pass s3://bucket/prefix, or leave the flag out")
	}
	return *flag, nil
}

// inTemplates says what both templates have.
const inTemplates = "It has the table that `sluice table create` makes, with point-in-time recovery and protection from deletion; " +
	"alarms on throttling and on failures of DynamoDB's, which go to an SNS topic that you name; and a policy for each role of " +
	"`sluice infra iam`, to attach to the roles of your services. Once it is applied, `sluice table check` finds nothing wrong.\n\n"

type cloudFormation struct{ tableFlags }

// Help says what the template has, and how to use it.
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

// Help says what the configuration has, and how to use it.
func (terraform) Help() string {
	return inTemplates + "It names no provider's region and no backend: use it as a module, or beside your own files.\n\n" +
		"Example: sluice infra terraform --table rate_limits > sluice.tf && terraform apply -var alarm_topic_arn=arn:aws:sns:eu-west-1:123456789012:oncall"
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

	Role    *string `placeholder:"ROLE" help:"acquire, admin, aggregator, read-only or region-sync. Without it all come, as one object whose keys are the roles; region-sync with --snapshots alone."`
	Table   string  `env:"SLUICE_TABLE" default:"rate_limits" help:"Name of the table, or its ARN."`
	Region  string  `placeholder:"REGION" help:"AWS region of the table. The default is any."`
	Account string  `placeholder:"ACCOUNT" help:"AWS account of the table: 12 digits. The default is any."`

	Snapshots *string `placeholder:"URL" help:"For region-sync: where regions publish, s3://bucket/prefix."`
}

// Help says who the roles are.
func (iam) Help() string {
	return "acquire is for services: it charges buckets, and cannot change the limits of a kind. admin is for operators: all commands " +
		"of sluice, and what lim.Entities() and lim.Config write. aggregator reads the table's stream and writes usage. read-only " +
		"is for commands that change nothing. region-sync is for sluice region, or a Lambda function in its place. A transaction needs no right of its own but its items'.\n\n" +
		"Example: sluice infra iam --role acquire --table rate_limits --region eu-west-1 --account 123456789012 > acquire.json"
}

// Run prints the policies.
func (c iam) Run(p program.Env) error {
	at := infra.Place{Table: c.Table, Region: c.Region, Account: c.Account}
	var err error
	if at.Snapshots, err = published(c.Snapshots); err != nil {
		return program.Usagef("--snapshots: %v", err)
	}
	text, err := infra.Policies(at)
	if c.Role != nil && err == nil { // a variable that is not set must not give all roles
		text, err = infra.Policy(infra.Role(*c.Role), at)
	}
	if err != nil {
		return program.Usagef("%v", err) // there is nothing but arguments that can be wrong
	}
	p.Say("%s", text)
	return nil
}
