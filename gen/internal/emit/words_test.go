package emit

import (
	"go/format"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

func TestFold(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"one two three", "// one two\n// three"},
		{"", "//"},
		{"incomprehensible", "// incomprehensible"},
		{"a incomprehensible b", "// a\n// incomprehensible\n// b"},
		{"one\n\ntwo", "// one\n//\n// two"},
		{"  - one two three", "//   - one\n//     two\n//     three"},
		{"\tcode that is long", "// \tcode that is long"},
	} {
		if got := comment(tc.text, 8); got != tc.want {
			t.Errorf("%q became\n%s\nwant\n%s", tc.text, got, tc.want)
		}
	}
}

func TestDocs(t *testing.T) {
	limit := func(doc string) *model.Limit { return &model.Limit{Name: "rpm", Const: "APIRPM", Doc: doc} }
	for _, tc := range []struct{ doc, constant, cost string }{
		{"", "APIRPM is limit rpm.", "0 means 2 (per_call)"},
		{"requests", "APIRPM is limit rpm: requests.", "requests; 0 means 2 (per_call)"},
		{"Requests.", "APIRPM is limit rpm: Requests.", "Requests; 0 means 2 (per_call)"},
		{"a\n\n\tb", "APIRPM is limit rpm.\n\na\n\n\tb", "0 means 2 (per_call)\n\na\n\n\tb"},
		{"Deprecated: no.", "APIRPM is limit rpm.\n\nDeprecated: no.", "0 means 2 (per_call)\n\nDeprecated: no."},
		{"a\nDeprecated: no.", "APIRPM is limit rpm.\n\na\n\nDeprecated: no.",
			"0 means 2 (per_call)\n\na\n\nDeprecated: no."},
	} {
		r := &model.Resource{Limits: []*model.Limit{limit(tc.doc)},
			Charged: []*model.Charged{{Kind: &model.Kind{Type: "User"}, PerCall: []int64{2},
				Numbers: []schema.Numbers{{Capacity: 1}}}}}
		if got := limitDoc(r.Limits[0]); got != tc.constant {
			t.Errorf("the constant of %q says %q, want %q", tc.doc, got, tc.constant)
		}
		if got := costNote(r, r.Limits[0]); got != tc.cost {
			t.Errorf("the cost of %q says %q, want %q", tc.doc, got, tc.cost)
		}
	}
}

