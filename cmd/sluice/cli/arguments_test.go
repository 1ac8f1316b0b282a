package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/gen"
)

// tree is a schema whose resources charge one another's kinds in all the ways there are.
const tree = `version: 1
owner: acme
revision: 1
go: {package: limits}
entities:
  org: {}
  project: {parent: org}
  user: {parent: project}
resources:
  gpt-4:
    limits:
      rpm: {capacity: 100, every: 1m, per_call: 10}
      tpm: {capacity: 10_000, burst: 15_000, every: 1m}
    entities:
      project: {rpm: {capacity: 1_000}, tpm: {capacity: 100_000}}
      user: {}
  embeddings:
    limits: {rps: {capacity: 20, every: 1s}}
    entities: {project: {}}
    cascade: none
`

// schemaFile writes a schema and returns its path.
func schemaFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// notWhole ends the message about a number of tokens that is none.
const notWhole = "is not a whole number from 1 to 1_000_000_000_000: write digits, and '_' between digits " +
	"if you like"

// TestBadArguments: what is wrong with a command line is said before anything is asked of the table, and so
// before anything can be written.
func TestBadArguments(t *testing.T) {
	sequential(t)
	var sent atomic.Int64
	table := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent.Add(1)
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"com.amazon.coral.validate#ValidationException","message":"not today"}`)
	}))
	t.Cleanup(table.Close)
	file := schemaFile(t, tree)
	for _, test := range []struct{ command, want string }{
		{"entity put user", `entity "user" is not <kind>-<id>: write it as it is stored, such as user-123`},
		{"entity put usr-1",
			`entity "usr-1" is of kind usr, which limits.yaml does not have: it has org, project and user`},
		{"entity put user-", `entity "user-" is not <kind>-<id>: write it as it is stored, such as user-123`},
		{"entity put user-a#b",
			`id of user "a#b" contains '#', which separates the parts of a key: replace or encode it`},
		{"entity put user-" + strings.Repeat("x", 257), `id of user "` + strings.Repeat("x", 40) +
			`..." has 257 bytes, more than 256: use a shorter id, or a hash of it`},
		{"entity put user-1 --parent user-1", `parent "user-1" is the entity itself: name the one it belongs to`},
		{"entity put user-1 --parent user-2",
			`parent "user-2" is of kind user: the parent of kind user is of kind project, such as project-123`},
		{"entity put user-1 --parent org-2",
			`parent "org-2" is of kind org: the parent of kind user is of kind project, such as project-123`},
		{"entity put org-1 --parent project-2",
			`parent "project-2" cannot be stored: in limits.yaml, kind org has no parent: leave it out`},
		{"entity put user-1 --parent 7",
			`parent "7" is not <kind>-<id>: write it as it is stored, such as user-123`},
		{"entity put user-1 --parent project-#",
			`id of project "#" contains '#', which separates the parts of a key: replace or encode it`},
		{"entity put user-1 --parent=",
			`--parent is empty: pass an entity such as project-7, or leave the flag out to keep the stored parent`},
		{"entity show 1", `entity "1" is not <kind>-<id>: write it as it is stored, such as user-123`},
		{"entity children team-1",
			`entity "team-1" is of kind team, which limits.yaml does not have: it has org, project and user`},
		{"entity delete user-", `entity "user-" is not <kind>-<id>: write it as it is stored, such as user-123`},

		{"override get user-1 gpt4", `FILE has no resource "gpt4": did you mean "gpt-4"?`},
		{"override get user-1 images", `FILE has no resource "images": it can be "gpt-4" or "embeddings"`},
		{"override get usr gpt-4",
			`FILE has no kind "usr", and "usr" is no entity, since it has no '-': did you mean "user"?`},
		{"override get user-1 embeddings",
			`embeddings has no bucket for kind user: pass an entity or a kind of project`},
		{"override get org gpt-4",
			`gpt-4 has no bucket for kind org: pass an entity or a kind of project, user`},
		{"override get user-a#b gpt-4",
			`id of user "a#b" contains '#', which separates the parts of a key: replace or encode it`},
		{"override list gpt4", `FILE has no resource "gpt4": did you mean "gpt-4"?`},
		{"override explain user gpt-4",
			`entity "user" is not <kind>-<id>: write it as it is stored, such as user-123`},
		{"override explain org-1 gpt-4",
			`gpt-4 has no bucket for kind org: pass an entity or a kind of project, user`},
		{"override delete user-1 gpt-4 rmp", `gpt-4 has no limit "rmp": it can be rpm or tpm`},

		{"override delete user-1 gpt-4 --revision=",
			`--revision is empty: pass the revision that get prints, or none if nothing is overridden`},
		{"override set user-1 gpt-4 rpm=100 --revision=",
			`--revision is empty: pass the revision that get prints, or none if nothing is overridden`},
		{"override set user-1 gpt-4", `expected "<limit> ..."`},
		{"override set user-1 gpt-4 rpm", `"rpm" is not LIMIT=CAPACITY: write it like rpm=100`},
		{"override set user-1 gpt-4 rps=1", `gpt-4 has no limit "rps": did you mean "rpm"?`},
		{"override set user-1 gpt-4 rpm=", `"rpm=": capacity "" is no number: write digits`},
		{"override set user-1 gpt-4 rpm=-5",
			`"rpm=-5": capacity "-5" ` + notWhole},
		{"override set user-1 gpt-4 rpm=1.5",
			`"rpm=1.5": capacity "1.5" ` + notWhole},
		{"override set user-1 gpt-4 rpm=1__0",
			`"rpm=1__0": capacity "1__0" has a '_' that is not between two digits`},
		{"override set user-1 gpt-4 rpm=0",
			`"rpm=0": capacity 0 is not above 0: a limit that admits nothing is none, raise it`},
		{"override set user-1 gpt-4 rpm=2_000_000_000_000",
			`"rpm=2_000_000_000_000": capacity 2000000000000 is above 1000000000000: lower it`},
		{"override set user-1 gpt-4 tpm=99999999999999999999/1d",
			`"tpm=99999999999999999999/1d": capacity is above 1000000000000: lower it`},
		{"override set user-1 gpt-4 rpm=200,burst=100",
			`"rpm=200,burst=100": burst 100 is below the capacity 200: raise the burst or lower the capacity`},
		{"override set user-1 gpt-4 rpm=5",
			`"rpm=5": burst 5 is below the 10 that a call takes (per_call), so that none could be served: raise it`},
		{"override set user-1 gpt-4 rpm=100/5",
			`"rpm=100/5": ` + notPeriod("5")},
		{"override set user-1 gpt-4 rpm=100/0", `"rpm=100/0": period "0" is too short: it must be at least 1ms`},
		{"override set user-1 gpt-4 rpm=100/",
			`"rpm=100/": period "" is no duration: write a number and ms, s, m, h or d, such as 1m`},
		{"override set user-1 gpt-4 rpm=100/1500us",
			`"rpm=100/1500us": period "1500us" is too fine: it must be whole milliseconds`},
		{"override set user-1 gpt-4 rpm=100/0s", `"rpm=100/0s": period "0s" is too short: it must be at least 1ms`},
		{"override set user-1 gpt-4 rpm=100/400d",
			`"rpm=100/400d": period "400d" is too long: it can be at most 366d`},
		{"override set user-1 gpt-4 rpm=100_000/1ms",
			`"rpm=100_000/1ms": refill 100000 every 1ms is above 10000000 a second: lower the refill or raise the ` +
				`period`},
		{"override set user-1 gpt-4 rpm=100/366d,refill=1", `"rpm=100/366d,refill=1": ` +
			`burst 100 takes more than 3650 days to be full from empty, at 1 every 8784h0m0s: raise the refill or ` +
			`lower the burst`},
		{"override set user-1 gpt-4 rpm=100,bursts=200",
			`"rpm=100,bursts=200": "bursts" cannot follow the capacity: did you mean "burst"?`},
		{"override set user-1 gpt-4 rpm=100,",
			`"rpm=100,": "" cannot follow the capacity: it can be burst or refill`},
		{"override set user-1 gpt-4 rpm=100,burst", `"rpm=100,burst": burst "" is no number: write digits`},
		{"override set user-1 gpt-4 rpm=100,refill=x",
			`"rpm=100,refill=x": refill "x" ` + notWhole},
		{"override set user-1 gpt-4 rpm=100,burst=200,burst=300",
			`"rpm=100,burst=200,burst=300": burst is given twice: leave one out`},
		{"override set user-1 gpt-4 rpm=100 rpm=200", `limit rpm is given twice: leave one out`},

		{"reset user gpt-4",
			`entity "user" is not of the form kind-id: write it as it is stored, such as user-123`},
		{"reset user-1 gpt-4 --limit=",
			`--limit is empty: pass the name of a limit, such as rpm, or leave the flag out to fill all`},
		{"reset user-1 GPT#4",
			`resource "GPT#4" cannot be a name in limits.yaml: write it as there, such as gpt-4`},
	} {
		args := append(strings.Fields(test.command), "--endpoint", table.URL)
		if args[0] != "reset" {
			args = append(args, "--file", file)
		}
		var out, errs strings.Builder
		code := cli.Program{Stdout: &out, Stderr: &errs, Now: start.Local}.Run(t.Context(), args)
		want := "sluice: " + strings.ReplaceAll(test.want, "FILE", file) + "; run `sluice " + fullPath(args) +
			" --help`\n"
		if code != 2 || out.String() != "" || errs.String() != want {
			t.Errorf("%s: exit code %d\n%s got %s\nwant %s", test.command, code, out.String(), errs.String(), want)
		}
	}
	if n := sent.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}

	// The control: with nothing wrong, a request is sent.
	program := cli.Program{Stdout: io.Discard, Stderr: io.Discard, Now: start.Local}
	code := program.Run(t.Context(), []string{"override", "set", "user-1", "gpt-4", "rpm=100", "--endpoint",
		table.URL, "--file", file})
	if code != 1 || sent.Load() != 1 {
		t.Errorf("exit code %d after %d requests, want 1 after 1", code, sent.Load())
	}
}

