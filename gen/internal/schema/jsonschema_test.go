package schema

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// compileSchema returns limits.schema.json, ready to validate with; it fails if that is no valid JSON Schema.
func compileSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("limits.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("limits.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// toJSON returns n as an editor hands it to a JSON Schema, by YAML 1.2: 10_000 is text there, and so is a
// date.
func toJSON(n *yaml.Node) any {
	switch n.Kind {
	case yaml.DocumentNode:
		return toJSON(n.Content[0])
	case yaml.MappingNode:
		m := make(map[string]any)
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = toJSON(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			list = append(list, toJSON(c))
		}
		return list
	}
	if n.Style == 0 && n.Tag == "!!null" {
		return nil
	}
	if n.Style == 0 && json.Valid([]byte(n.Value)) { // a number, true or false
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(n.Value)))
		if err == nil {
			return v
		}
	}
	return n.Value
}

func validate(t tester, s *jsonschema.Schema, src []byte) error {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil {
		t.Fatalf("not YAML: %v", err)
	}
	return s.Validate(toJSON(&doc))
}

// TestJSONSchema validates the demonstration's limits.yaml, and as a negative control what an editor should
// mark.
func TestJSONSchema(t *testing.T) {
	s, texts := compileSchema(t), cases(t)
	for _, name := range []string{"demo", "out_good", "breaking_good", "stores_good", "regions_good",
		"region_floor_none", "model_names", "kinds_good", "windows_good", "in_flight_good",
		"money_good", "unlimited_good", "plans_good", "credits_good", "templates_good"} {
		if err := validate(t, s, texts[name]); err != nil {
			t.Errorf("%s, which has no mistake: %v", name, err)
		}
	}
	for _, name := range []string{
		"bad_name", "bad_number", "bad_period", "empty", "empty_resource", "go_name", "missing_key",
		"missing_everything",
		"number_range", "out_absolute", "out_backslash", "out_empty", "package_bad", "package_main", "package_test",
		"repeated",
		"package_init", "package_vendor", "out_testdata", "out_underscore", "out_hidden", "out_blank_inside",
		"out_shell", "out_at",
		"out_up_inside", "restated_key", "breaking", "breaking_types", "breaking_empty", "restated_capacity",
		"restated_empty", "limit_kinds", "unknown_key", "unknown_value", "version", "wrong_type", "zero_number",
		"region_count", "region_count_many", "region_drift",
		"region_floor", "region_floor_percent", "region_horizon_none",
		"region_window_unit",
		"regions_empty", "regions_names", "regions_null", "regions_types",
		"how_long", "starts", "window_unknown", "window_keys", "restated_window", "unknown_zone",
		"in_flight", "crash_refills", "money", "credits", "unlimited",
		"plans", "plans_types", "plans_without_kind", "plan_count",
	} {
		if validate(t, s, texts[name]) == nil {
			t.Errorf("%s: no mistake found", name)
		}
	}
}

// TestJSONSchemaKeys holds the keys of the JSON Schema and those of Read to each other, both ways.
func TestJSONSchemaKeys(t *testing.T) {
	var doc struct {
		Defs map[string]struct {
			Title, Description string
			Type               any
			Properties         map[string]struct {
				Title, Description string
				Ref                string `json:"$ref"`
			}
			AdditionalProperties json.RawMessage
		} `json:"$defs"`
	}
	if err := json.Unmarshal(JSONSchema(), &doc); err != nil {
		t.Fatal(err)
	}
	accepted := map[string][]string{
		"schema": topKeys(), "go": goKeys(), "regions": regionsKeys(), "kind": kindKeys(),
		"resource": resourceKeys(), "limit": limitKeys(), "restated": restatedKeys(), "plans": plansKeys(),
		"planned": plannedKeys(),
		"usage":   usageKeys(), "breaking": breakingKeys(), "except": exceptKeys(), "ignore_only": ignoreKeys(),
	}
	for name, def := range doc.Defs {
		if def.Type != "object" {
			continue
		}
		var keys []string
		for k, p := range def.Properties {
			keys = append(keys, k)
			at := doc.Defs[strings.TrimPrefix(p.Ref, "#/$defs/")]
			if p.Title+at.Title == "" || p.Description+at.Description == "" {
				t.Errorf("%s: key %s has no title or description to show", name, k)
			}
		}
		slices.Sort(keys)
		want := slices.Sorted(slices.Values(accepted[name]))
		if diff := cmp.Diff(want, keys); diff != "" {
			t.Errorf("%s: keys differ (-Read +JSON Schema):\n%s", name, diff)
		}
		if string(def.AdditionalProperties) != "false" {
			t.Errorf("%s takes any key", name)
		}
		delete(accepted, name)
	}
	for name := range accepted {
		t.Errorf("%s is not in the JSON Schema", name)
	}
}

// TestJSONSchemaCopies gives each caller bytes of its own.
func TestJSONSchemaCopies(t *testing.T) {
	JSONSchema()[0] = 'x'
	if JSONSchema()[0] != '{' {
		t.Error("a caller changed the JSON Schema of all")
	}
}
