package table

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type Command struct {
	Create createCommand `cmd:"" help:"Create the table, or complete one whose creation was interrupted."`
	Check  checkCommand  `cmd:"" help:"Compare the table with what sluice needs."`
}

type createCommand struct {
	connect.TableOnly
	connect.Billing
	Protected   bool `help:"Protect the table from deletion, until that is switched off."`
	Recoverable bool `help:"Switch point-in-time recovery on: what a mistake deleted can be had back for 35 days."`
}

// Help says what becomes of a table that is there.
func (createCommand) Help() string {
	return "A table that is there is completed: its TTL, its version item and, if asked for, its point-in-time recovery. " +
		"Its keys, indexes and billing are left as they are, and are an error where they are not as they should be.\n\n" +
		"`sluice infra cloudformation` and `sluice infra terraform` describe the same table, with alarms and policies."
}

// Run creates the table and checks that it is what is needed: one of the same name may have been there.
func (c createCommand) Run(ctx context.Context, p program.Env) error {
	definition, err := c.Definition(c.Table)
	if err != nil {
		return err
	}
	definition.Protected, definition.Recoverable = c.Protected, c.Recoverable
	client, err := c.Client(ctx)
	if err != nil {
		return err
	}
	created, err := definition.CreateTable(ctx, announcing{client, p, p.Now()})
	if err != nil {
		return connect.Explain(client, err)
	}
	notes, err := operator.CheckTable(ctx, client, c.Table)
	if err != nil {
		return connect.Explain(client, err)
	}
	if created {
		p.Say("created table %s\n", c.Table)
	} else {
		p.Say("table %s was there already\n", c.Table)
	}
	describe(p, c.Table, notes)
	return nil
}

// announcing says what is done and what is waited for: how CreateTable finds that out is its own affair.
type announcing struct {
	*dynamodb.Client
	program program.Env
	began   time.Time
}

// CreateTable is the client's.
func (a announcing) CreateTable(
	ctx context.Context, in *dynamodb.CreateTableInput, opts ...func(*dynamodb.Options),
) (*dynamodb.CreateTableOutput, error) {
	a.program.Note("creating table %s in %s\n", aws.ToString(in.TableName), connect.Place(a.Client))
	return a.Client.CreateTable(ctx, in, opts...)
}

// DescribeTable is the client's. It is asked again and again while a table is being created.
func (a announcing) DescribeTable(
	ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options),
) (*dynamodb.DescribeTableOutput, error) {
	out, err := a.Client.DescribeTable(ctx, in, opts...)
	if err == nil && out.Table != nil && out.Table.TableStatus == types.TableStatusCreating {
		elapsed := a.program.Now().Sub(a.began).Round(time.Second)
		a.program.Note("waiting for table %s (%v)\n", aws.ToString(in.TableName), elapsed)
	}
	return out, err
}

// UpdateContinuousBackups is the client's.
func (a announcing) UpdateContinuousBackups(
	ctx context.Context, in *dynamodb.UpdateContinuousBackupsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateContinuousBackupsOutput, error) {
	a.program.Note("switching on point-in-time recovery, for which DynamoDB may want some minutes after it made a table\n")
	return a.Client.UpdateContinuousBackups(ctx, in, opts...)
}

type checkCommand struct{ connect.TableOnly }

// Help says what is compared.
func (checkCommand) Help() string {
	return "What is wrong is an error, all of it at once, each with its cure: other keys, an index that is missing, incomplete or " +
		"projects more than KEYS_ONLY (every acquire costs twice then), no stream of both images, no TTL on ttl, a layout newer " +
		"than this program. A service's own Check leaves out what acquires do not need: the stream, and whether indexes are " +
		"complete. What is worth knowing is a note: billing, extra indexes, replicas, and what would save the table from a mistake."
}

// Run prints what is right with the table and what is worth knowing, or returns all that is wrong.
func (c checkCommand) Run(ctx context.Context, p program.Env) error {
	client, err := c.Client(ctx)
	if err != nil {
		return err
	}
	notes, err := operator.CheckTable(ctx, client, c.Table)
	if err != nil {
		return connect.Explain(client, err)
	}
	p.Say("table %s in %s\n", c.Table, connect.Place(client))
	describe(p, c.Table, notes)
	return nil
}

// describeTable prints what a table that passed CheckTable has, and what CheckTable noted of it.
func describe(p program.Env, table string, notes []operator.Note) {
	definition := operator.Definition{Table: table}
	layout := definition.Create()
	p.Say("  ok  key %s, %s\n", aws.ToString(layout.KeySchema[0].AttributeName), aws.ToString(layout.KeySchema[1].AttributeName))
	for _, index := range layout.GlobalSecondaryIndexes {
		p.Say("  ok  index %s on %s, %s projects %s\n", aws.ToString(index.IndexName),
			aws.ToString(index.KeySchema[0].AttributeName), aws.ToString(index.KeySchema[1].AttributeName), index.Projection.ProjectionType)
	}
	p.Say("  ok  stream of %s\n", layout.StreamSpecification.StreamViewType)
	p.Say("  ok  TTL on %s\n", aws.ToString(definition.TimeToLive().TimeToLiveSpecification.AttributeName))
	for _, note := range notes {
		text := note.What
		if note.Do != "" {
			text += "; " + note.Do
		}
		p.Say("note  %s\n", text)
	}
}
