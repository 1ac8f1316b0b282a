package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gateway "github.com/sluice-go/sluice/gen/testdata/golden/templates/out"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

// TestCatalog: a file becomes the catalog, on both stores; the second time nothing changes.
func TestCatalog(t *testing.T) {
	sequential(t)
	s, _ := newSession(t, catalogs)
	r := newRedis(t, catalogs)
	file := filepath.Join(t.TempDir(), "catalog.yaml")
	for name, run := range map[string]func(args ...string) (int, string, string){
		"table": func(args ...string) (int, string, string) {
			return sluice(t, start, slices.Concat(args, s.flags)...)
		},
		"redis": func(args ...string) (int, string, string) {
			return command(t.Context(), slices.Concat(args, r.flags)...)
		},
	} {
		for _, test := range []struct {
			text, line, out string
			code            int
		}{
			{`model:
  gpt-5:
    aliases: [gpt-5-2026]
    usage: {input: {price: 8/1M}, output: {price: 0}}
    entities: {key: {rpm: {capacity: 10}}}
    plans: {enterprise: {key: {tpm: {capacity: unlimited}}}}
  old: {buckets: gpt-4}
`, "catalog apply FILE --dry-run", `TEMPLATE  NAME               WAS  NOW
model     gpt-5       new  enterprise.key.tpm  -  unlimited, unlimited
                           key.rpm             -  10, 10 every 1m
                           price input         -  8/1M
                           price output        -  0
model     old         new  buckets             -  gpt-4
model     gpt-5-2026  new  alias               -  gpt-5
would write 3 names
`, 0},
			{"", "catalog apply FILE", "wrote 3 names", 0},
			{"", "catalog apply FILE", "wrote 0 names", 0},
			{"", "catalog list model", "gpt-5-2026", 0},
			{"", "catalog list model --json", `"fields":{"alias":"gpt-5"}`, 0},
			{"model: {gpt-5: {aliases: [gpt-5-2026]}}", "catalog apply FILE --reason old-ends", "old", 0},
			{"", "audit --catalog model --since 36500d", "old-ends", 0},
		} {
			if test.text != "" {
				if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code, out, errs := run(strings.Fields(strings.ReplaceAll(test.line, "FILE", file))...)
			if code != test.code || !contains(out, test.out) {
				t.Errorf("%s: %s: exit code %d\n%s%swant\n%s", name, test.line, code, out, errs, test.out)
			}
		}
	}
}

// contains reports whether out contains text, whatever the spaces.
func contains(out, text string) bool {
	return strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(text), " "))
}

// TestCatalogMistakes: a file with mistakes is refused, each with its place and its cure.
func TestCatalogMistakes(t *testing.T) {
	sequential(t)
	s, _ := newSession(t, catalogs)
	before := s.items()
	for text, want := range map[string]string{
		"model: {a: {aliases: [b]}, b: {aliases: [a]}}":          ":1:23: name b is in line 1 too",
		"model: {a: {aliases: [a]}}":                             "is in line 1 too: a name is one entry",
		"model: {a: {aliases: [b, c]}, d: {aliases: [c]}}":       "is in line 1 too: a name is one entry",
		"model: {a: {usages: {}}}":                               "has no usages: did you mean \"usage\"?",
		"model: {a: {usage: {inputs: {price: 1}}}}":              "did you mean \"input\"?",
		"model: {a: {usage: {input: {price: x}}}}":               ":1:36: price x ",
		"model: {a: {entities: {keys: {}}}}":                     "has no kind \"keys\"",
		"model: {a: {entities: {key: {rpm: {capacity: 0}}}}}":    "raise it",
		"model: {a: {entities: {key: {month: {capacity: 1}}}}}":  "month of model is no limit of kind key",
		"model: {a: {plans: {gold: {}}}}":                        "has no gold",
		"model: {'a#b': {}}":                                     "contains '#'",
		"model: {a: {buckets: old}, b: {buckets: old}}":          "a has the buckets of b already",
		"model: {a: {}, b: {buckets: model/a}}":                  "a has the buckets of b already",
		"model: {a: {buckets: old}}\nvoice: {b: {buckets: old}}": "a has the buckets of b already",
		"model: {a: {buckets: voice}}":                           "buckets voice of a is a template",
		"models: {}":                                             "has no resource \"models\": did you",
		"model: {a: {}, a: {}}":                                  "has a twice",
		"":                                                       "is empty",
	} {
		file := filepath.Join(t.TempDir(), "catalog.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := sluice(t, start, slices.Concat([]string{"catalog", "apply", file}, s.flags)...)
		if code == 0 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d\n%s%swant %s", text, code, out, errs, want)
		}
	}
	if after := s.items(); after != before {
		t.Errorf("%d items, %d before", after, before)
	}
}

