package docs_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/examples/regionsync/limits"
	"github.com/sluice-go/sluice/internal/test/doccheck"
	"github.com/sluice-go/sluice/internal/test/regionscale"
	"github.com/sluice-go/sluice/internal/test/regionsim"
	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// site is one of docs/regions.md's regions: an engine that has its table.
type site struct {
	name   string
	engine *memdynamo.Engine
	url    string
}

// twoRegions share out the limits of examples/regionsync, on a clock that moves by a window with each cycle.
type twoRegions struct {
	t     *testing.T
	now   time.Time
	sites []site
}

// regional makes the regions' tables, and has commands find where they publish, and limits.yaml.
func regional(t *testing.T) *twoRegions {
	t.Helper()
	w := &twoRegions{t: t, now: redisTime}
	for _, name := range []string{"eu-central-1", "us-east-1"} {
		engine := memdynamo.New(memdynamo.WithClock(w))
		if _, err := operator.CreateTable(t.Context(), engine.Client(), usageTable); err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(engine)
		t.Cleanup(server.Close)
		w.sites = append(w.sites, site{name, engine, server.URL})
	}
	t.Setenv("SLUICE_SNAPSHOTS", "file://"+t.TempDir())
	t.Chdir("examples/regionsync")
	return w
}

// Now implements runtime.Clock.
func (w *twoRegions) Now() time.Time { return w.now }

// After implements runtime.Clock: nothing waits for it.
func (w *twoRegions) After(time.Duration) <-chan time.Time { return nil }

// run runs a command line of sluice in the region that it names, and returns all that it printed.
func (w *twoRegions) run(line string) string {
	w.t.Helper()
	var out strings.Builder
	w.sluice(w.t.Context(), strings.Fields(line), &out, &out)
	return out.String()
}

// sluice runs a command line on the table of the region that it names.
func (w *twoRegions) sluice(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	for _, s := range w.sites {
		if i := slices.Index(args, "--region"); i >= 0 && args[i+1] == s.name {
			args = append(args, "--endpoint", s.url)
		}
	}
	return sluiceAt(w.Now)(ctx, args, stdout, stderr)
}

// spend has user-123 make so many requests in a region.
func (w *twoRegions) spend(s site, requests int64) {
	w.t.Helper()
	lim, err := limits.New(dynamo.New(s.engine.Client(), usageTable), runtime.WithClock(w))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := lim.GPT4.Acquire(w.t.Context(), limits.User{ID: "123"}, limits.GPT4Cost{RPM: requests,
		TPM: 60 * requests}); err != nil {
		w.t.Fatal(err)
	}
}

// minute has a window pass, in which user-123 makes so many requests in each region, and then a cycle of
// each.
func (w *twoRegions) minute(requests ...int64) {
	w.t.Helper()
	w.now = w.now.Add(50 * time.Second)
	for i, n := range requests {
		w.now = w.now.Add(5 * time.Second)
		w.spend(w.sites[i], n)
		w.sync(i)
	}
}

// sync has one cycle of a region.
func (w *twoRegions) sync(i int) {
	w.t.Helper()
	if out := w.run("region sync --once --region " + w.sites[i].name); !strings.HasPrefix(
		out,
		w.sites[i].name+": ",
	) {
		w.t.Fatal(out)
	}
}

// regionsDocs has the commands of docs/regions.md, in two regions whose demand changes.
func regionsDocs(t *testing.T) doccheck.World {
	t.Helper()
	w := regional(t)
	for range 10 {
		w.minute(45, 15)
	}
	return doccheck.World{
		Sluice: w.sluice,
		Real:   []string{"s3://quotas/limits", os.Getenv("SLUICE_SNAPSHOTS")},
		Given: map[string]func(){
			"the demand is another": func() {
				w.minute(40, 200)
				w.now = w.now.Add(55 * time.Second)
				w.spend(w.sites[0], 40)
			},
			"the giver has lowered its own, and has given; the other one has not read that yet": func() {
				w.sync(0)
				w.now = w.now.Add(5 * time.Second)
				w.spend(w.sites[1], 200)
				w.sync(1)
				w.now = w.now.Add(55 * time.Second)
				w.spend(w.sites[0], 40)
				w.sync(0)
			},
			"the other one has read it": func() {
				w.now = w.now.Add(5 * time.Second)
				w.spend(w.sites[1], 200)
				w.sync(1)
			},
		},
	}
}

