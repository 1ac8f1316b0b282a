// Package connect has the flags that name a DynamoDB table, makes clients for it, and explains why a
// connection fails.
package connect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluice-go/sluice/internal/tool/awsclient"
	"github.com/sluice-go/sluice/internal/tool/secrets"
	"github.com/sluice-go/sluice/runtime/region/s3store"
)

// Connection are the flags that name a table. Without them, AWS's own variables and profiles decide.
type Connection struct {
	Endpoint string `placeholder:"URL" help:"Endpoint of DynamoDB, such as http://127.0.0.1:8000."`
	Region   string `placeholder:"REGION" help:"AWS region of the table."`
	Table    string `env:"SLUICE_TABLE" default:"rate_limits" help:"Name of the table, or its ARN."`
}

// AfterApply returns an error for an impossible endpoint or region, and for a flag with an empty value. An
// unset shell variable must not lead a command to another table.
func (c Connection) AfterApply(command *kong.Context) error {
	for _, name := range []string{"endpoint", "region"} {
		if flag := Given(command, name); flag != nil && flag.Target.String() == "" {
			return fmt.Errorf("--%s is empty: pass %s, or leave the flag out to use AWS's configuration", name,
				flag.PlaceHolder)
		}
	}
	if c.Region != "" && !regionName.MatchString(c.Region) {
		return fmt.Errorf("--region %q is not the name of an AWS region: pass one, such as eu-west-1", c.Region)
	}
	return awsclient.CheckEndpoint(c.Endpoint)
}

// regionName matches what can be a region: a label of a host name. Emulators accept any.
var regionName = regexp.MustCompile(`^[A-Za-z0-9-]{1,63}$`)

// Given returns the first of these flags on the command line, or nil. A flag set by an environment variable
// is not given.
func Given(command *kong.Context, names ...string) *kong.Flag {
	for _, at := range command.Path {
		if at.Flag != nil && slices.Contains(names, at.Flag.Name) {
			return at.Flag
		}
	}
	return nil
}

// Client returns a client of DynamoDB.
func (c Connection) Client(ctx context.Context) (*dynamodb.Client, error) {
	if err := c.checkTable(); err != nil {
		return nil, err
	}
	client, err := awsclient.New(ctx, c.Endpoint, c.Region, bounded())
	if err != nil {
		return nil, err
	}
	client, _ = withTimeouts(client)
	return client, nil
}

// WithStreams returns clients of DynamoDB and of its streams.
func (c Connection) WithStreams(ctx context.Context) (*dynamodb.Client, *dynamodbstreams.Client, error) {
	if err := c.checkTable(); err != nil {
		return nil, nil, err
	}
	client, streams, err := awsclient.WithStreams(ctx, c.Endpoint, c.Region, bounded())
	if err != nil {
		return nil, nil, err
	}
	client, streams = streamsWithTimeouts(client, streams)
	return client, streams, nil
}

// checkTable returns a usage error if Table is neither a name nor an ARN.
func (c Connection) checkTable() error {
	if _, ok := operator.TableName(c.Table); !ok {
		return program.Usagef("%s", operator.WrongTable(c.Table))
	}
	return nil
}

// Nowhere reports whether err is a missing region or a missing table.
func Nowhere(err error) bool {
	_, missing := errors.AsType[*types.ResourceNotFoundException](err)
	return missing || errors.Is(err, awsclient.ErrNoRegion)
}

// Explain replaces the long error of a failed connection by one that says what to do. It returns other
// errors unchanged, except for S3's: see ExplainS3.
func Explain(client *dynamodb.Client, err error) error {
	if _, ofS3 := errors.AsType[*s3store.Error](err); ofS3 {
		return ExplainS3(err)
	}
	return explainAt(client.Options().BaseEndpoint, Place(client), "AWS_ENDPOINT_URL_DYNAMODB", err)
}

// ExplainStreams is Explain for a call of the streams' client, which may have an endpoint of its own.
func ExplainStreams(client *dynamodb.Client, streams *dynamodbstreams.Client, err error) error {
	base := streams.Options().BaseEndpoint
	if base == nil || secrets.URL(*base) == Place(client) {
		return Explain(client, err)
	}
	return explainAt(base, secrets.URL(*base), "AWS_ENDPOINT_URL_DYNAMODB_STREAMS", err)
}

// explainAt is Explain for one endpoint. base is nil for AWS's own; variable is the environment variable
// that sets another.
func explainAt(base *string, place, variable string, err error) error {
	why, ok := unanswered(err)
	switch {
	case !ok:
		return err
	case errors.Is(err, program.ErrSilent):
		return silentAt(base, place, variable, program.ErrSilent.Error())
	case base == nil:
		return fmt.Errorf("DynamoDB does not answer in %s%s: check the network and the region; "+
			"to try sluice without AWS, run `sluice dev` and pass --endpoint", place, why)
	}
	return fmt.Errorf("%s does not answer%s: start `sluice dev`, or correct the endpoint (--endpoint, %s)",
		place, why, variable)
}

// ofCredentials reports whether err is that of a call that gets credentials, of whose endpoint an error says
// nothing about the service that was to be called.
func ofCredentials(err error) bool { return strings.Contains(err.Error(), "get credentials: ") }

// Reason says why a host could not be reached, unless it refused the connection.
func Reason(dial *net.OpError) string {
	if errors.Is(dial, syscall.ECONNREFUSED) {
		return ""
	}
	return fmt.Sprintf(" (%v)", dial.Err)
}

// Place returns the endpoint of a client, without a user and a password, or its region.
func Place(client *dynamodb.Client) string {
	o := client.Options()
	if o.BaseEndpoint != nil {
		return secrets.URL(*o.BaseEndpoint)
	}
	return o.Region
}

// FlagHelp has the help texts that are too long for a tag.
var FlagHelp = kong.Vars{
	"namespace": "Work in this namespace of the table, as dynamo.Namespace does. The default is the part that " +
		"has no name.",
	"read_units": "Provision N read units for the table and for each of its indexes. The default is on demand.",
}