// TestCatalogInUse: a name whose bucket was used in the last day is removed by force alone.
func TestCatalogInUse(t *testing.T) {
	sequential(t)
	s, table := newSession(t, catalogs)
	file := filepath.Join(t.TempDir(), "catalog.yaml")
	apply := func(text string, flags ...string) (int, string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, errs := sluice(t, start, slices.Concat([]string{"catalog", "apply", file}, s.flags, flags)...)
		return code, errs
	}
	if code, errs := apply("model: {gpt-5: {}, idle: {}}"); code != 0 {
		t.Fatal(errs)
	}
	lim, err := gateway.New(dynamo.New(s.client, table))
	if err != nil {
		t.Fatal(err)
	}
	model, err := lim.Model.Named(t.Context(), "gpt-5")
	if err != nil {
		t.Fatal(err)
	}
	key := gateway.Key{ID: "1", Org: gateway.Org{ID: "7"}}
	lease, err := model.Acquire(t.Context(), key, gateway.ModelCost{})
	if err != nil {
		t.Fatal(err)
	}
	lease.Release(t.Context())
	const inUse = "name gpt-5 of model is in use: key-1 has used its bucket in the last day; nothing was written"
	for _, text := range []string{"model: {idle: {}}", "model: {gpt-5: {buckets: gpt-5}, idle: {}}"} {
		if code, errs := apply(text); code != 1 || !strings.Contains(errs, inUse) {
			t.Errorf("%s: exit code %d: %s", text, code, errs)
		}
	}
	if code, errs := apply("model: {gpt-5: {}}"); code != 0 {
		t.Errorf("a name that nobody used: %s", errs)
	}
	if code, errs := apply("model: {}", "--force"); code != 0 {
		t.Errorf("by force: %s", errs)
	}
}

// TestCatalogRenamed: a name becomes the alias of a new one that goes on with its buckets. If the run ends
// after any of its writes, each name that was there still is an entry, or an alias of one.
func TestCatalogRenamed(t *testing.T) {
	sequential(t)
	s, table := newSession(t, catalogs)
	file := filepath.Join(t.TempDir(), "catalog.yaml")
	apply := func(text string) string {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := sluice(t, start, slices.Concat([]string{"catalog", "apply", file}, s.flags)...)
		if code != 0 {
			t.Fatal(errs)
		}
		return out
	}
	apply("model: {gpt-5: {aliases: [latest, zuletzt]}}")
	lim, err := gateway.New(dynamo.New(s.client, table))
	if err != nil {
		t.Fatal(err)
	}
	model, err := lim.Model.Named(t.Context(), "gpt-5")
	if err != nil {
		t.Fatal(err)
	}
	key := gateway.Key{ID: "1", Org: gateway.Org{ID: "7"}}
	lease, err := model.Acquire(t.Context(), key, gateway.ModelCost{})
	if err != nil {
		t.Fatal(err)
	}
	lease.Release(t.Context())
	out := apply("model: {gpt-6: {buckets: model/gpt-5, aliases: [gpt-5, latest, zuletzt]}}")
	var order []string
	for line := range strings.Lines(out) {
		if row := strings.Fields(line); row[0] == "model" {
			order = append(order, row[1])
		}
	}
	if want := []string{"gpt-6", "latest", "zuletzt", "gpt-5"}; !slices.Equal(order, want) {
		t.Errorf("written in the order %q, want %q", order, want)
	}
	if lim, err = gateway.New(dynamo.New(s.client, table)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gpt-5", "gpt-6", "latest", "zuletzt"} {
		if model, err := lim.Model.Named(t.Context(), name); err != nil || model.Name() != "model/gpt-5" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
