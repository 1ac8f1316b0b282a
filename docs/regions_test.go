package docs_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
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
	"github.com/sluice-go/sluice/internal/test/regionsim"
	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/region"
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

// snapshotSize returns the bytes of a snapshot of so many entities, as it is and compressed.
func snapshotSize(t *testing.T, entities, resources int) (plain, packed int) {
	t.Helper()
	dice := rand.New(rand.NewPCG(1, 2))
	snap := &region.Snapshot{
		Version:     region.Version,
		Region:      "eu-central-1",
		Epoch:       1,
		Sequence:    100_000,
		GeneratedAt: redisTime.UnixMilli(),
		Window:      10_000,
	}
	for i := range entities {
		entity := fmt.Sprintf("user-%08x-%04x-%012x", i, dice.Uint32N(1<<16), dice.Uint64N(1<<48))
		for r := range resources {
			held := dice.Int64N(1000)
			snap.Entries = append(snap.Entries, region.Entry{
				Entity: entity, Resource: fmt.Sprintf("model-%d", r),
				Born: snap.GeneratedAt - dice.Int64N(
					1e8,
				), Used: snap.GeneratedAt - dice.Int64N(1e5), Expires: snap.GeneratedAt/1000 + 120,
				Gen:   snap.GeneratedAt - dice.Int64N(1e8),
				Wrote: snap.GeneratedAt - dice.Int64N(1e7),
				Limits: []region.Holding{{
					Limit: "rpm", TC: dice.Int64N(1e10), TK: dice.Int64N(1e6), CP: held * 1000, BX: held * 1000,
					RA: held * 1000, RP: 60_000,
					Rate: dice.Int64N(1e4), Whole: 1000, Held: held, Quota: held, Written: held,
					Given: map[string]int64{
						"us-east-1": dice.Int64N(1e5),
					}, Taken: map[string]int64{"ap-south-1": dice.Int64N(1e5)},
				}},
			})
		}
	}
	text, err := json.Marshal(snap)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return len(text), out.Len()
}

// TestDocsRegionsExample recomputes docs/regions.md's example.
func TestDocsRegionsExample(t *testing.T) {
	const (
		entities, resources, regions, writes = 2_000, 10, 3, 155
		cycles                               = 30 * 24 * 60 * 6 // of 10 s
		days                                 = 30
		// of four shards, each twice in a fifth of a window: for records, and to find that there are no more
		streamed = 4 * 2 * 5 * cycles
		mega     = 1_000_000
	)
	units := costs(t)
	reads := cycles*resources*units["kind"] + days*entities*resources*units["bucket"]
	written := writes*units["quota"] + units["heartbeat"]
	plain, packed := snapshotSize(t, entities, resources)
	got := float64(packed) * (regions - 1) * cycles / 1e9 // GB
	all := 0.0
	dollars := func(n, price float64) string {
		all += n * price
		return fmt.Sprintf("$%.2f", n*price)
	}
	want := "| what | in a cycle | in 30 days | dollars |\n|---|--:|--:|--:|\n" +
		fmt.Sprintf("| read units | %.0f, and the audit | %.1f million | %s |\n",
			resources*units["kind"], reads/mega, dollars(reads/mega, 0.125)) +
		fmt.Sprintf("| write units | %.0f | %.1f million | %s |\n", written, written*cycles/mega,
			dollars(written*cycles/mega, 0.625)) +
		fmt.Sprintf("| reads of the stream | %d | %.1f million | %s |\n", streamed/cycles, float64(streamed)/mega,
			dollars(float64(streamed)/mega, 0.20)) +
		fmt.Sprintf("| PUT to S3: %.1f MB, compressed %.1f | 1 | %s | %s |\n", float64(plain)/mega,
			float64(packed)/mega, texttable.Count(cycles), dollars(float64(cycles)/mega, 5)) +
		fmt.Sprintf("| GET from S3 | %d | %s | %s |\n", regions, texttable.Count(regions*cycles),
			dollars(float64(regions*cycles)/mega, 0.40)) +
		fmt.Sprintf("| from S3, of the other regions | %.1f MB | %.0f GB | %s |\n",
			float64(packed)*(regions-1)/mega, got, dollars(got, 0.02))
	want += fmt.Sprintf("| in all | | | $%.2f |\n", all)
	if docs := read(t, "docs/regions.md"); !strings.Contains(docs, want) {
		t.Errorf("docs/regions.md does not say\n%s", want)
	}
	if all > 45 {
		t.Errorf("it comes to $%.2f in 30 days, want at most $45", all)
	}
}
