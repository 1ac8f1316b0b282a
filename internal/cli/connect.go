package cli

import (
	"context"
	"fmt"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/awsclient"
)

// connection is where the table is. AWS's own variables and profiles apply to what is not given.
type connection struct {
	Endpoint string `placeholder:"URL" help:"DynamoDB's endpoint, such as http://localhost:8000 for DynamoDB Local."`
	Region   string `placeholder:"REGION" help:"AWS region."`
	Table    string `env:"SLUICE_TABLE" default:"rate_limits" help:"Name of the table, or its ARN."`
}

// What DynamoDB takes for a table: its name, or, but for creating it, its ARN.
var (
	tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)
	tableForm = regexp.MustCompile(`^(arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]+:table/)?[a-zA-Z0-9_.-]{3,255}$`)
)

// client makes a client. What is wrong with the flags or AWS's configuration is an error.
func (c connection) client(ctx context.Context) (*dynamodb.Client, error) {
	if !tableForm.MatchString(c.Table) {
		return nil, usageError{fmt.Sprintf("table %q: want 3 to 255 letters, digits, '_', '.' and '-', or an ARN", c.Table)}
	}
	return awsclient.New(ctx, c.Endpoint, c.Region)
}
