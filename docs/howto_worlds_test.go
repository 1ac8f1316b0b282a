package docs_test

import (
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/sluice-go/sluice/examples/publicapi/limits"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/doccheck"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// tableWith is an engine with a table, and a folder with a limits.yaml, where the clock stands still. Of the
// states it keeps those that page names.
func tableWith(t *testing.T, page, schema string, states map[string]func(runtime.Store, runtime.Option) error,
) doccheck.World {
	t.Helper()
	clock := &handClock{redisTime}
	engine := memdynamo.New(memdynamo.WithClock(clock))
	if _, err := operator.CreateTable(t.Context(), engine.Client(), usageTable); err != nil {
		t.Fatal(err)
	}
	given := map[string]func(){}
	for state, bring := range states {
		given[state] = func() {
			if err := bring(dynamo.New(engine.Client(), usageTable), runtime.WithClock(clock)); err != nil {
				t.Fatal(err)
			}
		}
	}
	keepNamed(given, page)
	text := read(t, schema)
	serve(t, engine)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("limits.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return doccheck.World{Sluice: sluiceAt(clock.Now), Given: given}
}

// keepNamed deletes the states that a page does not name.
func keepNamed(given map[string]func(), page string) {
	maps.DeleteFunc(given, func(state string, _ func()) bool {
		return !strings.Contains(page, "given: "+state+" -->")
	})
}

// pageOf returns the text of the page that a subtest is about.
func pageOf(t *testing.T) string {
	t.Helper()
	return read(t, "docs/how-to/"+t.Name()[strings.LastIndexByte(t.Name(), '/')+1:])
}

// customers is the public API of the tutorial, with its table.
func customers(t *testing.T) doccheck.World {
	t.Helper()
	return tableWith(t, pageOf(t), "examples/publicapi/limits.yaml",
		map[string]func(runtime.Store, runtime.Option) error{
			"the table of the public API": func(runtime.Store, runtime.Option) error { return nil },
			"three customers have overrides": func(s runtime.Store, o runtime.Option) error {
				return overridden(t.Context(), s, o)
			},
		})
}

// overridden sets the overrides of three customers.
func overridden(ctx context.Context, s runtime.Store, o runtime.Option) error {
	lim, err := api.New(s, o)
	numbers := map[string]int64{"acme": 500, "initech": 300, "umbrella": 200}
	for _, customer := range slices.Sorted(maps.Keys(numbers)) {
		if err != nil {
			break
		}
		_, err = lim.Config.API.Entity(api.Key{ID: customer}).Set(ctx,
			api.APILimits{RPS: &runtime.Rate{Capacity: numbers[customer]}}, "")
	}
	return err
}

// leaver is the demo's table with a user who leaves.
func leaver(t *testing.T) doccheck.World {
	t.Helper()
	return tableWith(t, pageOf(t), "limits.yaml", map[string]func(runtime.Store, runtime.Option) error{
		"user-123 has called": func(s runtime.Store, o runtime.Option) error {
			lim, err := limits.New(s, o)
			user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
			if err == nil {
				err = lim.Entities().Put(t.Context(), user)
			}
			if err == nil {
				_, err = lim.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{TPM: 500})
			}
			return err
		},
	})
}

// changes has the limits.yaml of the public API in a module, before and after a change.
func changes(t *testing.T) doccheck.World {
	t.Helper()
	page, before := pageOf(t), read(t, "examples/publicapi/limits.yaml")
	sluice := sluiceAt(time.Now)
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	generated := false
	change := func(changes ...string) func() {
		return func() {
			write("OLD.yaml", before)
			if write("limits.yaml", before); !generated {
				var out strings.Builder
				if code := sluice(t.Context(), []string{"generate"}, &out, &out); code != 0 {
					t.Fatal(out.String())
				}
				generated = true
			}
			after := strings.NewReplacer(changes...).Replace(before)
			if after == before {
				t.Fatal(changes, "changes nothing")
			}
			write("limits.yaml", after)
		}
	}
	write("go.mod", "module example.com/app\n\ngo 1.26\n")
	day := regexp.MustCompile(`(?m)^ +day: .*\n`).FindString(before)
	const generatedAnd = "the package is generated, and "
	given := map[string]func(){
		generatedAnd + "rps of a key is 80 under revision 1": change("capacity: 50,", "capacity: 80,"),
		generatedAnd + "rps of a key is 80 under revision 2": change("capacity: 50,", "capacity: 80,",
			"revision: 1", "revision: 2"),
		"day is not in limits.yaml any more, and OLD.yaml has it": change(day, "", "revision: 1", "revision: 2"),
	}
	keepNamed(given, page)
	return doccheck.World{Sluice: sluice, Given: given}
}
