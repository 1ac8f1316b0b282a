package lean

import (
	"bytes"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/metrics"
	"github.com/aws/smithy-go/middleware"
	"github.com/aws/smithy-go/tracing"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// another returns an option that sets field i to another value, nil if the test knows none.
func another(i int) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		switch v := reflect.ValueOf(o).Elem().Field(i); v.Kind() {
		case reflect.String:
			v.SetString("other")
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Int, reflect.Uint64:
			v.Set(reflect.ValueOf(7).Convert(v.Type()))
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.Interface:
			v.SetZero()
		case reflect.Struct:
			for _, f := range v.Fields() {
				switch f.Kind() {
				case reflect.Slice:
					f.Set(reflect.MakeSlice(f.Type(), 1, 1))
				case reflect.Uint:
					f.SetUint(f.Uint() + 1)
				case reflect.Bool:
					f.SetBool(!f.Bool())
				case reflect.String:
					f.SetString("other")
				}
			}
		}
	}
}

// deprecated is an option that programs may still set.
func deprecated() func(*dynamodb.Options) {
	resolver := dynamodb.EndpointResolverFromURL("http://localhost")
	return dynamodb.WithEndpointResolver(resolver) //nolint:staticcheck // it is what the test is about
}

// TestOptionsOfACall: a call with any option but of retries and the logger is the SDK's.
func TestOptionsOfACall(t *testing.T) {
	// The deprecated resolver is there, lest a field is nil.
	client := New(config(&replay{}), deprecated())
	client.unusual = false
	typ := reflect.TypeFor[dynamodb.Options]()
	for i := range typ.NumField() {
		field := typ.Field(i)
		if !field.IsExported() {
			continue
		}
		honoured := slices.Contains([]string{"Retryer", "RetryMode", "RetryMaxAttempts", "Logger"}, field.Name)
		if got := client.begin([]func(*dynamodb.Options){noRetry, another(i)}) != nil; got != honoured {
			t.Errorf("with another %s, by this package %v, want %v", field.Name, got, honoured)
		}
	}
	if client.begin([]func(*dynamodb.Options){func(*dynamodb.Options) {}}) == nil {
		t.Error("an option that changes nothing")
	}
}

// TestOptionsOfAClient: what only the SDK's client honours has it make all calls, and New says so.
func TestOptionsOfAClient(t *testing.T) {
	for name, test := range map[string]struct {
		option func(*dynamodb.Options)
		bySDK  bool
	}{
		"":           {func(*dynamodb.Options) {}, false},
		"AppID":      {func(o *dynamodb.Options) { o.AppID = "app" }, false},
		"Retryer":    {noRetry, false},
		"APIOptions": {dynamodb.WithAPIOptions(func(*middleware.Stack) error { return nil }), true},
		"Interceptors": {func(o *dynamodb.Options) {
			o.Interceptors.AfterAttempt = make([]smithyhttp.AfterAttemptInterceptor, 1)
		}, true},
		"EndpointResolver":   {deprecated(), true},
		"EndpointResolverV2": {dynamodb.WithEndpointResolverV2(struct{ dynamodb.EndpointResolverV2 }{}), true},
		"EndpointDiscovery": {func(o *dynamodb.Options) {
			o.EndpointDiscovery.EnableEndpointDiscovery = aws.EndpointDiscoveryEnabled
		}, true},
		"HTTPSignerV4": {func(o *dynamodb.Options) {
			o.HTTPSignerV4 = struct{ dynamodb.HTTPSignerV4 }{}
		}, true},
		"AuthSchemeResolver": {func(o *dynamodb.Options) {
			o.AuthSchemeResolver = struct{ dynamodb.AuthSchemeResolver }{}
		}, true},
		"AuthSchemes": {func(o *dynamodb.Options) {
			o.AuthSchemes = make([]smithyhttp.AuthScheme, 1)
		}, true},
		"AuthSchemePreference":     {func(o *dynamodb.Options) { o.AuthSchemePreference = []string{"x"} }, true},
		"ClientLogMode":            {func(o *dynamodb.Options) { o.ClientLogMode = aws.LogRequest }, true},
		"EnableAcceptEncodingGzip": {func(o *dynamodb.Options) { o.EnableAcceptEncodingGzip = true }, true},
		"TracerProvider": {func(o *dynamodb.Options) {
			o.TracerProvider = struct{ tracing.TracerProvider }{}
		}, true},
		"MeterProvider": {func(o *dynamodb.Options) {
			o.MeterProvider = struct{ metrics.MeterProvider }{}
		}, true},
		"Protocol": {func(o *dynamodb.Options) {
			o.Protocol = struct{ smithyhttp.ClientProtocol }{}
		}, true},
		"Credentials": {func(o *dynamodb.Options) {
			o.Credentials = aws.AnonymousCredentials{}
		}, true},
		"Region": {func(o *dynamodb.Options) { o.Region = "us-east-1-fips" }, true},
	} {
		var log bytes.Buffer
		cfg := config(&replay{status: 200, text: "{}"})
		cfg.Logger = logging.NewStandardLogger(&log)
		client := New(cfg, test.option)
		if (client.begin(nil) == nil) != test.bySDK || client.unusual != test.bySDK {
			t.Errorf("%q: by the SDK's client %v, want %v", name, client.unusual, test.bySDK)
		}
		want := "sluice: lean: the SDK's client makes all calls, because of option " + name + "\n"
		if test.bySDK && !strings.HasSuffix(log.String(), want) || !test.bySDK && log.Len() > 0 {
			t.Errorf("%q logs %q", name, log.String())
		}
	}
}

