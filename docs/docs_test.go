package docs_test

import (
	"context"
	"flag"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/internal/test/doccheck"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// worlds are what documents with commands are held against.
var worlds = map[string]func(*testing.T) doccheck.World{
	"docs/aws.md":      awsDocs,
	"docs/changing.md": changingDocs,
	"docs/redis.md":    redisDocs,
	"docs/regions.md":  regionsDocs,
	"docs/runbook.md":  runbookDocs,
}

// notRun is how many blocks of each document nothing holds. A reviewer reads the reason of one more.
var notRun = map[string]int{
	"README.md":            2,
	"CONTRIBUTING.md":      1,
	"docs/architecture.md": 2,
	"docs/aws.md":          1,
	"docs/command.md":      1,
	"docs/costs.md":        1,
	"docs/demo.md":         1,
	"docs/design.md":       2,
	"docs/envoy.md":        1,
	"docs/install.md":      3,
	"docs/migration.md":    1,
	"docs/protocol.md":     2,
	"docs/regions.md":      1,
	"docs/runbook.md":      2,
	"docs/serve.md":        2,
	"docs/usage.md":        1,
}

var update = flag.Bool("update", false, "write what commands print into docs: read the diff")

// TestMain runs the tests in the root of the repository: documents name files from there, and their commands
// run there.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}

// TestDocs holds every block of README and docs to what it shows: see package doccheck.
func TestDocs(t *testing.T) {
	files, err := filepath.Glob("docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no docs: ", err)
	}
	records, err := filepath.Glob("docs/adr/*.md")
	if err != nil || len(records) == 0 {
		t.Fatal("no records: ", err)
	}
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(append(files, records...), "README.md", "CONTRIBUTING.md") {
		t.Run(file, func(t *testing.T) {
			text := read(t, file)
			alone(t)
			w := doccheck.World{Sluice: sluiceAt(time.Now)}
			if world, ok := worlds[file]; ok {
				w = world(t)
			} else {
				t.Chdir(t.TempDir())
			}
			w.Root, w.Schema = root, "limits.yaml"
			r := doccheck.Check(t.Context(), w, file, text)
			if *update {
				if err := os.WriteFile(filepath.Join(root, file), []byte(r.Fixed), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, wrong := range r.Wrong {
				t.Error(wrong)
			}
			if len(r.NotRun) != notRun[file] {
				t.Errorf(
					"%d blocks are not run, want %d: where that is right, write it into notRun",
					len(r.NotRun),
					notRun[file],
				)
			}
			t.Logf("blocks: %v; not run:\n%s", r.Kinds, strings.Join(r.NotRun, "\n"))
		})
	}
}

// alone leaves nothing of who runs the test to its commands: no profile, no credentials, no table, and no
// AWS.
func alone(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") ||
			strings.HasPrefix(name, "SLUICE_") {
			t.Setenv(name, "") // so that it comes back
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:1",
	} {
		t.Setenv(name, value)
	}
}

// sluiceAt is the command, at an instant.
func sluiceAt(now func() time.Time) func(context.Context, []string, io.Writer, io.Writer) int {
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return cli.Program{Stdout: stdout, Stderr: stderr, Now: now}.Run(ctx, args)
	}
}

// changingDocs has the limits.yaml of docs/changing.md, in a module.
func changingDocs(t *testing.T) doccheck.World {
	t.Helper()
	before := read(t, "limits.yaml")
	t.Chdir(t.TempDir())
	write := func(name, text string, changes ...string) string {
		t.Helper()
		for i := 0; i < len(changes); i += 2 {
			if !strings.Contains(text, changes[i]) {
				t.Fatalf("%s has no %q", name, changes[i])
			}
			text = strings.Replace(text, changes[i], changes[i+1], 1)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return text
	}
	write("go.mod", "module example.com/app\n\ngo 1.26\n")
	var after string
	sluice := sluiceAt(time.Now)
	return doccheck.World{
		Sluice: sluice,
		Given: map[string]func(){
			"OLD.yaml is the demo's, and limits.yaml drops rpm and has on_unavailable: allow": func() {
				write("OLD.yaml", before)
				after = write("limits.yaml", before,
					"revision: 1 ", "revision: 2 ",
					"      rpm: {doc: requests per minute, capacity: 100, every: 1m, per_call: 1}\n", "",
					"        rpm: {capacity: 1_000}\n", "",
					"on_unavailable: local", "on_unavailable: allow")
			},
			"that limits.yaml was generated, and tpm changes": func() {
				var out strings.Builder
				if code := sluice(t.Context(), []string{"generate"}, &out, &out); code != 0 {
					t.Fatal(out.String())
				}
				write("limits.yaml", after, "burst: 15_000", "burst: 20_000")
			},
		},
	}
}

// awsDocs has what docs/aws.md shows of commands: an engine without a table.
func awsDocs(t *testing.T) doccheck.World {
	t.Helper()
	return doccheck.World{
		Sluice: sluiceAt(time.Now),
		Real:   []string{"http://127.0.0.1:8000", serve(t, memdynamo.New())},
	}
}

// serve has commands find an engine, as they do with the variables that `sluice dev` prints, and returns its
// URL.
func serve(t *testing.T, engine *memdynamo.Engine) string {
	t.Helper()
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": server.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "dev",
		"AWS_SECRET_ACCESS_KEY": "dev",
	} {
		t.Setenv(name, value)
	}
	return server.URL
}
