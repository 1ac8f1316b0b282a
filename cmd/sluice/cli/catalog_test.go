package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	gateway "github.com/sluice-go/sluice/gen/testdata/golden/templates/out"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
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
		"model: {a: {aliases: [b]}, b: {aliases: [a]}}":         ":1:23: name b is in line 1 too",
		"model: {a: {aliases: [a]}}":                            "is in line 1 too: a name is one entry",
		"model: {a: {aliases: [b, c]}, d: {aliases: [c]}}":      "is in line 1 too: a name is one entry",
		"model: {a: {usages: {}}}":                              "has no usages: did you mean \"usage\"?",
		"model: {a: {usage: {inputs: {price: 1}}}}":             "did you mean \"input\"?",
		"model: {a: {usage: {input: {price: x}}}}":              ":1:36: price x ",
		"model: {a: {entities: {keys: {}}}}":                    "has no kind \"keys\"",
		"model: {a: {entities: {key: {rpm: {capacity: 0}}}}}":   "raise it",
		"model: {a: {entities: {key: {month: {capacity: 1}}}}}": "month of model is no limit of kind key",
		"model: {a: {plans: {gold: {}}}}":                       "has no gold",
		"model: {a: {entities: {key: {parallel: {capacity: 1}}}}}": "all names of model have parallel together: " +
			"leave it out",
		"image: {a: {entities: {key: {day: {capacity: 1}}}}}": "all names of image have its limits together: " +
			"leave key out",
		"model: {'a#b': {}}":                  "contains '#'",
		"models: {}":                          "has no resource \"models\": did you",
		"model: {a: {}, a: {}}":               "has a twice",
		"":                                    "is empty",
		"# nothing\n":                         "is empty",
		"model: {a: {}}\n---\nvoice: {b: {}}": ":2:1: a second document starts here",
		"model: {a: {entities: {org: {}}}}": "model has no bucket by name for kind org: pass an entity or a " +
			"kind of key, team",
		"model: {a: {entities: {key: {rpm: {capacity: '5,burst=7'}}}}}": "capacity of rpm is 5,burst=7: write one",
		"model: {a: {usage: {input: {price: [1]}}}}":                    "price of input is no single value",
		"model: {a: {aliases: [~]}}":                                    "alias of a is no single value",
		"model: {a: &x {}, b: *x}":                                      ":1:22: b is no mapping",
		"model: {a: {buckets: model}}":                                  "buckets model are those of all names",
		"model: {a: {buckets: voice}}":                                  "buckets voice are those of all names",
		"model: {a: {buckets: gpt-4}, b: {buckets: gpt-4}}":             "a and b both have the buckets of gpt-4",
		"model: {a: {}, b: {buckets: model/a}}":                         "a and b both have the buckets of model/a",
		"model: {a: {}}\nvoice: {b: {buckets: model/a}}":                "a and b both have the buckets of model/a",
		"model: {a: {buckets: [gpt-4]}}":                                "buckets is no single value",
		"{a: &a [1,1], b: &b [*a,*a], c: &c [*b,*b]}":                   "has no resource",
		"model: " + strings.Repeat("[", 20_000):                         "exceeded max depth",
		"model: {\"a\\u001b[2J\": {}}": `name "a\x1b[2J" has the control character U+001B at byte offset 1: ` +
			"write 1 to 128 bytes of text",
		"model:\n\tgpt-5: {}":       ":2:1: YAML_SYNTAX: not YAML: a tab: indent",
		"model: {a: \x00}":          ":1:12: NOT_TEXT: control character U+0000",
		"model: {a\xff: {}}":        ":1:10: NOT_TEXT: byte 0xff is not UTF-8",
		"model: {a: {}}\n---\nb: [": ":3:1: YAML_SYNTAX: not YAML",

		"model: {a: {entities: {key: {rpm: {capacity: 9, every: [1m]}}}}}": "every of rpm is no single value",
		"model: {a: {entities: {key: {rpm: {capacity: 9, burst: }}}}}":     "burst of rpm is no single value",
		"model: {a: {entities: {key: {rpm: {capacity: unlimited, burst: 5}}}}}": "burst and refill of rpm go " +
			"with a number",
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

// used has key 1 call gpt-5, and returns the limiter that was asked.
func used(t *testing.T, at store.Store) *gateway.Limiter {
	t.Helper()
	lim, err := gateway.New(at)
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
	return lim
}