// fullPath returns the names of a command, without its arguments.
func fullPath(args []string) string {
	if args[0] == "reset" {
		return args[0]
	}
	return fmt.Sprint(args[0], " ", args[1])
}

// TestBadSchema: a schema with mistakes is none to hold arguments against.
func TestBadSchema(t *testing.T) {
	file := schemaFile(t, strings.Replace(tree, "burst: 15_000", "burst: 1", 1))
	code, out, errs := sluice(t, start, "override", "get", "user-1", "gpt-4", "--file", file)
	expect(t, code, out, errs, 1, "", file+
		":13:38: BURST_BELOW_CAPACITY: burst 1 of limit \"tpm\" of resource \"gpt-4\" "+
		"is below its capacity 10_000: raise burst, or leave it out (it is capacity then)\n")

	code, out, errs = sluice(t, start, "entity", "show", "user-1")
	expect(t, code, out, errs, 1, "",
		"sluice: read schema: open limits.yaml: no such file or directory (sluice init writes one); "+
			"pass --file, or run the command in the schema's folder\n")
}

// notPeriod returns what is wrong with a period. The wording itself is under test in gen/internal/schema.
func notPeriod(text string) string {
	_, why := gen.ParsePeriod(text)
	return fmt.Sprintf("period %q %s", text, why)
}
