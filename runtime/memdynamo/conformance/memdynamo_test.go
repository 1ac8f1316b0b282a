package conformance_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// inProcess returns a new memdynamo, served.
func inProcess(t *testing.T) server {
	t.Helper()
	engine := httptest.NewServer(memdynamo.New())
	t.Cleanup(engine.Close)
	return server{url: engine.URL}
}

// TestMemdynamo plays the corpus against memdynamo, a new one for each script.
func TestMemdynamo(t *testing.T) {
	for _, path := range scripts(t) {
		t.Run(name(path), func(t *testing.T) {
			play(t, newRun(inProcess(t)), path)
		})
	}
}

// TestEveryStepCounts is the negative control of the corpus: with its record altered, each step fails.
func TestEveryStepCounts(t *testing.T) {
	for _, path := range scripts(t) {
		t.Run(name(path), func(t *testing.T) {
			s, err := readScript(path)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), scriptLimit)
			defer cancel()
			r := newRun(inProcess(t))
			for _, step := range s.steps {
				if step.want.body == anyBody {
					step.want.status++
				} else {
					step.want.body = `{"altered":` + step.want.body + `}`
				}
				difference, err := r.check(ctx, step)
				if err != nil {
					t.Fatalf("%s:%d: %v", path, step.line, err)
				}
				if difference == "" {
					t.Errorf("%s:%d: %s passes with an altered record", path, step.line, step.operation)
				}
			}
		})
	}
}
