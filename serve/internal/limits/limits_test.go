package limits_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/serve/internal/limits"
)

// TestTemplates: without a name, a call on a template would take of a bucket that is no name's. The control
// is a resource without names.
func TestTemplates(t *testing.T) {
	schema, err := limits.Read("../../../internal/test/conformance/named/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	open, err := schema.Open(dynamo.New(memdynamo.New().Client(), "limits"))
	if err != nil {
		t.Fatal(err)
	}
	for _, get := range []func(string) (*limits.Resource, error){schema.Resource, open.Resource} {
		for name, says := range map[string]string{
			"model": "has names: catalog", "gpt-5": "is none of limits.yaml",
		} {
			r, err := get(name)
			invalid, ok := errors.AsType[*runtime.InvalidError](err)
			if r != nil || !ok || !strings.Contains(invalid.Reason, says) {
				t.Errorf("%s: %v, %v, want an InvalidError that says %q", name, r, err, says)
			}
		}
		if r, err := get("gpt-4"); err != nil || r.Spec.Resource != "gpt-4" {
			t.Errorf("gpt-4: %v", err)
		}
	}
}
