package cli_test

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// silent is the address of a server that takes connections and does not answer.
func silent(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // the kernel takes the connections
	return listener.Addr().String()
}

// hasty are timeouts for a server that never answers.
var hasty = program.Timeouts{Attempt: time.Minute, Note: 10 * time.Millisecond, End: 100 * time.Millisecond}

// TestSilentServer: a command says what it waits for, and gives up with what to do.
func TestSilentServer(t *testing.T) {
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "dev")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "dev")
	at := silent(t)
	schema := " --file " + demo
	for _, line := range []string{
		"table check", "table create", "peek user-123 gpt-4", "top gpt-4", "reset user-123 gpt-4", "usage user-123",
		"aggregate", "aggregate --once", "entity put user-123 --parent project-7" + schema,
		"entity show user-123" + schema, "override set user gpt-4 rpm=1" + schema, "override list gpt-4" + schema,
		"load" + schema, "migrate" + schema,
	} {
		timeouts := hasty
		if line == "table check" { // it gives up in its second attempt
			timeouts.Attempt = 60 * time.Millisecond
		}
		var out, errs strings.Builder
		code := cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}.With(timeouts).Run(t.Context(),
			append(strings.Fields(line), "--endpoint", "http://ann:sesame@"+at))
		says := errs.String()
		if code != 1 || !strings.Contains(says, "waiting for http://***@"+at+"\n") ||
			!strings.Contains(says, "\nsluice: http://***@"+at+" takes the connection and does not answer, nothing "+
				"came within 100ms: check that DynamoDB is served there, or correct the endpoint (--endpoint, "+
				"AWS_ENDPOINT_URL_DYNAMODB)\n") {
			t.Errorf("%s: exit code %d\n%s%s", line, code, out.String(), says)
		}
	}
	var out, errs strings.Builder
	code := cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}.With(hasty).Run(t.Context(),
		strings.Fields("peek user-123 gpt-4 --redis redis://:sesame@"+at+schema))
	if says := errs.String(); code != 1 || !strings.HasPrefix(says, "waiting for redis://"+at+"\n") ||
		!strings.Contains(says, "check that Redis is served there") {
		t.Errorf("redis: exit code %d\n%s%s", code, out.String(), says)
	}
}

// TestServerThatAnswers: a server that answers in time is not given up, however long the command lasts.
func TestServerThatAnswers(t *testing.T) {
	_, table := newSession(t, demo)
	var out, errs strings.Builder
	long := program.Timeouts{Attempt: time.Hour, Note: time.Hour, End: time.Hour}
	code := cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}.With(long).Run(t.Context(),
		[]string{"peek", "user-123", "gpt-4", "--table", table, "--endpoint", dynamotest.Endpoint(t)})
	if code != 0 || errs.String() != "" {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
}

// TestSilentS3: a command that works on S3 says so, and gives up with what to do.
func TestSilentS3(t *testing.T) {
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "dev")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "dev")
	at := silent(t)
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://"+at)
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, operator.Table)
	patient := hasty
	patient.End = time.Second // DynamoDB has to answer within it
	for _, line := range []string{
		"region status", "region sync --table " + table + " --endpoint " + dynamotest.Endpoint(t),
		"region sync --once --table " + table + " --endpoint " + dynamotest.Endpoint(t),
	} {
		var out, errs strings.Builder
		code := cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}.With(patient).Run(t.Context(),
			strings.Fields(line+" --snapshots s3://quotas/limits --file "+shared))
		if says := errs.String(); code != 1 || !strings.Contains(says, "waiting for S3 at http://"+at+"\n") ||
			!strings.Contains(says, "\nsluice: S3 at http://"+at+" does not answer, nothing came within 1s: ") ||
			!strings.Contains(says, "AWS_ENDPOINT_URL_S3") || strings.Contains(says, "DynamoDB") {
			t.Errorf("%s: exit code %d\n%s%s", line, code, out.String(), says)
		}
	}
}

// TestSilentCredentials: a command that waits for credentials says from where, and gives up with what to do.
func TestSilentCredentials(t *testing.T) {
	t.Setenv("AWS_REGION", "us-east-1")
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE",
		"AWS_WEB_IDENTITY_TOKEN_FILE"} {
		t.Setenv(name, "")
	}
	nowhere := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", nowhere)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", nowhere)
	at := silent(t)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://"+at+"/keys")
	for _, line := range []string{
		"peek user-123 gpt-4", "peek user-123 gpt-4 --endpoint " + dynamotest.Endpoint(t),
		"region status --snapshots s3://quotas/limits --file " + shared,
	} {
		var out, errs strings.Builder
		code := cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}.With(hasty).Run(t.Context(),
			strings.Fields(line))
		if says := errs.String(); code != 1 ||
			!strings.HasPrefix(says, "waiting for credentials from http://"+at+"\n") ||
			!strings.Contains(says, "\nsluice: no credentials from http://"+at+", nothing came within 100ms: ") {
			t.Errorf("%s: exit code %d\n%s%s", line, code, out.String(), says)
		}
	}
}
