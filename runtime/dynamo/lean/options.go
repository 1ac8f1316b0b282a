package lean

import (
	"context"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// idle is how many connections stay open for the next call. A Limiter has 64 requests under way, and a
// connection that is closed because too many are idle costs the next call a handshake.
const idle = 256

// tune tunes the SDK's HTTP client. A bound that somebody has changed stays.
func tune(o *dynamodb.Options) {
	client, ok := o.HTTPClient.(*awshttp.BuildableClient)
	if !ok {
		return
	}
	o.HTTPClient = client.WithTransportOptions(func(t *http.Transport) {
		if t.MaxIdleConnsPerHost == awshttp.DefaultHTTPTransportMaxIdleConnsPerHost {
			t.MaxIdleConnsPerHost = idle
		}
		if t.MaxIdleConns == awshttp.DefaultHTTPTransportMaxIdleConns {
			t.MaxIdleConns = idle
		}
		t.ForceAttemptHTTP2 = false
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(true)
		if t.TLSClientConfig != nil { // a copy; one that another client uses may offer HTTP/2
			t.TLSClientConfig.NextProtos = []string{"http/1.1"}
		}
	})
}

// honoured are the options of a client that this package honours, or that do not matter to its calls.
var honoured = []string{
	"AccountIDEndpointMode", "AppID", "BaseEndpoint", "Credentials", "DefaultsMode",
	"DisableClockSkewCorrection", "DisableValidateResponseChecksum", "EndpointDiscovery", "EndpointOptions",
	"HTTPClient", "IdempotencyTokenProvider", "Logger", "Region", "Retryer", "RetryMaxAttempts", "RetryMode",
	"RuntimeEnvironment", "resolvedDefaultsMode",
}

// unusualOption returns an option that has the SDK make all calls, "" if there is none. An option that this
// package does not know has to be what a client without configuration has.
func unusualOption(o *dynamodb.Options) string {
	switch {
	case o.Credentials == nil:
		return "option Credentials" // requests are not signed
	case o.EndpointDiscovery.EnableEndpointDiscovery == aws.EndpointDiscoveryEnabled:
		return "option EndpointDiscovery"
	case strings.Contains(o.Region, "fips"), !isRegion(o.Region):
		return "option Region" // the SDK takes the name of an endpoint for one
	}
	plain := dynamodb.New(dynamodb.Options{}).Options()
	v, w := reflect.ValueOf(o).Elem(), reflect.ValueOf(&plain).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if !slices.Contains(honoured, name) && !alike(v.Field(i), w.Field(i)) {
			return "option " + name
		}
	}
	return ""
}

// isRegion reports that a name can be a part of a host's name.
func isRegion(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if !smithyhttp.ValidHostLabel(label) {
			return false
		}
	}
	return true
}

// alike reports that two options do the same: interfaces hold the same type, lists are of the same length.
func alike(v, w reflect.Value) bool {
	switch v.Kind() {
	case reflect.Interface:
		return v.IsNil() == w.IsNil() && (v.IsNil() || v.Elem().Type() == w.Elem().Type())
	case reflect.Slice:
		if v.Len() != w.Len() {
			return false
		}
		for i := range v.Len() {
			if !alike(v.Index(i), w.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		for i := range v.NumField() {
			if !alike(v.Field(i), w.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Func:
		return v.IsNil() && w.IsNil()
	default:
		return v.Equal(w)
	}
}

// changed reports that the options of a call, which are the client's with changes, change more than retries
// and the logger: these calls have neither. It compares the memory of both, so that a change of an option
// shows even if this package does not know the option. An option that is set to what it was may count as
// changed.
func changed(client, call *dynamodb.Options) bool {
	call.Retryer, call.RetryMaxAttempts = client.Retryer, client.RetryMaxAttempts
	call.RetryMode, call.Logger = client.RetryMode, client.Logger
	return *memory(client) != *memory(call)
}

// memory returns the bytes of options.
func memory(o *dynamodb.Options) *optionBytes { return (*optionBytes)(unsafe.Pointer(o)) }

type optionBytes [unsafe.Sizeof(dynamodb.Options{})]byte

// userAgent returns the User-Agent of the SDK's client, with a mark of this package.
func userAgent(o *dynamodb.Options) string {
	agent := awsmiddleware.NewRequestUserAgent()
	agent.AddSDKAgentKey(awsmiddleware.APIMetadata, "dynamodb")
	if o.AppID != "" {
		agent.AddSDKAgentKey(awsmiddleware.ApplicationIdentifier, o.AppID)
	}
	if provider, ok := o.Credentials.(aws.CredentialProviderSource); ok {
		for _, source := range provider.ProviderSources() {
			agent.AddCredentialsSource(source)
		}
	}
	agent.AddUserAgentKey("sluice-lean")
	r := &smithyhttp.Request{Request: &http.Request{Header: http.Header{}}}
	in := middleware.BuildInput{Request: r}
	_, _, _ = agent.HandleBuild(context.Background(), in, built) // fails for no such r
	return r.Header.Get("User-Agent")
}

// inLambda reports that this process is a Lambda function.
func inLambda() bool {
	_, ok := os.LookupEnv("AWS_LAMBDA_FUNCTION_NAME")
	return ok
}

// trace gives a request the trace id of this process's invocation.
func trace(r *http.Request) {
	in := middleware.BuildInput{Request: &smithyhttp.Request{Request: r}}
	_, _, _ = (&awsmiddleware.RecursionDetection{}).HandleBuild(r.Context(), in, built) // fails for no such r
}

// built ends the SDK's middleware for a request's header.
var built = middleware.BuildHandlerFunc(func(context.Context, middleware.BuildInput) (
	out middleware.BuildOutput, metadata middleware.Metadata, err error,
) {
	return out, metadata, nil
})
