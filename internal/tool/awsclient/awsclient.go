// Package awsclient makes the clients of AWS that our programs have, from what AWS's own tools read too:
// environment variables, profiles, roles.
package awsclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/sluice-go/sluice/internal/tool/secrets"
	"github.com/sluice-go/sluice/runtime/dynamo/lean"
)

// ErrNoRegion says that neither a flag nor AWS's configuration has a region.
var ErrNoRegion = errors.New("no AWS region: pass --region, set AWS_REGION, or choose a profile that has " +
	"one; without AWS, run `sluice dev` and set what it prints")

// Option changes how the configuration is read, or the calls of all clients made from it: those that get
// credentials, too.
type Option = func(*config.LoadOptions) error

// New returns a client. A non-empty endpoint or region beats the environment's. An endpoint on this machine
// is an emulator that takes any region and credentials, so that where none are configured, made-up ones will
// do.
func New(ctx context.Context, endpoint, region string, options ...Option) (*dynamodb.Client, error) {
	cfg, err := configure(ctx, endpoint, region, options)
	if err != nil {
		return nil, err
	}
	client := ofTables(cfg, endpoint)
	return client, checkBase(client.Options().BaseEndpoint, ofDynamoDB)
}

// Lean is New for a client that makes the calls of limiting with little CPU.
func Lean(ctx context.Context, endpoint, region string, options ...Option) (*lean.Client, error) {
	cfg, err := configure(ctx, endpoint, region, options)
	if err != nil {
		return nil, err
	}
	if err := checkBase(ofTables(cfg, endpoint).Options().BaseEndpoint, ofDynamoDB); err != nil {
		return nil, err
	}
	return lean.New(cfg, at(endpoint)), nil
}

// WithStreams is New with a client of the tables' streams. AWS has them at another endpoint; what else
// answers as DynamoDB has them at its own.
func WithStreams(
	ctx context.Context, endpoint, region string, options ...Option,
) (*dynamodb.Client, *dynamodbstreams.Client, error) {
	cfg, err := configure(ctx, endpoint, region, options)
	if err != nil {
		return nil, nil, err
	}
	tables := ofTables(cfg, endpoint)
	if err := checkBase(tables.Options().BaseEndpoint, ofDynamoDB); err != nil {
		return nil, nil, err
	}
	streams := dynamodbstreams.NewFromConfig(cfg, func(o *dynamodbstreams.Options) {
		base := tables.Options().BaseEndpoint
		// the flag beats what the environment says of streams
		if base != nil && !ofAWS(*base) && (endpoint != "" || o.BaseEndpoint == nil) {
			o.BaseEndpoint = base
		}
	})
	return tables, streams, checkBase(streams.Options().BaseEndpoint, ofDynamoDB+"_STREAMS")
}

// S3 returns a client of S3. A non-empty region beats the environment's. At AWS_ENDPOINT_URL_S3 it addresses
// buckets by path, as services other than AWS expect.
func S3(ctx context.Context, region string, options ...Option) (*s3.Client, error) {
	cfg, err := configure(ctx, "", region, options)
	if err != nil {
		return nil, err
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = o.BaseEndpoint != nil && !ofAWS(*o.BaseEndpoint)
	})
	return client, checkBase(client.Options().BaseEndpoint, "AWS_ENDPOINT_URL_S3")
}

// Region returns the region that the environment has, and makes up none: it is empty where nothing says it.
func Region(ctx context.Context) (string, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return "", fmt.Errorf("read the AWS configuration: %w", err)
	}
	return cfg.Region, nil
}

func ofTables(cfg aws.Config, endpoint string) *dynamodb.Client {
	return dynamodb.NewFromConfig(cfg, at(endpoint))
}

// at has a client use an endpoint, unless that is empty.
func at(endpoint string) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
	}
}

// ofAWS reports that a URL is one of AWS's own, of a network of the caller's too.
func ofAWS(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil &&
		(strings.Contains(u.Hostname(), ".amazonaws.") || strings.HasSuffix(u.Hostname(), ".api.aws"))
}

// configure reads what AWS's tools read.
func configure(ctx context.Context, endpoint, region string, options []Option) (cfg aws.Config, err error) {
	if err := CheckEndpoint(endpoint); err != nil {
		return cfg, err
	}
	options = append(slices.Clone(options), config.WithRegion(region),
		// all it says of DynamoDB Local is that checksums of empty bodies do not match
		config.WithLogger(logging.Nop{}))
	local := onThisMachine(endpoint)
	if local {
		// it only costs time here
		options = append(options, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	if cfg, err = config.LoadDefaultConfig(ctx, options...); err != nil {
		return cfg, fmt.Errorf("read the AWS configuration: %w", err)
	}
	if local {
		if cfg.Region == "" {
			cfg.Region = "us-east-1"
		}
		if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
			cfg.Credentials = credentials.NewStaticCredentialsProvider("local", "local", "")
		}
	}
	if cfg.Region == "" {
		return cfg, ErrNoRegion
	}
	return cfg, nil
}

// CheckEndpoint refuses what is no http or https URL. An empty endpoint is none, and is fine.
func CheckEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("endpoint %q is not a URL: pass one such as http://localhost:8000", secrets.URL(endpoint))
	}
	return nil
}

// ofDynamoDB is the variable that has the endpoint of DynamoDB.
const ofDynamoDB = "AWS_ENDPOINT_URL_DYNAMODB"

// checkBase is CheckEndpoint for the endpoint of a client, nil for AWS's own. The SDK takes it from variable,
// from AWS_ENDPOINT_URL or from a profile, and tries one that is no URL again and again.
func checkBase(base *string, variable string) error {
	if err := CheckEndpoint(aws.ToString(base)); err != nil {
		return fmt.Errorf("read the AWS configuration (%s, AWS_ENDPOINT_URL, the profile): %w", variable, err)
	}
	return nil
}

// onThisMachine reports that endpoint is an address of this machine.
func onThisMachine(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}
