package cli_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
)

// TestNoPassword: the user and the password of an endpoint are in no output and in no error.
func TestNoPassword(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	secret := func(url string) string { return strings.Replace(url, "://", "://ann:ses@me@", 1) }
	_, table := newSession(t, demo)
	t.Setenv("SLUICE_TABLE", table)
	served, closed := secret(dynamotest.Endpoint(t)), secret(closedPort(t))
	for _, line := range []string{
		"table create --endpoint " + served, "table check --endpoint " + served, "top nothing --endpoint " + served,
		"table check --endpoint " + closed, "peek user-1 gpt-4 --endpoint " + closed,
		"load --file " + demo + " --endpoint " + closed, "load --file " + demo + " --table x --endpoint " +
			"http://ann:ses@me@dynamo.example.com",
		"peek user-1 gpt-4 --endpoint http://ann:ses/ame@localhost",
		"peek user-1 gpt-4 --endpoint ann:sesame@localhost",
		"peek user-1 gpt-4 --endpoint ftp://ann:sesame@localhost", "peek user-1 gpt-4 http://ann:sesame@localhost",
	} {
		var out, errs strings.Builder
		run := func(t *testing.T) {
			t.Helper()
			cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}.Run(t.Context(), strings.Fields(line))
		}
		if strings.Contains(line, closed) { // some commands try again
			synctest.Test(t, run)
		} else {
			run(t)
		}
		if text := out.String() + errs.String(); text == "" || strings.Contains(text, "ses") {
			t.Errorf("%s:\n%s", line, text)
		}
	}
}
