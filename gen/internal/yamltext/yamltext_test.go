package yamltext

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestExplain holds the place and the cause of errors. Package schema has more of them, in testdata.
func TestExplain(t *testing.T) {
	for src, want := range map[string]Error{
		"a: 1\n\tb: 2\n": {Line: 2, Column: 1, Why: "a tab: indent with spaces"},
		"a: 1\nb:2\nc: 3": {
			Line: 2, Column: 2, Why: "there is no blank after ':': write one, as in capacity: 10",
		},
		"a: 1\n<<<<<<< ours\nb: 2": {Line: 2, Column: 1, Why: "a merge conflict: resolve it first"},
		"a: {b: *none}\n":          {Line: 1, Column: 8, Alias: "none"},
		"a: '*none'\nb: [1": {
			Line: 2, Column: 1, Why: "did not find expected ',' or ']': close the [, or put a ',' before this",
		},
	} {
		var doc yaml.Node
		err := yaml.Unmarshal([]byte(src), &doc)
		if err == nil {
			t.Errorf("%q is YAML", src)
			continue
		}
		if got := Explain([]byte(src), err); got != want {
			t.Errorf("%q: got %+v, want %+v", src, got, want)
		}
	}
}
