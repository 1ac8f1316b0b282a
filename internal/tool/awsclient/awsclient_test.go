package awsclient_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluice-go/sluice/internal/tool/awsclient"
)

// bare takes from the environment all that configures AWS.
func bare(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
		"AWS_SESSION_TOKEN",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_WEB_IDENTITY_TOKEN_FILE",
	} {
		t.Setenv(name, "")
	}
	nowhere := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", nowhere)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", nowhere)
}

func TestLocalEndpointNeedsNothing(t *testing.T) {
	bare(t)
	for _, endpoint := range []string{"http://localhost:8000", "http://127.0.0.1:8000", "https://[::1]:8000"} {
		client, err := awsclient.New(t.Context(), endpoint, "")
		if err != nil {
			t.Fatal(endpoint, err)
		}
		o := client.Options()
		if aws.ToString(o.BaseEndpoint) != endpoint || o.Region != "us-east-1" {
			t.Errorf("%s: endpoint %v, region %s", endpoint, aws.ToString(o.BaseEndpoint), o.Region)
		}
		if keys, err := o.Credentials.Retrieve(t.Context()); err != nil || keys.AccessKeyID != "local" {
			t.Errorf("%s: credentials %v, %v", endpoint, keys.AccessKeyID, err)
		}
	}
}