// TestCatalogInUse: a name whose bucket was used in the last day is removed by force alone, on both stores.
func TestCatalogInUse(t *testing.T) {
	sequential(t)
	s, table := newSession(t, catalogs)
	r := newRedis(t, catalogs)
	for name, at := range map[string]struct {
		store store.Store
		run   func(args ...string) (int, string, string)
	}{
		"table": {dynamo.New(s.client, table), func(args ...string) (int, string, string) {
			return sluice(t, start, slices.Concat(args, s.flags)...)
		}},
		"redis": {redisstore.New(r.client), func(args ...string) (int, string, string) {
			var out, errs strings.Builder
			code := (cli.Program{Stdout: &out, Stderr: &errs, Now: fixed{start}.Now}).Run(t.Context(),
				slices.Concat(args, r.flags))
			return code, out.String(), errs.String()
		}},
	} {
		file := filepath.Join(t.TempDir(), "catalog.yaml")
		apply := func(text string, flags ...string) (int, string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errs := at.run(append([]string{"catalog", "apply", file}, flags...)...)
			return code, out + errs
		}
		if code, errs := apply("model: {gpt-5: {}, idle: {}}"); code != 0 {
			t.Fatal(errs)
		}
		lim := used(t, at.store)
		const inUse = "name gpt-5 of model is in use: key-1 has used its bucket in the last day; nothing was " +
			"written"
		for _, text := range []string{"model: {idle: {}}", "model: {gpt-5: {buckets: gpt-5}, idle: {}}"} {
			for _, flag := range []string{"--reason=x", "--dry-run"} {
				if code, said := apply(text, flag); code != 1 || !strings.Contains(said, inUse) {
					t.Errorf("%s: %s %s: exit code %d: %s", name, text, flag, code, said)
				}
			}
		}
		if code, said := apply("model: {gpt-5: {}}"); code != 0 {
			t.Errorf("%s: a name that nobody used: %s", name, said)
		}
		code, said := apply("model: {}", "--force", "--dry-run")
		if code != 0 || !contains(said, "would write 1 name") {
			t.Errorf("%s: by force, dry: exit code %d, %s", name, code, said)
		}
		if _, said, _ := at.run("catalog", "list", "model"); !contains(said, "gpt-5") {
			t.Errorf("%s: a dry run has removed it: %s", name, said)
		}
		if code, said := apply("model: {}", "--force"); code != 0 || !contains(said, "wrote 1 name") {
			t.Errorf("%s: by force: exit code %d, %s", name, code, said)
		}
		const empty = "the catalog of model has no name\n"
		if _, said, errs := at.run("catalog", "list", "model"); said != "" || errs != empty {
			t.Errorf("%s: the name is still there: %s%s", name, said, errs)
		}
		if _, err := lim.Model.Named(t.Context(), "gpt-5"); err != nil {
			t.Errorf("%s: a process that remembers the name: %v", name, err)
		}
	}
}

// TestAuditOfCatalog: prices are shown as a catalog's list shows them. An alias that looks like a limit is
// none. A name that limits.yaml does not have is no silence.
func TestAuditOfCatalog(t *testing.T) {
	sequential(t)
	s, _ := newSession(t, catalogs)
	file := filepath.Join(t.TempDir(), "catalog.yaml")
	const text = "model: {gpt-5: {usage: {input: {price: 8/1M}, output: {price: 0}}}, 1 2 3 4: {aliases: [a]}}"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		code, out, errs := sluice(t, start, slices.Concat(args, s.flags)...)
		if code != 0 {
			t.Errorf("%v: exit code %d", args, code)
		}
		return out + errs
	}
	run("catalog", "apply", file)
	audit := run("audit", "--catalog", "model", "--since", "36500d")
	for _, want := range []string{"price input - 8/1M", "price output - 0", "a alias - 1 2 3 4"} {
		if !contains(audit, want) {
			t.Errorf("no %s in\n%s", want, audit)
		}
	}
	list := run("catalog", "list", "model")
	if !contains(list, "price input 8/1M") || !contains(list, "alias 1 2 3 4") {
		t.Error(list)
	}
	all := run("audit", "--catalog", "model", "--since", "36500d", "--json")
	if !contains(all, `"alias":"1 2 3 4"`) {
		t.Error(all)
	}
	for what, want := range map[string]string{
		"--catalog=voices": "has no resource \"voices\": did you mean \"voice\"?",
		"--plans=voices":   "has no resource \"voices\": did you mean \"voice\"?",
		"--kind=kye":       "has no kind \"kye\": it can be key, org or team",
		"kye-1":            "is of kind kye, which limits.yaml does not have",
	} {
		if said := run("audit", what); !strings.HasPrefix(said, "no change is recorded since ") ||
			!contains(said, want) {
			t.Errorf("%s: %s", what, said)
		}
	}
	if said := run("audit", "--kind=key"); strings.Contains(said, "has no") {
		t.Error(said)
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
	used(t, dynamo.New(s.client, table))
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
	lim, err := gateway.New(dynamo.New(s.client, table)) // it remembers nothing
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gpt-5", "gpt-6", "latest", "zuletzt"} {
		if model, err := lim.Model.Named(t.Context(), name); err != nil || model.Name() != "model/gpt-5" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTooMuchForRedis: if Redis cannot have one of the numbers of a file, none is written.
func TestTooMuchForRedis(t *testing.T) {
	sequential(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	r := newRedis(t, file("limits.yaml", `version: 1
owner: acme
revision: 1
go: {package: limits, out: ./out}
stores: [dynamodb, redis]
entities: {key: {}}
resources:
  model:
    names: catalog
    limits: {day: {money: USD, capacity: 5, window: day}}
    entities: {key: {}}
    on_unavailable: deny
`))
	catalog := file("catalog.yaml", "model: {a: {}, b: {entities: {key: {day: {capacity: 9_000_001}}}}}")
	rows := file("rows.csv", "at,resource,revision,limit,capacity_milli,burst_milli,refill_milli,period_ms\n"+
		"key-1,model,,day,6000000000,6000000000,0,86400000\n"+
		"key-2,model,,day,9000001000000000,9000001000000000,0,86400000\n")
	for _, args := range [][]string{{"catalog", "apply", catalog}, {"override", "import", rows}} {
		for _, flags := range [][]string{nil, {"--dry-run"}} {
			code, out, errs := command(t.Context(), slices.Concat(args, flags, r.flags)...)
			if code != 1 || out != "" || !contains(errs, "is not possible: ") ||
				!contains(errs, "nothing was written") {
				t.Errorf("%v: exit code %d\n%s%s", args, code, out, errs)
			}
		}
	}
	if keys := r.server.Keys(); len(keys) > 0 {
		t.Errorf("it wrote %q", keys)
	}
}
