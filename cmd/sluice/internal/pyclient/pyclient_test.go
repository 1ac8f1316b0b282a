package pyclient_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/cmd/sluice/internal/pyclient"
	"github.com/sluice-go/sluice/gen"
)

// TestExample: the client of examples/python is what its schema gives. Its own tests run it.
func TestExample(t *testing.T) {
	schema := filepath.Join("..", "..", "..", "..", "examples", "python", "limits.yaml")
	s, err := gen.Load(schema)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pyclient.File(s, schema)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(pyclient.Path(schema))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) || !pyclient.IsGenerated(got) ||
		filepath.Base(pyclient.Path(schema)) != "limits_client.py" {
		t.Errorf("%s is not what %s gives: run `make generate`", pyclient.Path(schema), schema)
	}
}

// TestNames: names that Python has words for, or that the client has itself, become others.
func TestNames(t *testing.T) {
	s := &gen.Schema{
		Kinds: []gen.Kind{{Name: "client", Parent: -1}, {Name: "id", Parent: 0}, {Name: "any", Parent: 1}},
		Resources: []gen.Resource{
			{Name: "gpt-4", Limits: []string{"class", "int", "a-b", "a_b"}, Charged: []gen.Charged{{Kind: 2}}},
			{Name: "4o", Limits: []string{"self"}, Charged: []gen.Charged{{Kind: 0}}},
			{Name: "acquire_all", Limits: []string{"x"}, Usage: []gen.Usage{{Name: "in"}}, Charged: []gen.Charged{{}}},
		},
	}
	text, err := pyclient.File(s, "limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"class Client_:", "class Any_:", "class Id:", "    id_: Optional[str] = None", "class Gpt4Cost:",
		"    class_: Optional[int]", "    int_: Optional[int]", "    a_b: Optional[int]", "    a_b_: Optional[int]",
		`{"class": self.class_, "int": self.int_, "a-b": self.a_b, "a_b": self.a_b_}`, "class N4oCost:",
		"def n4o(self)", "    self_: Optional[int]", "def acquire_all_(self)", `"in": self.in_`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing", want)
		}
	}
}

// TestClash: two names that give one class are an error.
func TestClash(t *testing.T) {
	s := &gen.Schema{Kinds: []gen.Kind{{Name: "a-b", Parent: -1}, {Name: "a_b", Parent: -1}}}
	_, err := pyclient.File(s, "x.yaml")
	const want = "kind a-b and kind a_b both give the class AB of the Python client: rename one of them"
	if err == nil || err.Error() != want {
		t.Error(err)
	}
}
