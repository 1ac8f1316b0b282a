package dynamo

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// environment is what AWS's own chain of providers reads. In values, URL stands for a service's address, and
// DIR for a folder that has a file named token.
type environment struct {
	variables map[string]string
	config    string // the profiles
}

const role = "arn:aws:iam::123456789012:role/sluice"

// credentialsServices are the services that give credentials, by environments that name them.
var credentialsServices = map[string]environment{
	"IMDS": {variables: map[string]string{"AWS_EC2_METADATA_SERVICE_ENDPOINT": "URL"}},
	"IMDS, with tokens alone": {variables: map[string]string{
		"AWS_EC2_METADATA_SERVICE_ENDPOINT": "URL", "AWS_EC2_METADATA_V1_DISABLED": "true",
	}},
	"ECS or EKS": {variables: map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "URL"}},
	"STS, by a web identity": {variables: map[string]string{
		"AWS_ENDPOINT_URL_STS": "URL", "AWS_WEB_IDENTITY_TOKEN_FILE": "DIR/token", "AWS_ROLE_ARN": role,
	}},
	"STS, by a profile's role": {
		variables: map[string]string{"AWS_ENDPOINT_URL_STS": "URL"},
		config: "[default]\nrole_arn = " + role + "\nsource_profile = keys\n" +
			"[profile keys]\naws_access_key_id = a\naws_secret_access_key = b\n",
	},
}

// credentialsOf returns the credentials of AWS's own chain of providers, which reads e and nothing else.
func credentialsOf(t *testing.T, e environment, url string) aws.CredentialsProvider {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "") // it is restored in the end
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := t.TempDir()
	values := strings.NewReplacer("URL", url, "DIR", dir)
	for name, text := range map[string]string{"token": "token", "config": values.Replace(e.config)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "none"))
	for name, value := range e.variables {
		t.Setenv(name, values.Replace(value))
	}
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithRegion("eu-west-1"),
		config.WithLogger(logging.Nop{}),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} })) // its pauses take real time
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Credentials
}

// replying serves one reply to all requests.
func replying(t *testing.T, status int, contentType, body string) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// silent serves no reply until the test has ended.
func silent(t *testing.T) (url string) {
	t.Helper()
	tested := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-tested }))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(tested) })
	return s.URL
}

// stsError is how STS answers with an error.
func stsError(code string) string {
	return "<ErrorResponse><Error><Type>Sender</Type><Code>" + code + "</Code><Message>why</Message></Error>" +
		"<RequestId>1</RequestId></ErrorResponse>"
}

// TestCredentials has each service that gives credentials fail in each way. No answer is an outage. An answer
// without credentials is somebody's to fix.
func TestCredentials(t *testing.T) {
	for name, from := range credentialsServices {
		ofSTS, ofIMDS := strings.HasPrefix(name, "STS"), strings.HasPrefix(name, "IMDS")
		kind, cut := "application/json", `{"`
		if ofSTS {
			kind, cut = "text/xml", "<AssumeRoleResponse><"
		}
		reply := func(status int, code string) func(*testing.T) string {
			body := `{"code":"` + code + `","message":"why"}`
			if ofSTS {
				body = stsError(code)
			}
			return func(t *testing.T) string { t.Helper(); return replying(t, status, kind, body) }
		}
		failures := map[string]credentialsFailure{
			"refuses": {func(*testing.T) string { return "http://127.0.0.1:1" }, wire.NotSent},
			"silent":  {silent, wire.NotSent},
			"500":     {reply(http.StatusInternalServerError, "InternalFailure"), wire.NotSent},
			"503":     {reply(http.StatusServiceUnavailable, "ServiceUnavailable"), wire.NotSent},
			"404":     {reply(http.StatusNotFound, "NotFound"), wire.Failed},
			"403":     {reply(http.StatusForbidden, "AccessDenied"), wire.Failed},
			"400":     {reply(http.StatusBadRequest, "ValidationError"), wire.Failed},
		}
		if !ofIMDS { // its answers have no codes, and are lines
			failures["429"] = credentialsFailure{reply(http.StatusTooManyRequests, ""), wire.NotSent}
			failures["throttling"] = credentialsFailure{reply(http.StatusBadRequest, "Throttling"), wire.NotSent}
			failures["cut"] = credentialsFailure{func(t *testing.T) string {
				t.Helper()
				return replying(t, http.StatusOK, kind, cut)
			}, wire.NotSent}
		}
		if ofSTS {
			failures["no issuer"] = credentialsFailure{reply(http.StatusBadRequest, "IDPCommunicationError"),
				wire.NotSent}
		}
		for how, f := range failures {
			t.Run(name+"/"+how, func(t *testing.T) {
				credentialsFail(t, credentialsOf(t, from, f.serve(t)), f.want)
			})
		}
	}
}

