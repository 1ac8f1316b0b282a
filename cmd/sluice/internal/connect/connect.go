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

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluice-go/sluice/internal/tool/awsclient"
)

// connection is where the table is. AWS's own variables and profiles apply to what is not given.
type Connection struct {
	Endpoint string `placeholder:"URL" help:"DynamoDB's endpoint, such as http://127.0.0.1:8000 for sluice dev."`
	Region   string `placeholder:"REGION" help:"AWS region."`
	Table    string `env:"SLUICE_TABLE" default:"rate_limits" help:"Name of the table, or its ARN."`
}

// AfterApply refuses what can be no place, and one that is given and empty: a variable that is not set must not lead a command to
// another table.
func (c Connection) AfterApply(command *kong.Context) error {
	for _, name := range []string{"endpoint", "region"} {
		if flag := Given(command, name); flag != nil && flag.Target.String() == "" {
			return fmt.Errorf("--%s is empty: pass %s, or leave the flag out for what AWS's configuration says", name, flag.PlaceHolder)
		}
	}
	if c.Region != "" && !regionName.MatchString(c.Region) {
		return fmt.Errorf("--region %q: want a region of AWS, such as eu-west-1", c.Region)
	}
	return awsclient.CheckEndpoint(c.Endpoint)
}

// regionName is what a region can be called, as a part of a host's name. Emulators take any.
var regionName = regexp.MustCompile(`^[A-Za-z0-9-]{1,63}$`)

// given returns the first flag of the command line that is called so, nil for none. What a variable sets is not given.
func Given(command *kong.Context, names ...string) *kong.Flag {
	for _, at := range command.Path {
		if at.Flag != nil && slices.Contains(names, at.Flag.Name) {
			return at.Flag
		}
	}
	return nil
}

// client makes a client. What is wrong with the flags or AWS's configuration is an error.
func (c Connection) Client(ctx context.Context) (*dynamodb.Client, error) {
	if err := c.checkTable(); err != nil {
		return nil, err
	}
	return awsclient.New(ctx, c.Endpoint, c.Region)
}

// withStreams is client with a client of the tables' streams.
func (c Connection) WithStreams(ctx context.Context) (*dynamodb.Client, *dynamodbstreams.Client, error) {
	if err := c.checkTable(); err != nil {
		return nil, nil, err
	}
	return awsclient.WithStreams(ctx, c.Endpoint, c.Region)
}

// checkTable refuses what cannot be a table's name.
func (c Connection) checkTable() error {
	if _, ok := operator.TableName(c.Table); !ok {
		return program.Usagef("table %q: want 3 to 255 letters, digits, '_', '.' and '-', or an ARN", c.Table)
	}
	return nil
}

// nowhere reports that err is for want of a region, or of the table in it.
func Nowhere(err error) bool {
	_, missing := errors.AsType[*types.ResourceNotFoundException](err)
	return missing || errors.Is(err, awsclient.ErrNoRegion)
}

// explain replaces an error that says at length that no connection came about by one that says what to do.
func Explain(client *dynamodb.Client, err error) error {
	return explainAt(client.Options().BaseEndpoint, Place(client), "AWS_ENDPOINT_URL_DYNAMODB", err)
}

// explainStreams is explain for a call of the streams' client, which may have an endpoint of its own.
func ExplainStreams(client *dynamodb.Client, streams *dynamodbstreams.Client, err error) error {
	base := streams.Options().BaseEndpoint
	if base == nil || *base == Place(client) {
		return Explain(client, err)
	}
	return explainAt(base, *base, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS", err)
}

// explainAt is explain for a place that is called so; base is nil for AWS's own, variable has another endpoint.
func explainAt(base *string, place, variable string, err error) error {
	dial, ok := errors.AsType[*net.OpError](err)
	switch {
	case !ok || dial.Op != "dial" || errors.Is(err, context.Canceled):
		return err
	case strings.Contains(err.Error(), "get credentials: "): // nobody answered elsewhere
		return err
	}
	why := Reason(dial)
	if base == nil {
		return fmt.Errorf("nothing answers at DynamoDB in %s%s: check the network and the region; "+
			"to try sluice without AWS, run `sluice dev` and pass --endpoint", place, why)
	}
	return fmt.Errorf("nothing answers at %s%s: is `sluice dev` running? (--endpoint, %s)", place, why, variable)
}

// reason says why nobody was reached, where that is not that nobody listens.
func Reason(dial *net.OpError) string {
	if errors.Is(dial, syscall.ECONNREFUSED) {
		return ""
	}
	return fmt.Sprintf(" (%v)", dial.Err)
}

// place says where client's tables are.
func Place(client *dynamodb.Client) string {
	o := client.Options()
	if o.BaseEndpoint != nil {
		return *o.BaseEndpoint
	}
	return o.Region
}
