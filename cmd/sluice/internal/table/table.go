// Package table is `sluice table`: it creates and checks the DynamoDB table.
package table

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Command is `sluice table`.
type Command struct {
	Create createCommand `cmd:"" help:"Create the table, or complete an existing one."`
	Check  checkCommand  `cmd:"" help:"Compare the table with what sluice needs."`
}

type createCommand struct {
	connect.TableOnly
	connect.Billing
	Protected   bool `help:"Protect the table from deletion."`
	Recoverable bool `help:"Switch on point-in-time recovery, for 35 days."`
}

// Help says what becomes of an existing table.
func (createCommand) Help() string {
	return "An existing table is completed: its TTL, its version item and, with --recoverable, its " +
		"point-in-time recovery. Wrong keys, indexes or billing are reported, not changed.\n\n" +
		"`sluice infra cloudformation` and `sluice infra terraform` describe the same table, with " +
		"alarms and policies."
}

// Run creates the table and checks it, since a table of this name may have existed before.
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
		p.Say("table %s exists already\n", c.Table)
	}
	describe(p, c.Table, notes)
	return nil
}

// announcing reports on stderr what CreateTable does and waits for. It learns this from the calls.
type announcing struct {
	*dynamodb.Client
	program program.Env
	began   time.Time
}

// CreateTable calls the client's method.
func (a announcing) CreateTable(
	ctx context.Context, in *dynamodb.CreateTableInput, opts ...func(*dynamodb.Options),
) (*dynamodb.CreateTableOutput, error) {
	a.program.Note("creating table %s in %s\n", aws.ToString(in.TableName), connect.Place(a.Client))
	return a.Client.CreateTable(ctx, in, opts...)
}

// DescribeTable calls the client's method. CreateTable repeats the call while the table is being created.
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

// UpdateContinuousBackups calls the client's method.
func (a announcing) UpdateContinuousBackups(
	ctx context.Context, in *dynamodb.UpdateContinuousBackupsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateContinuousBackupsOutput, error) {
	a.program.Note("switching on point-in-time recovery, which can take minutes after a table was created\n")
	return a.Client.UpdateContinuousBackups(ctx, in, opts...)
}

type checkCommand struct {
	connect.TableOnly

	JSON bool `name:"json" help:"Print the notes as JSON."`
}

// Help says what is compared.
func (checkCommand) Help() string {
	return `Reports everything that is wrong at once, with what to do:
  - keys other than PK and SK
  - an index that is missing, incomplete, or projects more than KEYS_ONLY: every acquire then costs twice
  - no stream of both images, or no TTL on ttl
  - a layout newer than this program
Check of a service leaves out what acquires do not need: the stream, and whether indexes are complete.
Notes are about billing, other indexes, replicas, and protection from mistakes.`
}

// Run prints the table's parts and notes about it, or returns everything that is wrong.
func (c checkCommand) Run(ctx context.Context, p program.Env) error {
	client, err := c.Client(ctx)
	if err != nil {
		return err
	}
	notes, err := operator.CheckTable(ctx, client, c.Table)
	if err != nil {
		return connect.Explain(client, err)
	}
	if c.JSON {
		return describeJSON(p, c.Table, connect.Place(client), notes)
	}
	p.Say("table %s in %s\n", c.Table, connect.Place(client))
	describe(p, c.Table, notes)
	return nil
}

// describe prints the parts of a table that passed CheckTable, and the notes about it.
func describe(p program.Env, table string, notes []operator.Note) {
	definition := operator.Definition{Table: table}
	layout := definition.Create()
	p.Say("  ok  key %s, %s\n", aws.ToString(layout.KeySchema[0].AttributeName),
		aws.ToString(layout.KeySchema[1].AttributeName))
	for _, index := range layout.GlobalSecondaryIndexes {
		p.Say("  ok  index %s on %s, %s projects %s\n", aws.ToString(index.IndexName),
			aws.ToString(index.KeySchema[0].AttributeName), aws.ToString(index.KeySchema[1].AttributeName),
			index.Projection.ProjectionType)
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

// describeJSON prints the notes about a table that passed CheckTable as one object.
func describeJSON(p program.Env, table, place string, notes []operator.Note) error {
	type note struct {
		What string `json:"what"`
		Do   string `json:"do,omitempty"`
	}
	out := struct {
		Table string `json:"table"`
		Place string `json:"place"`
		Notes []note `json:"notes"`
	}{table, place, []note{}}
	for _, n := range notes {
		out.Notes = append(out.Notes, note(n))
	}
	return p.JSON(out)
}

// NoRedisReason implements an interface of package connect.
func (Command) NoRedisReason() string { return "Redis needs no table" }
