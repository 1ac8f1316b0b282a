package cli_test

import (
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
)

// closedPort is a URL at which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return "http://" + listener.Addr().String()
}

// TestNothingAnswers: all commands say the same, and none that it waits for a table.
func TestNothingAnswers(t *testing.T) {
	sequential(t)
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "dev")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "dev")
	url := closedPort(t)
	for _, command := range []string{
		"table check", "table create", "peek user-123 gpt-4", "top gpt-4", "reset user-123 gpt-4", "usage user-123",
		"aggregate",
		"entity put user-123 --parent project-7 --file ../../../limits.yaml", "entity show user-123 --file " +
			"../../../limits.yaml",
		"entity children user-123 --file ../../../limits.yaml",
		"entity delete user-123 --file ../../../limits.yaml",
		"entity erase user-123 --file ../../../limits.yaml",
		"override set user gpt-4 rpm=1 --file ../../../limits.yaml", "override list gpt-4 --file " +
			"../../../limits.yaml",
		"override export --file ../../../limits.yaml",
		"override explain user-123 gpt-4 --file ../../../limits.yaml", "load --file ../../../limits.yaml",
	} {
		for _, flags := range [][]string{{"--endpoint", url}, nil} {
			endpoint := url
			if flags != nil {
				endpoint = "http://127.0.0.1:1" // the flag beats it
			}
			t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
			var out, errs strings.Builder
			var code int
			synctest.Test(t, func(t *testing.T) { // for commands that try again
				code = cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}.Run(t.Context(),
					append(strings.Fields(command), flags...))
			})
			want := "sluice: " + url + " does not answer" +
				": start `sluice dev`, or correct the endpoint (--endpoint, AWS_ENDPOINT_URL_DYNAMODB)\n"
			if code != 1 || out.String() != "" || !sameFacts(errs.String(), want) {
				t.Errorf("%s %v: exit code %d\n%s%s", command, flags, code, out.String(), errs.String())
			}
		}
	}
}

// TestNowhere: a variable that is not set does not lead to another table than was meant.
func TestNowhere(t *testing.T) {
	for _, flag := range []string{"--endpoint=", "--region="} {
		var out, errs strings.Builder
		code := cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}.Run(t.Context(),
			[]string{"reset", "user-123", "gpt-4", flag})
		want := "sluice: " + strings.TrimSuffix(flag, "=") + " is empty: pass "
		if code != 2 || out.String() != "" || !hasFacts(errs.String(), want) {
			t.Errorf("%s: exit code %d\n%s%s", flag, code, out.String(), errs.String())
		}
	}
}
