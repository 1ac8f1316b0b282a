// Package conformance_test holds DynamoDB's behaviour as scripts: requests with the replies they must get.
// README.md says how they are written and recorded.
package conformance_test

import (
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
)

var update = flag.Bool("update", false, "record the replies of DynamoDB Local in testdata")

// minSteps keeps scripts from getting lost unnoticed.
const minSteps = 1600

// scriptLimit is for one script on DynamoDB Local, where creating and deleting a table takes 0.1 s.
const scriptLimit = time.Minute

func TestMain(m *testing.M) { dynamotest.Main(m) }

// scripts returns the paths of all scripts.
func scripts(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestDynamoDBLocal holds the recordings to their source; with -update it makes them.
func TestDynamoDBLocal(t *testing.T) {
	endpoint := aws.ToString(dynamotest.Local(t).Options().BaseEndpoint)
	for _, path := range scripts(t) {
		t.Run(name(path), func(t *testing.T) {
			r := newRun(server{url: strings.TrimSuffix(endpoint, "/"), local: true})
			t.Cleanup(func() { r.deleteTables(t) })
			if *update {
				record(t, r, path)
				return
			}
			play(t, r, path)
		})
	}
}

// TestCorpus reads every script and counts the steps: one that cannot be read, or that is lost, is no passing
// one.
func TestCorpus(t *testing.T) {
	steps := 0
	for _, path := range scripts(t) {
		s, err := readScript(path)
		if err != nil {
			t.Error(err)
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if s.String() != string(text) {
			t.Errorf("%s is not as it would be written: run with -update", path)
		}
		for _, step := range s.steps {
			if step.local != nil && step.local.status == step.want.status && step.local.body == step.want.body {
				t.Errorf("%s:%d: the two replies are the same: delete < local and the reason", path, step.line)
			}
		}
		steps += len(s.steps)
	}
	if steps < minSteps {
		t.Errorf("%d steps, want at least %d", steps, minSteps)
	}
	t.Logf("%d steps in %d scripts", steps, len(scripts(t)))
}

func name(path string) string { return strings.TrimSuffix(filepath.Base(path), ".txt") }

// open returns a script, and the time that it may take.
func open(t *testing.T, path string) (*script, context.Context) {
	t.Helper()
	s, err := readScript(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scriptLimit)
	t.Cleanup(cancel)
	return s, ctx
}

// play runs a script and reports every step that differs.
func play(t *testing.T, r *run, path string) {
	t.Helper()
	s, ctx := open(t, path)
	for _, step := range s.steps {
		difference, err := r.check(ctx, step)
		if err != nil { // the steps to come would fail for this reason
			t.Fatalf("%s:%d: %v", path, step.line, err)
		}
		if difference != "" {
			t.Errorf("%s:%d: %s\n%s\n%s", path, step.line, step.operation, step.request, difference)
		}
	}
}

// record runs a script and writes it with the replies it got.
func record(t *testing.T, r *run, path string) {
	t.Helper()
	s, ctx := open(t, path)
	for _, step := range s.steps {
		if err := r.record(ctx, step); err != nil {
			t.Fatalf("%s:%d: %v", path, step.line, err)
		}
	}
	if err := os.WriteFile(path, []byte(s.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// deleteTables deletes what a script left behind. It runs as a cleanup, when the test's own context has
// ended.
func (r *run) deleteTables(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), scriptLimit)
	defer cancel()
	list := &step{operation: "ListTables", request: `{"ExclusiveStartTableName":"` + r.names["T"] + `"}`}
	tables := []string{r.names["T"]} // what is listed begins after it
	got, err := r.do(ctx, list)
	if err != nil {
		t.Fatal(err)
	}
	listed, _ := got.tree.(map[string]any)["TableNames"].([]any)
	for _, table := range listed {
		if table, ok := table.(string); ok && strings.HasPrefix(table, r.names["T"]) {
			tables = append(tables, table)
		}
	}
	for _, table := range tables {
		request, err := json.Marshal(map[string]string{"TableName": table})
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.do(ctx, &step{operation: "DeleteTable", request: string(request)})
		if err != nil || got.status != http.StatusOK && !strings.Contains(oneLine(got.tree), "ResourceNotFound") {
			t.Errorf("delete table %s: status %d, error %v: %s", table, got.status, err, oneLine(got.tree))
		}
	}
}
