package lean

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// account is a provider of credentials of an account.
type account string

// Retrieve implements aws.CredentialsProvider.
func (a account) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET", AccountID: string(a)}, nil
}

// target is where the last request went, and for whom it was signed.
func (r *replay) target() string {
	if r.request == nil {
		return "nowhere"
	}
	scope, _, _ := strings.Cut(r.request.Header.Get("Authorization"), "SignedHeaders")
	return r.request.URL.String() + " " + r.request.Host + " " + scope
}

// set is an option of a client.
type set = func(*dynamodb.Options)

// TestEndpoint: requests go where the SDK's go. If there is no endpoint, the error is the SDK's.
func TestEndpoint(t *testing.T) {
	base := func(url string) set {
		return func(o *dynamodb.Options) { o.BaseEndpoint = &url }
	}
	region := func(name string) set {
		return func(o *dynamodb.Options) { o.Region = name }
	}
	dual := func(o *dynamodb.Options) {
		o.EndpointOptions.UseDualStackEndpoint = aws.DualStackEndpointStateEnabled
	}
	fips := func(o *dynamodb.Options) { o.EndpointOptions.UseFIPSEndpoint = aws.FIPSEndpointStateEnabled }
	plain := func(o *dynamodb.Options) { o.EndpointOptions.DisableHTTPS = true }
	of := func(id string, mode aws.AccountIDEndpointMode) set {
		return func(o *dynamodb.Options) { o.Credentials, o.AccountIDEndpointMode = account(id), mode }
	}
	const own = "111111111111"
	const arn = "arn:aws:dynamodb:eu-west-1:222222222222:table/table"
	for name, test := range map[string]struct {
		options []set
		table   string
		want    string // a part of the target
		bySDK   bool
	}{
		"a region":                     {nil, "", "https://dynamodb.eu-west-1.amazonaws.com/ ", false},
		"China":                        {[]set{region("cn-north-1")}, "", ".amazonaws.com.cn/", false},
		"GovCloud with FIPS":           {[]set{region("us-gov-west-1"), fips}, "", "us-gov-west-1", false},
		"FIPS":                         {[]set{region("us-east-1"), fips}, "", "dynamodb-fips.us-east-1", false},
		"dual stack":                   {[]set{dual}, "", "dynamodb.eu-west-1.api.aws", false},
		"local":                        {[]set{region("local")}, "", "/us-east-1/dynamodb/", false},
		"plain HTTP":                   {[]set{plain}, "", "http://dynamodb.eu-west-1", false},
		"a base":                       {[]set{base("http://h:8000")}, "", "http://h:8000/ ", false},
		"a base with a path":           {[]set{base("https://h/a%2Fb/ä")}, "", "https://h/a", false},
		"a base with its port":         {[]set{base("https://h.example:443/")}, "", " h.example ", false},
		"a base of IPv6":               {[]set{base("http://[::1]:9000")}, "", "http://[::1]:9000/", false},
		"an IPv6 that the SDK refuses": {[]set{base("http://[::1]:80")}, "", "nowhere", true},
		"a base, dual stack":           {[]set{base("http://localhost:8000"), dual}, "", "nowhere", true},
		"no region":                    {[]set{region("")}, "", "nowhere", true},
		"no region, but a base":        {[]set{region(""), base("http://localhost:8000")}, "", "localhost", true},
		"no region's name":             {[]set{region("a/b")}, "", "nowhere", true},
		"a region with FIPS":           {[]set{region("fips-us-east-1")}, "", "dynamodb-fips", true},
		"an account":                   {[]set{of(own, "preferred")}, "", "https://" + own + ".ddb.eu", false},
		"no account":                   {[]set{of("", "preferred")}, "", "https://dynamodb.eu-west-1", false},
		"an unset mode":                {[]set{of(own, "")}, "", "https://" + own + ".ddb", false},
		"another's table":              {[]set{of(own, "preferred")}, arn, "https://222222222222.ddb", false},
		"accounts disabled":            {[]set{of(own, "disabled")}, arn, "https://dynamodb.eu-west-1", false},
		"accounts required":            {[]set{of(own, "required")}, "", "https://" + own + ".ddb", false},
		"a missing account":            {[]set{of("", "required")}, "", "nowhere", true},
		"an unknown mode":              {[]set{of("1", "whatever")}, "", "nowhere", true},
	} {
		t.Run(name, func(t *testing.T) {
			service := &replay{status: 200, text: "{}"}
			client := New(config(service), test.options...)
			for _, in := range inputs() {
				if test.table != "" {
					rename(in, test.table)
				}
				service.request = nil
				sdk := see(t.Context(), client.Client, in)
				want := service.target()
				service.request = nil
				lean := see(t.Context(), client, in)
				if got := service.target(); got != want || !strings.Contains(got, test.want) {
					t.Errorf("%T goes to %s, want %s with %s", in, got, want, test.want)
				}
				if diff := differ(sdk, lean); diff != "" || service.byLean() == test.bySDK {
					t.Errorf("by this package %v; SDK, lean:\n%s", service.byLean(), diff)
				}
			}
		})
	}
}

