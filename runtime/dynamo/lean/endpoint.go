package lean

import (
	"context"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyauth "github.com/aws/smithy-go/auth"
	"github.com/aws/smithy-go/encoding/httpbinding"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// endpoint is where requests of an account go, and how they are signed there.
type endpoint struct {
	account, arn string // of the credentials, and of the table if it is named by its ARN

	url             url.URL
	header          string // the request's Host if that is not the URL's, without the port of the scheme
	host, path      string // as they are signed
	region, service string
}

// resolve returns the endpoint for a table, which it remembers. It returns nil if the SDK's client has to
// make the call, which mostly means that there is no endpoint.
func (c *Client) resolve(ctx context.Context, account, table string) *endpoint {
	if !strings.HasPrefix(table, "arn:") {
		table = "" // no other name matters
	}
	if e := c.endpoint.Load(); e != nil && e.account == account && e.arn == table {
		return e
	}
	o := &c.options
	dual := o.EndpointOptions.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled
	fips := o.EndpointOptions.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled
	params := dynamodb.EndpointParameters{
		Region:                &o.Region,
		UseDualStack:          &dual,
		UseFIPS:               &fips,
		Endpoint:              o.BaseEndpoint,
		AccountIdEndpointMode: aws.String(string(o.AccountIDEndpointMode)),
		ResourceArn:           &table,
	}
	switch o.AccountIDEndpointMode {
	case aws.AccountIDEndpointModeUnset, aws.AccountIDEndpointModePreferred, aws.AccountIDEndpointModeDisabled:
	default: // required, for which the SDK has an error of its own
		if account == "" || o.AccountIDEndpointMode != aws.AccountIDEndpointModeRequired {
			return nil
		}
	}
	if account != "" && o.AccountIDEndpointMode != aws.AccountIDEndpointModeDisabled {
		params.AccountId = &account
	}
	found, err := o.EndpointResolverV2.ResolveEndpoint(ctx, params)
	if err != nil || len(found.Headers) > 0 {
		return nil
	}
	e := &endpoint{account: account, arn: table, region: o.Region, service: "dynamodb"}
	options, _ := smithyauth.GetAuthOptions(&found.Properties)
	for _, option := range options {
		if name, ok := smithyhttp.GetSigV4SigningName(&option.SignerProperties); ok {
			e.service = name
		}
		if region, ok := smithyhttp.GetSigV4SigningRegion(&option.SignerProperties); ok {
			e.region = region
		}
		if once, _ := smithyhttp.GetDisableDoubleEncoding(&option.SignerProperties); once {
			return nil
		}
	}
	e.locate(&found.URI, o.EndpointOptions.DisableHTTPS)
	if smithyhttp.ValidateEndpointHost(e.header) != nil {
		return nil
	}
	c.endpoint.Store(e)
	return e
}

// locate sets the URL of e as the SDK does.
func (e *endpoint) locate(found *url.URL, plainHTTP bool) {
	e.url = url.URL{
		Scheme: found.Scheme, Host: found.Host,
		Path: smithyhttp.JoinPath(found.Path, "/"), RawPath: smithyhttp.JoinPath(found.RawPath, ""),
	}
	if plainHTTP {
		e.url.Scheme = "http"
	}
	e.host, e.path = e.url.Host, httpbinding.EscapePath(e.url.EscapedPath(), false)
	port := e.url.Port()
	if e.url.Scheme == "https" && port == "443" || e.url.Scheme == "http" && port == "80" {
		e.header = e.url.Hostname()
		e.host = e.header
	}
}
