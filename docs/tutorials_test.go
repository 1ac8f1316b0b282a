package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/doccheck"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"

	llmgateway "github.com/sluice-go/sluice/examples/llmgateway/limits"
	publicapi "github.com/sluice-go/sluice/examples/publicapi/limits"
)

// tutorials are the pages of docs/tutorials.
var tutorials = map[string]page{
	"docs/tutorials/llm-gateway.md":                {world: gatewayTutorial, notRun: 4},
	"docs/tutorials/public-api.md":                 {world: publicTutorial, notRun: 4},
	"docs/tutorials/beside-an-existing-limiter.md": {world: besideTutorial, notRun: 1},
}

// programs are the folders of the tutorials' programs, and the module in which a reader writes them.
var programs = map[string]struct{ folder, module string }{
	"docs/tutorials/llm-gateway.md":                {"examples/llmgateway", "example.com/gateway"},
	"docs/tutorials/public-api.md":                 {"examples/publicapi", "example.com/api"},
	"docs/tutorials/beside-an-existing-limiter.md": {"examples/beside", "example.com/api"},
}

// TestTutorials holds every block of the tutorials to what it shows.
func TestTutorials(t *testing.T) { checkPages(t, "docs/tutorials", tutorials) }

// TestTutorialPrograms: the Go blocks of a tutorial are its program and the program's test, word for word,
// for a reader's module.
func TestTutorialPrograms(t *testing.T) {
	block := regexp.MustCompile("(?ms)^<!-- held by TestTutorialPrograms -->\n```go\n(.*?)^```$")
	for file, p := range programs {
		var shown, want strings.Builder
		for i, b := range block.FindAllStringSubmatch(read(t, file), -1) {
			if i > 0 {
				shown.WriteString("\n")
			}
			shown.WriteString(b[1])
		}
		want.WriteString(read(t, p.folder+"/main.go") + "\n" + read(t, p.folder+"/main_test.go"))
		ours := strings.ReplaceAll(want.String(), "github.com/sluice-go/sluice/"+p.folder, p.module)
		if diff := cmp.Diff(ours, shown.String()); diff != "" {
			t.Errorf("%s does not show %s (-program +shown):\n%s", file, p.folder, diff)
		}
	}
}

// readerOf is the module of a reader who follows a tutorial, with an engine. Each state is five seconds after
// the calls that bring it about.
func readerOf(t *testing.T, file string, given map[string]func(runtime.Store) error) doccheck.World {
	t.Helper()
	p := programs[file]
	schema := read(t, p.folder+"/limits.yaml")
	clock := &handClock{redisTime}
	engine := memdynamo.New(memdynamo.WithClock(clock))
	if _, err := operator.CreateTable(t.Context(), engine.Client(), usageTable); err != nil {
		t.Fatal(err)
	}
	serve(t, engine)
	t.Chdir(t.TempDir())
	w := doccheck.World{Sluice: sluiceAt(clock.Now), Given: map[string]func(){
		"limits.yaml is written": func() {
			for name, text := range map[string]string{
				"go.mod": "module " + p.module + "\n\ngo 1.26\n", "limits.yaml": schema,
			} {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		},
	}}
	for state, bring := range given {
		w.Given[state] = func() {
			if err := bring(dynamo.New(engine.Client(), usageTable)); err != nil {
				t.Fatal(err)
			}
			clock.now = clock.now.Add(5 * time.Second)
		}
	}
	return w
}

// holdGenerated fails if the reader's commands, in the end, have not written the package of an example.
func holdGenerated(t *testing.T, root string) {
	t.Helper()
	files, err := filepath.Glob(root + "/limits/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(root, "has no package", err)
	}
	t.Cleanup(func() { // before readerOf's folder is left
		for _, file := range files {
			name, _ := filepath.Rel(root, file)
			if diff := cmp.Diff(read(t, file), read(t, name)); diff != "" {
				t.Errorf("%s generates another %s (-example +reader):\n%s", root, name, diff)
			}
		}
	})
}

// gatewayTutorial is the reader of docs/tutorials/llm-gateway.md.
func gatewayTutorial(t *testing.T) doccheck.World {
	t.Helper()
	root, _ := filepath.Abs("examples/llmgateway")
	w := readerOf(t, "docs/tutorials/llm-gateway.md", map[string]func(runtime.Store) error{
		"alice has called four times": func(s runtime.Store) error {
			lim, err := llmgateway.New(s, runtime.WithClock(&handClock{redisTime}))
			alice := llmgateway.User{ID: "alice", Project: llmgateway.Project{ID: "app"}}
			for n := 0; err == nil && n < 3; n++ {
				_, err = lim.Chat.Acquire(t.Context(), alice, llmgateway.ChatCost{TPM: 6})
			}
			return err
		},
	})
	holdGenerated(t, root)
	return w
}

// publicTutorial is the reader of docs/tutorials/public-api.md.
func publicTutorial(t *testing.T) doccheck.World {
	t.Helper()
	root, _ := filepath.Abs("examples/publicapi")
	w := readerOf(t, "docs/tutorials/public-api.md", map[string]func(runtime.Store) error{
		"acme has called twice": func(s runtime.Store) error {
			lim, err := publicapi.New(s, runtime.WithClock(&handClock{redisTime}))
			for n := 0; err == nil && n < 2; n++ {
				_, err = lim.API.Acquire(t.Context(), publicapi.Key{ID: "acme"}, publicapi.APICost{})
			}
			return err
		},
	})
	holdGenerated(t, root)
	return w
}

// besideTutorial is the reader of docs/tutorials/beside-an-existing-limiter.md.
func besideTutorial(t *testing.T) doccheck.World {
	t.Helper()
	w := readerOf(t, "docs/tutorials/beside-an-existing-limiter.md", nil)
	w.Given["shadow is out of limits.yaml"] = func() {
		before := read(t, "limits.yaml")
		after := regexp.MustCompile(`(?m)^ +shadow: true.*\n`).ReplaceAllString(before, "")
		if err := os.WriteFile("OLD.yaml", []byte(before), 0o600); err != nil || after == before {
			t.Fatal(err)
		}
		if err := os.WriteFile("limits.yaml", []byte(after), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}
