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
// is a resource without names, which refuses one.
func TestTemplates(t *testing.T) {
	schema, err := limits.Read("../../../internal/test/conformance/named/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	engine := memdynamo.New()
	open, err := schema.Open(dynamo.New(engine.Client(), "limits"))
	if err != nil {
		t.Fatal(err)
	}
	for _, get := range []func(string) (*limits.Resource, error){schema.Resource, open.Resource} {
		for _, test := range []struct{ resource, name, says string }{
			{"model", "", "is missing"}, {"gpt-4", "gpt-5", "has no meaning"}, {"gpt-4", "", ""},
		} {
			r, err := get(test.resource)
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Named(t.Context(), test.name)
			invalid, ok := errors.AsType[*runtime.InvalidError](err)
			if ok != (test.says != "") || ok && !strings.Contains(invalid.Reason, test.says) {
				t.Errorf("%s, name %q: %v, want an InvalidError that says %q", test.resource, test.name, err, test.says)
			}
		}
		if r, err := get("gpt-5"); r != nil || err == nil {
			t.Errorf("gpt-5 is no resource, and is %v", r)
		}
	}
}
