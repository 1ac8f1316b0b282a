package cli

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/awsclient"
)

// connection is where the table is. AWS's own variables and profiles apply to what is not given.
type connection struct {
	Endpoint string `placeholder:"URL" help:"DynamoDB's endpoint, such as http://localhost:8000 for DynamoDB Local."`
	Region   string `placeholder:"REGION" help:"AWS region."`
	Table    string `env:"SLUICE_TABLE" default:"rate_limits" help:"Name of the table."`
}

// client makes a client. What is wrong with the flags or AWS's configuration is an error.
func (c connection) client(ctx context.Context) (*dynamodb.Client, error) {
	return awsclient.New(ctx, c.Endpoint, c.Region)
}