// credentialsFailure is how a service of credentials fails, and what that is taken for.
type credentialsFailure struct {
	serve func(*testing.T) (url string)
	want  wire.Outcome
}

// credentialsFail has a call of DynamoDB fail for want of credentials, and holds what that is taken for.
func credentialsFail(t *testing.T, provider aws.CredentialsProvider, want wire.Outcome) {
	t.Helper()
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String("http://127.0.0.1:1"), Credentials: provider,
	})
	bounded, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	ctx := t.Context()
	if strings.HasSuffix(t.Name(), "silent") { // others answer, however slow this machine is
		ctx = bounded
	}
	_, err := client.UpdateItem(ctx,
		&dynamodb.UpdateItemInput{TableName: aws.String("t"), Key: item.VersionKey()}, wire.NoRetry)
	if err == nil {
		t.Fatal("no error")
	}
	got, _ := wire.Classify(err)
	if got != want {
		t.Errorf("%v, want %v: %v", got, want, err)
	}
	explained := wire.CallError("t", err)
	if isA[*store.SetupError](explained) != (want == wire.Failed) ||
		isA[*store.UnavailableError](explained) != (want == wire.NotSent) {
		t.Errorf("a %T: %v", explained, explained)
	}
}

// TestNoProvider: without a service that could give credentials, nothing will. A failed system call says that
// it may pass, wherever it was made.
func TestNoProvider(t *testing.T) {
	for name, from := range map[string]environment{
		"no provider": {variables: map[string]string{"AWS_EC2_METADATA_DISABLED": "true"}},
		"no token": {variables: map[string]string{
			"AWS_WEB_IDENTITY_TOKEN_FILE": "DIR/none", "AWS_ROLE_ARN": role,
		}},
		"no program": {config: "[default]\ncredential_process = DIR/none\n"},
	} {
		t.Run(name, func(t *testing.T) { credentialsFail(t, credentialsOf(t, from, ""), wire.Failed) })
	}
	t.Run("no file", func(t *testing.T) {
		credentialsFail(t, aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			_, err := os.ReadFile(filepath.Join(t.TempDir(), "none"))
			return aws.Credentials{}, err
		}), wire.Failed)
	})
}

// TestPolicyWithoutCredentials: the failure policy decides while the service does not answer, and never if it
// answers that there are none.
func TestPolicyWithoutCredentials(t *testing.T) {
	none := func(t *testing.T) string { t.Helper(); return replying(t, http.StatusNotFound, "", "") }
	for _, test := range []struct {
		name     string
		serve    func(*testing.T) string
		attempts int
		want     map[runtime.Policy]string
		text     string
	}{
		{
			"no answer", func(*testing.T) string { return "http://127.0.0.1:1" }, DefaultAttempts,
			map[runtime.Policy]string{
				runtime.Deny: "unavailable", runtime.Allow: "degraded", runtime.Local: "degraded",
			},
			"no AWS credentials, since their service does not answer (on a host without one, set AWS_PROFILE, or " +
				"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with a role): ",
		},
		{
			"no role", none, 1,
			map[runtime.Policy]string{runtime.Deny: "setup", runtime.Allow: "setup", runtime.Local: "setup"},
			"; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with a role",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEngine(t)
			o := e.client.Options()
			asked := 0
			provider := credentialsOf(t, credentialsServices["IMDS"], test.serve(t))
			o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
				asked++
				return provider.Retrieve(ctx)
			})
			d := e.demo(t, dynamodb.New(o))
			for policy, want := range test.want {
				asked = 0
				user := limits.User{ID: fmt.Sprint(policy)} // a bucket has few retries until one is answered
				lease, err := d.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{RPM: 1},
					runtime.OnUnavailable(policy))
				got := "admitted"
				switch {
				case isA[*store.SetupError](err):
					got = "setup"
				case isA[*store.UnavailableError](err):
					got = "unavailable"
				case err != nil:
					got = "neither"
				case lease.Degraded():
					got = "degraded"
				}
				if got != want || asked != test.attempts {
					t.Errorf("%v: %s after %d attempts, want %s after %d: %v", policy, got, asked, want,
						test.attempts, err)
				}
				if err != nil && !strings.Contains(err.Error(), test.text) {
					t.Errorf("%v: %v", policy, err)
				}
			}
			// An operator's call is not repeated: the credentials' client has repeated its own by then.
			asked = 0
			overrides := e.operator(dynamodb.New(o), 0)
			_, err := overrides.Get(t.Context(), rates(), "user-1")
			if asked != 1 || err == nil || isA[*store.SetupError](err) != (test.want[runtime.Deny] == "setup") {
				t.Errorf("an operator gets %v after %d attempts, want 1", err, asked)
			}
		})
	}
}