func TestEnvironmentAndProfiles(t *testing.T) {
	bare(t)
	file := filepath.Join(t.TempDir(), "config")
	profile := "[profile eu]\nregion = eu-west-1\naws_access_key_id = from-profile\naws_secret_access_key = x\n"
	if err := os.WriteFile(file, []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", file)
	t.Setenv("AWS_PROFILE", "eu")
	for _, test := range []struct{ endpoint, region, want string }{
		{"", "", "eu-west-1"},
		{"http://localhost:8000", "", "eu-west-1"},
		{"", "us-west-2", "us-west-2"},
	} {
		client, err := awsclient.New(t.Context(), test.endpoint, test.region)
		if err != nil {
			t.Fatal(err)
		}
		o := client.Options()
		keys, err := o.Credentials.Retrieve(t.Context())
		if err != nil || keys.AccessKeyID != "from-profile" || o.Region != test.want {
			t.Errorf("%+v: region %s, credentials %s, %v", test, o.Region, keys.AccessKeyID, err)
		}
	}
}

// TestStreams: streams are looked for where the tables are, unless that is AWS or somebody says otherwise.
func TestStreams(t *testing.T) {
	bare(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for _, test := range []struct{ flag, tables, streams, want string }{
		{"", "", "", ""},
		{"http://127.0.0.1:8000", "", "", "http://127.0.0.1:8000"},
		{"http://dynamodb:8000", "", "", "http://dynamodb:8000"},
		{"http://127.0.0.1:8000", "", "http://127.0.0.1:9000", "http://127.0.0.1:8000"},
		{"", "http://127.0.0.1:8000", "", "http://127.0.0.1:8000"},
		{"", "http://127.0.0.1:8000", "http://127.0.0.1:9000", "http://127.0.0.1:9000"},
		{"https://dynamodb.eu-west-1.amazonaws.com", "", "", ""},
		{"https://vpce-1.dynamodb.cn-north-1.vpce.amazonaws.com.cn", "", "https://vpce-2", "https://vpce-2"},
		{"", "https://dynamodb.eu-west-1.api.aws", "", ""},
		{"https://amazonaws.com.example.com", "", "", "https://amazonaws.com.example.com"},
	} {
		t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", test.tables)
		t.Setenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", test.streams)
		tables, streams, err := awsclient.WithStreams(t.Context(), test.flag, "eu-west-1")
		if err != nil {
			t.Fatal(err)
		}
		if got := aws.ToString(streams.Options().BaseEndpoint); got != test.want ||
			streams.Options().Region != "eu-west-1" {
			t.Errorf("%+v: streams at %q", test, got)
		}
		if got, want := aws.ToString(tables.Options().BaseEndpoint), test.flag+test.tables; got != want {
			t.Errorf("%+v: tables at %q, want %q", test, got, want)
		}
	}
	if _, _, err := awsclient.WithStreams(t.Context(), "nowhere", ""); err == nil {
		t.Error("an endpoint that is no URL is taken")
	}
}

// TestS3: buckets are asked by their names' hosts on AWS, and by their path elsewhere.
func TestS3(t *testing.T) {
	bare(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for _, test := range []struct {
		variable, region string
		path             bool
	}{
		{"", "eu-west-1", false},
		{"https://bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com", "eu-west-1", false},
		{"http://127.0.0.1:9000", "us-west-2", true},
		{"https://minio.example.com", "us-west-2", true},
	} {
		t.Setenv("AWS_ENDPOINT_URL_S3", test.variable)
		client, err := awsclient.S3(t.Context(), test.region)
		if err != nil {
			t.Fatal(err)
		}
		if o := client.Options(); aws.ToString(o.BaseEndpoint) != test.variable || o.UsePathStyle != test.path ||
			o.Region != test.region {
			t.Errorf("%+v: at %q in %s, by path %v", test, aws.ToString(o.BaseEndpoint), o.Region, o.UsePathStyle)
		}
	}
	if _, err := awsclient.S3(t.Context(), ""); err == nil ||
		!strings.HasPrefix(err.Error(), "no AWS region: ") {
		t.Errorf("without a region: %v", err)
	}
}

func TestErrors(t *testing.T) {
	bare(t)
	for _, test := range []struct{ endpoint, want string }{
		{"", "no AWS region: pass --region, set AWS_REGION, or choose a profile that has one; without AWS, run " +
			"`sluice dev` and set what it prints"},
		{"localhost:8000", `endpoint "localhost:8000" is not a URL: pass one such as http://localhost:8000`},
		{"ftp://localhost", `endpoint "ftp://localhost" is not a URL: pass one such as http://localhost:8000`},
		{"https://dynamodb.example.com", "no AWS region"},
	} {
		_, err := awsclient.New(t.Context(), test.endpoint, "")
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%q: error %v\nwant %s", test.endpoint, err, test.want)
		}
	}
}

// TestEnvironmentErrors: an endpoint of the environment that is no URL is refused before the first call,
// which the SDK would try again and again. One that is a URL is taken.
func TestEnvironmentErrors(t *testing.T) {
	bare(t)
	t.Setenv("AWS_REGION", "eu-west-1")
	for variable, open := range map[string]func() error{
		"AWS_ENDPOINT_URL_DYNAMODB": func() error {
			_, err := awsclient.New(t.Context(), "", "")
			return err
		},
		"AWS_ENDPOINT_URL_DYNAMODB (lean)": func() error {
			_, err := awsclient.Lean(t.Context(), "", "")
			return err
		},
		"AWS_ENDPOINT_URL_DYNAMODB (with streams)": func() error {
			_, _, err := awsclient.WithStreams(t.Context(), "", "")
			return err
		},
		"AWS_ENDPOINT_URL_DYNAMODB_STREAMS": func() error {
			_, _, err := awsclient.WithStreams(t.Context(), "", "")
			return err
		},
		"AWS_ENDPOINT_URL_S3": func() error {
			_, err := awsclient.S3(t.Context(), "")
			return err
		},
	} {
		t.Run(variable, func(t *testing.T) {
			variable, _, _ := strings.Cut(variable, " ")
			for _, wrong := range []string{"127.0.0.1:8000", "not a url"} {
				t.Setenv(variable, wrong)
				want := `read the AWS configuration (` + variable + `, AWS_ENDPOINT_URL, the profile): endpoint "` +
					wrong + `" is not a URL: pass one such as http://localhost:8000`
				if err := open(); err == nil || err.Error() != want {
					t.Errorf("%s: %v\nwant %s", wrong, err, want)
				}
			}
			t.Setenv(variable, "http://127.0.0.1:8000")
			if err := open(); err != nil {
				t.Error(err)
			}
		})
	}
}
