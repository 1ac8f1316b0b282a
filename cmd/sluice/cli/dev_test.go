package cli_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
)

// dev runs `sluice dev` until the test ends, when it must exit with 0, and returns its endpoint. It must
// print says between the endpoint and the variables.
func dev(t *testing.T, says string, args ...string) (endpoint string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	var errs strings.Builder
	exit := make(chan int, 1)
	go func() {
		program := cli.Program{Stdout: writer, Stderr: &errs, Now: time.Now}
		exit <- program.Run(ctx, append([]string{"dev", "--port", "0"}, args...))
		_ = writer.Close()
	}()
	out := bufio.NewReader(reader)
	first, err := out.ReadString('\n')
	if err != nil {
		t.Fatalf("dev ended with %d: %s", <-exit, errs.String())
	}
	rest := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(out)
		rest <- string(text)
	}()
	endpoint, _, _ = strings.Cut(strings.TrimPrefix(first, "DynamoDB in memory at "), " ")
	t.Cleanup(func() {
		cancel()
		if code := <-exit; code != 0 || errs.Len() > 0 {
			t.Errorf("dev ended with %d: %s", code, errs.String())
		}
		want := says + `for SDKs, the AWS command line and sluice:
  export AWS_ENDPOINT_URL_DYNAMODB=` + endpoint + ` AWS_ENDPOINT_URL_DYNAMODB_STREAMS=` + endpoint + `
  export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=dev AWS_SECRET_ACCESS_KEY=dev
`
		if got := <-rest; got != want {
			t.Errorf("dev printed\n%s%s\nwant after the first line\n%s", first, got, want)
		}
	})
	return endpoint
}

// run runs the command line, and returns the exit code and what it printed.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}.Run(t.Context(), args)
	return code, out.String(), errs.String()
}

func TestDevServesTheTable(t *testing.T) {
	endpoint := dev(t, "it has table my_limits\n", "--table", "my_limits")
	code, out, errs := run(t, "table", "check", "--table", "my_limits", "--endpoint", endpoint)
	expect(t, code, out, errs, 0, "table my_limits in "+endpoint+"\n"+parts("my_limits"), "")
	if code, _, _ := run(t, "table", "check", "--table", "rate_limits", "--endpoint", endpoint); code != 1 {
		t.Errorf("check of a table that nobody asked for: exit code %d, want 1", code)
	}
}

func TestDevWithoutTable(t *testing.T) {
	t.Setenv("SLUICE_TABLE", "rate_limits") // says what to look at, not what to make
	endpoint := dev(t, "")
	code, out, errs := run(t, "table", "create", "--endpoint", endpoint)
	expect(t, code, out, errs, 0, "created table rate_limits\n"+parts("rate_limits"),
		"creating table rate_limits in "+endpoint+"\n")
}

func TestDevOnEveryAddress(t *testing.T) {
	const says = "on every address: other machines and containers use this host's name instead of 127.0.0.1\n"
	if endpoint := dev(t, says, "--host", "0.0.0.0"); !strings.HasPrefix(endpoint, "http://127.0.0.1:") {
		t.Errorf("the endpoint is %s", endpoint)
	}
}

func TestDevPortTaken(t *testing.T) {
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	code, out, errs := run(t, "dev", "--port", port)
	expect(t, code, out, errs, 1, "", "sluice: port "+port+
		" is taken: choose another with --port, or let --port 0 pick one\n")
}
