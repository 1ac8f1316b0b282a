package reference

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

// once is the reference, written once for all tests.
var once = sync.OnceValues(func() (*writer, error) { return written(schema.JSONSchema()) })

// TestDocs holds docs/schema.md to the reference.
func TestDocs(t *testing.T) {
	w, err := once()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../docs/schema.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), w.out.String()); diff != "" {
		t.Errorf("docs/schema.md (-) is not what is generated (+), run `make generate`:\n%s", diff)
	}
}

// TestNewKey: what is new in the JSON Schema is in the reference by itself.
func TestNewKey(t *testing.T) {
	const before = `        "settle": {
          "title": "Settle",`
	text := strings.Replace(string(schema.JSONSchema()), before, `        "colour": {
          "title": "Colour",
          "description": "What it looks like. Default: red.",
          "enum": ["red", "green"],
          "default": "red"
        },
`+before, 1)
	all, err := sections([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(s section) bool { return dotted(s.path) != "resources.<resource>" })
	all[0].keys = slices.DeleteFunc(all[0].keys, func(k key) bool { return k.name() != "colour" })
	p, err := newProber(sample)
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{prober: p, where: map[string][]string{}}
	w.key(all[0].keys[0])
	want := "### colour\n\nWhat it looks like. Default: red.\n\nOptional, `red` unless given: `red` or " +
		"`green`; as in `colour: green`\n\n"
	if got := w.out.String(); !strings.HasPrefix(got, want) {
		t.Errorf("want\n%s\ngot\n%s", want, got)
	}
}

// TestNamesEveryMistake compares the reference with the mistakes in the reader's own tests: each mistake of a
// key or a name there must be below that key or name.
func TestNamesEveryMistake(t *testing.T) {
	all, err := sections(schema.JSONSchema())
	if err != nil {
		t.Fatal(err)
	}
	w, err := once()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../*/testdata/*/limits.yaml")
	if err != nil || len(files) < 50 {
		t.Fatal(len(files), err)
	}
	looked := 0
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		problems := check(src)
		var doc yaml.Node
		if len(problems) == 0 || yaml.Unmarshal(src, &doc) != nil || len(doc.Content) == 0 {
			continue
		}
		for _, problem := range problems {
			at := pathOf(doc.Content[0], all, nil, problem.Pos)
			if at == "" || general(problem.Rule) || strings.HasPrefix(problem.Message, "a key of ") {
				continue
			}
			looked++
			list, _, _ := strings.Cut(at, "[]")
			numbers, _ := strings.CutSuffix(at, "capacity") // which refill and burst are where they are left out
			if !slices.ContainsFunc([]string{at, list, numbers + "refill", numbers + "burst", numbers + "per_call"},
				func(key string) bool {
					return slices.Contains(w.where[problem.Rule], key)
				}) {
				t.Errorf("%s: %s is not in the reference of %s: add a value that shows it to wrongValues, or a name to "+
					"wrongNames", filepath.Dir(file), problem, at)
			}
		}
	}
	if looked < 200 {
		t.Errorf("only %d mistakes were looked at", looked)
	}
}

// TestNamesEveryRule compares the reference with the source of the packages that report problems. It has a
// row for each constant that is a rule's id.
func TestNamesEveryRule(t *testing.T) {
	w, err := once()
	if err != nil {
		t.Fatal(err)
	}
	ids := regexp.MustCompile(`(?m)^(?:\t|const )\w+ += "([A-Z]{2}[A-Z_]+)"`)
	found := 0
	for _, folder := range []string{"rules", "declared", "expr", "digest", "breaking"} {
		files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range ids.FindAllSubmatch(src, -1) {
				found++
				if row := fmt.Sprintf("\n| `%s` | ", m[1]); strings.Count(w.out.String(), row) != 1 {
					t.Errorf("%s: the reference does not have once%s", file, row)
				}
			}
		}
	}
	if want := len(schema.Rules()) + 8; found != want {
		t.Errorf("%d ids of rules were found, want %d", found, want)
	}
}

// general says that a rule is about files or mappings, not about one key.
func general(rule string) bool {
	return slices.Contains([]string{"NOT_TEXT", "YAML_SYNTAX", "YAML_FEATURE", "ONE_DOCUMENT", "UNKNOWN_KEY",
		"DUPLICATE_KEY", "MISSING_KEY", "RESTATED_KEY",
		"CHAIN_LENGTH",
		"WINDOW_KEYS", "UNLIMITED_KEYS", "WINDOW_GLOBAL", "CRASH_REFILLS", "IN_FLIGHT_GLOBAL",
		"PREFETCH_IN_FLIGHT", "PREFETCH_NEVER", // of two keys
		"MONEY_RATE", "MONEY_MIXED", "MONEY_KEYS", "MONEY_REDIS", // of two keys
		"NO_PLANS", "PLANS_GLOBAL", "NAMES_KEYS", "NAMES_GLOBAL",
		"NO_REGIONS", "NOTHING_GLOBAL", "GLOBAL_STORE", // of two keys, and in the reference below the other one
	}, rule)
}

// pathOf returns the path of the key or name at pos, or of the key whose value or item of a list is there; ""
// if there is none.
func pathOf(n *yaml.Node, all []section, path []string, pos schema.Pos) string {
	in := slices.IndexFunc(all, func(s section) bool { return slices.Equal(s.path, path) })
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		at := sub(path, name.Value)
		if in < 0 || !slices.ContainsFunc(all[in].keys, func(k key) bool { return k.name() == name.Value }) {
			at = nil
			for _, s := range all {
				if len(s.path) == len(path)+1 && slices.Equal(s.path[:len(path)], path) &&
					strings.HasPrefix(s.path[len(path)], "<") {
					at = s.path
				}
			}
		}
		if at == nil {
			continue
		}
		if value.Kind == yaml.SequenceNode && len(value.Content) > 0 && value.Content[0].Kind == yaml.MappingNode {
			list := sub(path, name.Value+"[]")
			for _, item := range value.Content {
				if found := pathOf(item, all, list, pos); found != "" {
					return found
				}
			}
		}
		if found := pathOf(value, all, at, pos); found != "" {
			return found
		}
		if name.Line == pos.Line && name.Column == pos.Col || holds(value, pos) {
			return dotted(at)
		}
	}
	return ""
}

// TestDefinitionWithoutTitle: names of one's own are called by the title of what they name.
func TestDefinitionWithoutTitle(t *testing.T) {
	text := bytes.Replace(schema.JSONSchema(), []byte(`"title": "Charged kind",`), nil, 1)
	if _, err := sections(text); err == nil ||
		err.Error() != "what is in resources.<resource>.entities has no title to name it by" {
		t.Error(err)
	}
}

// TestCode: whatever stands in a message is shown as it is.
func TestCode(t *testing.T) {
	for text, want := range map[string]string{"a*b": "`a*b`", "run `x`": "`` run `x` ``"} {
		if got := code(text); got != want {
			t.Errorf("code(%s) = %s", strconv.Quote(text), got)
		}
	}
	if got := fmt.Sprintln(grouped("90000"), grouped("999"),
		grouped("1000000")); got != "90_000 999 1_000_000\n" {
		t.Error(got)
	}
}