// rename has an input be about another table.
func rename(in any, table string) {
	switch in := in.(type) {
	case *dynamodb.UpdateItemInput:
		in.TableName = &table
	case *dynamodb.PutItemInput:
		in.TableName = &table
	case *dynamodb.GetItemInput:
		in.TableName = &table
	case *dynamodb.BatchGetItemInput:
		in.RequestItems = map[string]types.KeysAndAttributes{table: in.RequestItems["table"]}
	case *dynamodb.TransactWriteItemsInput:
		in.TransactItems[0].Put.TableName = &table
	}
}

// TestEndpointOfEnvironment: the variables that name an endpoint do.
func TestEndpointOfEnvironment(t *testing.T) {
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "SECRET")
	t.Setenv("AWS_SESSION_TOKEN", "TOKEN")
	for _, test := range []struct{ name, want string }{
		{"AWS_ENDPOINT_URL", "http://all.example:8000/ "},
		{"AWS_ENDPOINT_URL_DYNAMODB", "http://own.example:8000/ "},
	} {
		t.Setenv(test.name, strings.TrimSuffix(test.want, "/ "))
		cfg, err := awsconfig.LoadDefaultConfig(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		service := &replay{status: 200, text: "{}"}
		cfg.HTTPClient = service
		client := New(cfg)
		if _, err := send(t.Context(), client, inputs()[0]); err != nil || !service.byLean() {
			t.Errorf("by this package %v: %v", service.byLean(), err)
		}
		if got := service.target(); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %s", test.name, got)
		}
		if got := service.request.Header.Get("X-Amz-Security-Token"); got != "TOKEN" {
			t.Errorf("token %q", got)
		}
	}
}

// TestRotation: requests are signed with the credentials that there are, and the endpoint is theirs.
func TestRotation(t *testing.T) {
	service := &replay{status: 200, text: "{}"}
	keys := &rotating{}
	client := New(config(service), func(o *dynamodb.Options) { o.Credentials = keys })
	for range 4 {
		keys.n++
		if _, err := send(t.Context(), client, inputs()[0]); err != nil {
			t.Fatal(err)
		}
		want := keys.now().AccessKeyID + "/"
		if got := service.target(); !strings.Contains(got, "Credential="+want) ||
			!strings.Contains(got, "https://"+keys.now().AccountID+".ddb.") {
			t.Errorf("%s, want key %s", got, want)
		}
	}
}

// rotating is a provider of credentials that change.
type rotating struct{ n int }

func (r *rotating) now() aws.Credentials {
	id := string(rune('A' + r.n/2))
	return aws.Credentials{AccessKeyID: "KEY" + id, SecretAccessKey: id, AccountID: strings.Repeat("1", r.n)}
}

// Retrieve implements aws.CredentialsProvider.
func (r *rotating) Retrieve(context.Context) (aws.Credentials, error) { return r.now(), nil }
