package cli

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo"
)

type tableCommand struct {
	Create tableCreate `cmd:"" help:"Create the table, or complete one whose creation was interrupted."`
	Check  tableCheck  `cmd:"" help:"Compare the table with what sluice needs."`
}

type tableCreate struct{ connection }

// Run creates the table and checks that it is what is needed: one of the same name may have been there.
func (c tableCreate) Run(ctx context.Context, p Program) error {
	client, err := c.client(ctx)
	if err != nil {
		return err
	}
	created, err := dynamo.CreateTable(ctx, announcing{client, p, p.Now()}, c.Table)
	if err != nil {
		return explain(client, err)
	}
	if err := dynamo.CheckTable(ctx, client, c.Table); err != nil {
		return explain(client, err)
	}
	if created {
		p.say("created table %s\n", c.Table)
	} else {
		p.say("table %s was there already\n", c.Table)
	}
	p.describe(c.Table)
	return nil
}

// announcing says what is done and what is waited for: how CreateTable finds that out is its own affair.
type announcing struct {
	*dynamodb.Client
	program Program
	began   time.Time
}

// CreateTable is the client's.
func (a announcing) CreateTable(
	ctx context.Context, in *dynamodb.CreateTableInput, opts ...func(*dynamodb.Options),
) (*dynamodb.CreateTableOutput, error) {
	a.program.note("creating table %s in %s\n", aws.ToString(in.TableName), place(a.Client))
	return a.Client.CreateTable(ctx, in, opts...)
}

// DescribeTable is the client's. It is asked again and again while a table is being created.
func (a announcing) DescribeTable(
	ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options),
) (*dynamodb.DescribeTableOutput, error) {
	out, err := a.Client.DescribeTable(ctx, in, opts...)
	if err == nil && out.Table != nil && out.Table.TableStatus == types.TableStatusCreating {
		elapsed := a.program.Now().Sub(a.began).Round(time.Second)
		a.program.note("waiting for table %s (%v)\n", aws.ToString(in.TableName), elapsed)
	}
	return out, err
}

type tableCheck struct{ connection }

// Run prints what is right with the table, or returns all that is wrong.
func (c tableCheck) Run(ctx context.Context, p Program) error {
	client, err := c.client(ctx)
	if err != nil {
		return err
	}
	if err := dynamo.CheckTable(ctx, client, c.Table); err != nil {
		return explain(client, err)
	}
	p.say("table %s in %s\n", c.Table, place(client))
	p.describe(c.Table)
	return nil
}

// describe prints what a table that passed CheckTable has.
func (p Program) describe(table string) {
	layout := dynamo.Table(table)
	p.say("  ok  key %s, %s\n", aws.ToString(layout.KeySchema[0].AttributeName), aws.ToString(layout.KeySchema[1].AttributeName))
	for _, index := range layout.GlobalSecondaryIndexes {
		p.say("  ok  index %s on %s, %s projects %s\n", aws.ToString(index.IndexName),
			aws.ToString(index.KeySchema[0].AttributeName), aws.ToString(index.KeySchema[1].AttributeName), index.Projection.ProjectionType)
	}
	p.say("  ok  TTL on ttl\n")
}

// place says where client's tables are.
func place(client *dynamodb.Client) string {
	o := client.Options()
	if o.BaseEndpoint != nil {
		return *o.BaseEndpoint
	}
	return o.Region
}