// TestTuned: the SDK's HTTP client keeps more connections, and what somebody has set. Others stay as they
// are.
func TestTuned(t *testing.T) {
	own := awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
		tr.MaxIdleConnsPerHost, tr.MaxConnsPerHost = 3, 5
	})
	other := &http.Client{}
	for name, test := range map[string]struct {
		client             aws.HTTPClient
		perHost, all, most int
	}{
		"none": {nil, 256, 256, 2048}, "the SDK's": {awshttp.NewBuildableClient(), 256, 256, 2048},
		"set": {own, 3, 256, 5},
	} {
		client := New(config(test.client))
		buildable, ok := client.options.HTTPClient.(*awshttp.BuildableClient)
		if !ok {
			t.Fatalf("%s: %T", name, client.options.HTTPClient)
		}
		tr := buildable.GetTransport()
		if tr.MaxIdleConnsPerHost != test.perHost || tr.MaxIdleConns != test.all ||
			tr.MaxConnsPerHost != test.most {
			t.Errorf("%s: %d of %d idle, %d at most", name, tr.MaxIdleConnsPerHost, tr.MaxIdleConns,
				tr.MaxConnsPerHost)
		}
		if tr.Proxy == nil || tr.Protocols.HTTP2() || !tr.Protocols.HTTP1() {
			t.Errorf("%s: protocols %v, a proxy %v", name, tr.Protocols, tr.Proxy != nil)
		}
	}
	if got := New(config(other)).options.HTTPClient; got != aws.HTTPClient(other) {
		t.Errorf("another client became %T", got)
	}
}

// TestAgent: requests say that they are the SDK's but for the client, and pass Lambda's trace id on.
func TestAgent(t *testing.T) {
	service := &replay{status: 200, text: "{}"}
	cfg := config(service)
	cfg.AppID = "app"
	cfg.Credentials = aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("AKID", "SECRET", ""))
	client := New(cfg)
	see(t.Context(), client.Client, inputs()[0])
	theirs := strings.Fields(service.request.Header.Get("User-Agent"))
	see(t.Context(), client, inputs()[0])
	ours := service.request.Header.Get("User-Agent")
	for _, part := range theirs {
		if before, _, _ := strings.Cut(part, "#"); !strings.Contains(ours, before) {
			t.Errorf("%s is not in %s", part, ours)
		}
	}
	if service.request.Header.Get("X-Amzn-Trace-Id") != "" {
		t.Error("a trace id outside of Lambda")
	}

	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "function")
	t.Setenv("_X_AMZN_TRACE_ID", "Root=1-a b")
	client = New(cfg)
	see(t.Context(), client.Client, inputs()[0])
	want := service.request.Header.Get("X-Amzn-Trace-Id")
	see(t.Context(), client, inputs()[0])
	if got := service.request.Header.Get("X-Amzn-Trace-Id"); got != want || want == "" {
		t.Errorf("trace id %q, want %q", got, want)
	}
}
