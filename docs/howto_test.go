package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/doccheck"
)

// page is a tutorial or a how-to page.
type page struct {
	world  func(*testing.T) doccheck.World // nil: no more than an empty folder
	notRun int                             // how many of its blocks nothing holds
}

// howTos are the pages of docs/how-to.
var howTos = map[string]page{
	"docs/how-to/per-ip.md":               {},
	"docs/how-to/per-customer.md":         {world: customers},
	"docs/how-to/plans.md":                {notRun: 1},
	"docs/how-to/models.md":               {notRun: 1},
	"docs/how-to/audit.md":                {notRun: 1},
	"docs/how-to/prefetch.md":             {},
	"docs/how-to/daily-limits.md":         {},
	"docs/how-to/calendar-windows.md":     {world: billed},
	"docs/how-to/skip-or-401.md":          {},
	"docs/how-to/unknown-cost.md":         {},
	"docs/how-to/bulk-changes.md":         {world: customers},
	"docs/how-to/erase-a-user.md":         {world: leaver},
	"docs/how-to/in-flight.md":            {world: called},
	"docs/how-to/several-services.md":     {world: customers},
	"docs/how-to/testing.md":              {},
	"docs/how-to/ci.md":                   {world: changes, notRun: 1},
	"docs/how-to/alarms.md":               {},
	"docs/how-to/regions.md":              {notRun: 1},
	"docs/how-to/from-redis-rate.md":      {},
	"docs/how-to/from-per-limit-items.md": {notRun: 1},
	"docs/how-to/change-a-live-schema.md": {world: changes},
	"docs/how-to/cost-estimate.md":        {world: leaver},
}

// TestHowTo holds every block of the how-to pages to what it shows, and the list of pages to the pages.
func TestHowTo(t *testing.T) { checkPages(t, "docs/how-to", howTos) }

// checkPages holds the pages of a folder to what they show, as TestDocs does.
func checkPages(t *testing.T, folder string, pages map[string]page) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	list := read(t, folder+"/README.md")
	for _, file := range files {
		name := path.Base(file)
		p, listed := pages[file]
		if name != "README.md" && (!listed || !strings.Contains(list, "]("+name+")")) {
			t.Errorf("%s is missing in %s/README.md or in the pages of the test", file, folder)
		}
		t.Run(name, func(t *testing.T) {
			text := read(t, file)
			alone(t)
			w := doccheck.World{Sluice: sluiceAt(time.Now)}
			if p.world != nil {
				w = p.world(t)
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
			if len(r.NotRun) != p.notRun {
				t.Errorf("%d blocks are not run, want %d:\n%s", len(r.NotRun), p.notRun, strings.Join(r.NotRun, "\n"))
			}
		})
	}
	for file := range pages {
		if !slices.Contains(files, file) {
			t.Errorf("there is no %s", file)
		}
	}
}