func TestArticle(t *testing.T) {
	for name, want := range map[string]string{
		"User": "a User", "Org": "an Org", "APIKey": "an APIKey", "LLMKey": "an LLMKey",
		"MCPServer": "an MCPServer", "FTPUser": "an FTPUser", "HTTPCall": "an HTTPCall", "NPC": "an NPC",
		"RPCClient": "an RPCClient",
		"S3Bucket":  "an S3Bucket", "XMLFile": "an XMLFile", "X": "an X", "Model": "a Model", "Space": "a Space",
		"UUID": "a UUID", "USDAccount": "a USDAccount", "URL": "a URL", "Unit": "a Unit", "BU": "a BU",
		"Region": "a Region", "T1": "a T1", "B": "a B",
	} {
		if got := article(name); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestParentNote(t *testing.T) {
	many := strings.Split(strings.Repeat("x", 13), "")
	org := new(model.Kind)
	p := &model.Package{Plans: &model.Plans{Kind: org}}
	for want, k := range map[string]*model.Kind{
		"not charged by this entity's calls: may stay empty in them": {},
		"charged too by calls on gpt-4":                              {ParentBy: []string{"gpt-4"}},
		"charged too by calls on gpt-4; those on api need what is above it": {ParentBy: []string{"gpt-4"},
			AboveBy: []string{"api"}},
		"charged too by calls on gpt-4, gpt-5 and api": {ParentBy: []string{"gpt-4", "gpt-5",
			"api"}},
		"charged too by calls on 13 resources":                            {ParentBy: many},
		"its own ID may stay empty: calls on api charge what is above it": {AboveBy: []string{"api"}},
		"required: calls on api go by its plan": {
			Parent: org, PlanBy: []string{"api"}, AboveBy: []string{"gpt-4"}},
		"required: calls on api and gpt-4 go by the plan above it; charged too by calls on gpt-4": {
			Parent: new(model.Kind), PlanBy: []string{"api", "gpt-4"}, ParentBy: []string{"gpt-4"}},
	} {
		if got := parentNote(p, k); got != want {
			t.Errorf("%+v is %q, want %q", k, got, want)
		}
	}
}

// TestStores: without the store there is nothing of it.
func TestStores(t *testing.T) {
	n := schema.Numbers{Capacity: 1, Burst: 1, Refill: 1, Period: time.Second}
	s := &schema.Schema{
		Revision: 1, Package: "limits", Kinds: []*schema.Kind{{Name: "user", GoName: "User", Parent: -1}},
		Resources: []*schema.Resource{{
			Name: "api", GoName: "API", Limits: []*schema.Limit{{Name: "rps", GoName: "RPS", Numbers: n}},
			Charged: []schema.Charged{{Limits: []schema.Numbers{n},
				PerCall: []int64{1}}}, Cascade: "atomic", OnUnavailable: "allow",
		}},
	}
	s.Resources[0].Removed = []string{"old"}
	for _, stores := range [][]string{{"dynamodb"}, {"redis"}, {"redis", "dynamodb"}} {
		s.Stores = stores
		files, err := Files(model.Of(s, "limits.yaml"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for store, signs := range map[string][]string{
			"dynamodb": {codecPath, "Bucket struct", "ExtractDeltas", "b_rps"}, "redis": {"redis.call", ") Script("},
		} {
			for _, sign := range signs {
				found := slices.ContainsFunc(files, func(f File) bool { return strings.Contains(string(f.Data), sign) })
				if found != slices.Contains(stores, store) {
					t.Errorf("stores %v: there is %s, of %s: %t", stores, sign, store, found)
				}
			}
		}
	}
}

// TestDocsStayComments: whatever a doc says, it is a comment, and gofmt has nothing to change.
func TestDocsStayComments(t *testing.T) {
	word := rapid.SampledFrom([]string{
		"a", "word", "*/", "/*", "//", "//go:embed x", "`",
		"\"", "#", "# x", "-", "1.", "\t", "  ", "    x", "Deprecated:", "[x]: y", "[API]",
		"+build", "\\", "%s", "é", "''", "``", strings.Repeat("long", 40), "\n", "\n\n", ":",
	})
	doc := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(word, 0, 8).Draw(t, "words"),
			rapid.SampledFrom([]string{" ", ""}).Draw(t, "sep"))
	})
	rapid.Check(t, func(t *rapid.T) {
		trimmed := func() string { return strings.TrimSpace(doc.Draw(t, "doc")) }
		n := schema.Numbers{Capacity: 1, Burst: 1, Refill: 1, Period: time.Second}
		files, err := Files(model.Of(&schema.Schema{
			Version: 1, Revision: 1, Package: "limits", Out: "./limits", Stores: []string{"dynamodb"},
			Kinds: []*schema.Kind{{Name: "user", GoName: "User", Doc: trimmed(), Parent: -1}},
			Resources: []*schema.Resource{{
				Name: "api", GoName: "API", Doc: trimmed(),
				Limits: []*schema.Limit{
					{Name: "rps", GoName: "RPS", Doc: trimmed(), Numbers: n},
					{Name: "rpm", GoName: "RPM", Doc: trimmed(), Numbers: n},
				},
				Charged: []schema.Charged{{Limits: []schema.Numbers{n, n}, PerCall: []int64{1, 0}}},
				Cascade: "atomic", OnUnavailable: "allow",
			}},
		}, "limits.yaml"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			formatted, err := format.Source(f.Data)
			if err != nil || string(formatted) != string(f.Data) {
				t.Fatalf("gofmt changes %s: %v\n%s", f.Name, err, f.Data)
			}
		}
	})
}

// TestCostDocOfKinds: Cost says for which kinds its limits are not charged, by the whole chain of a call.
func TestCostDocOfKinds(t *testing.T) {
	org := &model.Kind{Name: "org", Type: "Org"}
	key := &model.Kind{Name: "key", Type: "Key", Parent: org}
	input := &model.Usage{Name: "input", Field: "Input", Price: 1}
	some := schema.Numbers{Capacity: 1, Burst: 1, Refill: 1, Period: time.Second}
	var none schema.Numbers
	tokens, plain, month := []*model.Usage{input}, &model.Limit{Field: "RPM", Index: 1},
		&model.Limit{Field: "Month", Currency: "USD", Index: 2}
	type have = [3]schema.Numbers
	resource := func(ofKey, ofOrg have, along ...*model.Kind) *model.Resource {
		return &model.Resource{
			Currency: "USD", Consumes: tokens,
			Limits:  []*model.Limit{{Field: "TPM", Counts: tokens}, plain, month},
			Charged: []*model.Charged{{Kind: key, Numbers: ofKey[:], Along: along}, {Kind: org, Numbers: ofOrg[:]}},
		}
	}
	const (
		noKey = " For a Key, set Month to 0 first: its calls charge no such limit."
		noOrg = " For an Org, set TPM to 0 first: its calls charge no such limit."
	)
	for name, test := range map[string]struct {
		r    *model.Resource
		want string
	}{
		"all have all":     {resource(have{some, some, some}, have{some, some, some}), ""},
		"an uncounted one": {resource(have{some, none, some}, have{some, none, some}), ""},
		"the key's chain has": {resource(have{some, some, none},
			have{none, none, some}, org), noOrg},
		"without a cascade": {resource(have{some, some, none},
			have{none, none, some}), noKey + noOrg},
		"two of them": {resource(have{some, some, some}, have{none, some, none}, org),
			" For an Org, set TPM and Month to 0 first: its calls charge no such limit."},
	} {
		if got := lacking(test.r); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if !strings.Contains(costDoc(test.r), "an *InvalidError."+test.want+"\n") {
			t.Errorf("%s: %s", name, costDoc(test.r))
		}
	}
}