// TestDocsRegionsCosts holds what docs/regions.md says that a cycle costs against what the engine bills for
// the first region, which has all, and then gives to the second.
func TestDocsRegionsCosts(t *testing.T) {
	want := costs(t)
	w := regional(t)
	const users = 300
	spend := func(s site) {
		t.Helper()
		lim, err := limits.New(dynamo.New(s.engine.Client(), usageTable), runtime.WithClock(w))
		if err != nil {
			t.Fatal(err)
		}
		for i := range users {
			if _, err := lim.GPT4.Acquire(t.Context(), limits.User{ID: fmt.Sprintf("%036d", i)},
				limits.GPT4Cost{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, reads := map[string]float64{}, math.Inf(1)
	for cycle := range 12 {
		w.now = w.now.Add(time.Minute)
		spend(w.sites[0])
		before := w.sites[0].engine.Consumed()
		w.sync(0)
		after := w.sites[0].engine.Consumed()
		billed := func(operation string) memdynamo.Units {
			was, is := before.Tables[usageTable][operation].Applied, after.Tables[usageTable][operation].Applied
			return memdynamo.Units{Read: is.Read - was.Read, Write: is.Write - was.Write}
		}
		if cycle > 3 { // it has books
			reads = min(reads, billed("BatchGetItem").Read) // one that is slow is sent again
			got["kind"] = reads - users/2
			got["bucket"] = math.Round(100*(users/2+billed("Query").Read)/users) / 100
			got["heartbeat"] = billed("PutItem").Write
		}
		if n := (after.Requests["UpdateItem"] - before.Requests["UpdateItem"]); n == users {
			kind := "quota"
			if _, first := got["first"]; !first {
				kind = "first"
			}
			got[kind] = billed("UpdateItem").Write / users
		}
		if cycle > 5 {
			w.now = w.now.Add(time.Second)
			spend(w.sites[1])
			w.sync(1)
		}
	}
	if want["bucket"] != regionsim.BucketUnits || want["kind"] != regionsim.KindUnits {
		t.Errorf(
			"docs/regions.md has %v and %v, the simulator bills %v and %v",
			want["bucket"],
			want["kind"],
			regionsim.BucketUnits,
			regionsim.KindUnits,
		)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/regions.md (-), the engine (+):\n%s", diff)
	}
}

// costs are the units in docs/regions.md's table, by what they are of.
func costs(t *testing.T) map[string]float64 {
	t.Helper()
	_, table, _ := strings.Cut(read(t, "docs/regions.md"), "| what | units |\n|---|--:|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	all := map[string]float64{}
	for i, name := range []string{"bucket", "kind", "quota", "first", "heartbeat"} {
		cells := strings.Split(strings.Split(table, "\n")[i], "|")
		n, err := strconv.ParseFloat(strings.TrimSpace(cells[2]), 64)
		if err != nil {
			t.Fatal(cells, err)
		}
		all[name] = n
	}
	return all
}

// TestDocsRegionsExample recomputes docs/regions.md's example, with the writes that `make bench` measures.
func TestDocsRegionsExample(t *testing.T) {
	const (
		writes = 157
		cycles = regionscale.Cycles
		mega   = 1_000_000
	)
	m, err := regionscale.MonthOf(writes, 0)
	if err != nil {
		t.Fatal(err)
	}
	row := func(what, cycle, month string, a regionscale.Amount) string {
		return fmt.Sprintf("| %s | %s | %s | $%.2f |\n", what, cycle, month, a.Dollars())
	}
	millions := func(a regionscale.Amount) string { return fmt.Sprintf("%.1f million", a.N/mega) }
	count := func(a regionscale.Amount) string { return texttable.Count(int64(a.N)) }
	each := func(a regionscale.Amount) string { return fmt.Sprintf("%.0f", a.N/cycles) }
	packed := float64(m.Packed) / mega
	want := "| what | in a cycle | in 30 days | dollars |\n|---|--:|--:|--:|\n" +
		row("read units", fmt.Sprintf("%d, and the audit", regionscale.Resources), millions(m.Reads), m.Reads) +
		row("write units", each(m.Writes), millions(m.Writes), m.Writes) +
		row("reads of the stream", each(m.Stream), millions(m.Stream), m.Stream) +
		row(fmt.Sprintf("PUT to S3: %.1f MB, compressed %.1f", float64(m.Plain)/mega, packed), each(m.Puts),
			count(m.Puts), m.Puts) +
		row("GET from S3", each(m.Gets), count(m.Gets), m.Gets) +
		row("from S3, of the other regions", fmt.Sprintf("%.1f MB", packed*(regionscale.Regions-1)),
			fmt.Sprintf("%.0f GB", m.Transfer.N), m.Transfer) +
		fmt.Sprintf("| in all | | | $%.2f |\n", m.Dollars())
	if docs := read(t, "docs/regions.md"); !strings.Contains(docs, want) ||
		!strings.Contains(docs, fmt.Sprintf(" %d quotas are written in a cycle", writes)) {
		t.Errorf("docs/regions.md does not say\n%s", want)
	}
	if m.Dollars() > 45 {
		t.Errorf("it comes to $%.2f in 30 days, want at most $45", m.Dollars())
	}
}
