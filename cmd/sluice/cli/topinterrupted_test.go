package cli_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// TestTopInterrupted: Ctrl-C while buckets are read ends --watch well, and a list that is not complete not.
func TestTopInterrupted(t *testing.T) {
	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // as far as the command sees
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	table := dynamotest.Table(t, dynamotest.Client(t), operator.Table)
	for flags, want := range map[string]int{"--watch --every 100ms": 0, "": 1} {
		ctx, interrupt := context.WithCancel(t.Context())
		var errs strings.Builder
		program := cli.Program{Stdout: terminal, Stderr: &errs,
			Now: func() time.Time { interrupt(); return time.Time{} }}
		args := append(strings.Fields("top gpt-4 "+flags), "--table", table, "--endpoint", dynamotest.Endpoint(t))
		if code := program.Run(ctx, args); code != want || (code == 0) != (errs.String() == "") {
			t.Errorf("top %s: exit code %d, want %d\n%s", flags, code, want, errs.String())
		}
	}
}
