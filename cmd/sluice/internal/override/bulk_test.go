package override

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/redistest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// demo is the schema of the repository.
func demo(t *testing.T) *schemafile.Schema {
	t.Helper()
	s, err := schemafile.Flag{File: "../../../../limits.yaml"}.Read()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// onTable returns overrides in a new table.
func onTable(t *testing.T) (*memdynamo.Engine, store.OverrideStore) {
	t.Helper()
	memory := memdynamo.New()
	client := memory.Client()
	return memory, operator.NewOverrides(client, dynamotest.Table(t, client, operator.Table), time.Now)
}

// exported returns what export writes.
func exported(t testing.TB, as string, from store.OverrideStore, specs []*store.Spec) string {
	t.Helper()
	var out bytes.Buffer
	if _, _, err := writeRows(context.Background(), &out, newProgress(quiet()), as, from, specs); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// read returns the rows of a file that fit the schema.
func read(t testing.TB, s *schemafile.Schema, as, file string) []imported {
	t.Helper()
	rows, wrong := readRows(strings.NewReader(file), as)
	if err := wrong.err("file"); err != nil {
		t.Fatal(err)
	}
	fit, wrong := check(s, rows)
	if err := wrong.err("file"); err != nil {
		t.Fatal(err)
	}
	return fit
}

// quiet is an Env whose output nobody reads.
func quiet() program.Env { return program.Env{Stdout: io.Discard, Stderr: io.Discard, Now: time.Now} }

// load imports a file and returns how many overrides it wrote and left.
func load(
	t testing.TB, s *schemafile.Schema, as, file string, to store.OverrideStore,
) (written, unchanged int) {
	t.Helper()
	changes, unchanged, wrong, err := compare(context.Background(), quiet(), to, read(t, s, as, file), false)
	if err == nil {
		err = wrong.err("file")
	}
	if err == nil {
		written, err = apply(context.Background(), quiet(), to, changes, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return written, unchanged
}

// withoutRevisions is a file of JSON lines whose revisions are left out.
func withoutRevisions(file string) string {
	var out strings.Builder
	for line := range strings.Lines(file) {
		before, rest, _ := strings.Cut(line, `"revision":"`)
		_, after, _ := strings.Cut(rest, `"`)
		out.WriteString(before + after)
	}
	return out.String()
}

// TestRedisRoundTrip: an import of an export stores the same in an empty store, and changes nothing where it
// comes from. It holds in both formats and both stores, for kinds, and for ids with any characters.
func TestRedisRoundTrip(t *testing.T) {
	s := demo(t)
	client := redis.NewClient(&redis.Options{Addr: redistest.Addr(t)})
	t.Cleanup(func() { _ = client.Close() })
	prefixes := 0
	for name, newStore := range map[string]func() store.OverrideStore{
		"table": func() store.OverrideStore { _, o := onTable(t); return o },
		"redis": func() store.OverrideStore {
			prefixes++
			return redisstore.New(client, redisstore.Prefix(fmt.Sprintf("%s%d:", t.Name(), prefixes))).Overrides()
		},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				as := rapid.SampledFrom([]string{formatLines, formatCSV}).Draw(r, "format")
				from, to := newStore(), newStore()
				plain := true
				for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"user", "project", "user-1",
					"user-a,b", "user-a;\"b\"", "user-=1", "project-é 日", "user- x ", "user-\x1b[2J", "user-a\nb",
					"user-\u202e"}), 0, 6, rapid.ID).Draw(r, "ids") {
					l, err := s.Scope(id, s.Specs[0].Resource)
					if err != nil {
						r.Fatal(err)
					}
					plain = plain && l.Writable() == nil
					row := store.Stored{At: id, Limits: make([]*bucket.Limit, len(l.Spec.Limits))}
					for i := range row.Limits {
						n := rapid.Int64Range(0, 1e9).Draw(r, "capacity")
						if n == 0 && (i > 0 || len(row.Limits) == 1) {
							continue
						}
						more := rapid.Int64Range(0, 999).Draw(r, "more") // no whole tokens
						n += 10_000
						row.Limits[i] = &bucket.Limit{Capacity: n, Burst: n + more, Refill: n - more%7, Period: 60_000 + more}
					}
					if _, err := from.Set(context.Background(), l.Spec, row); err != nil {
						r.Fatal(err)
					}
				}
				file, lines := exported(t, as, from, s.Specs), exported(t, formatLines, from, s.Specs)
				count := strings.Count(lines, "\n")
				if written, unchanged := load(t, s, as, file, from); written != 0 || unchanged != count {
					r.Fatalf("%d written, %d unchanged of %d\n%s", written, unchanged, count, file)
				}
				if !plain {
					return // no call may name such an entity, so nothing new is stored of it
				}
				if written, _ := load(t, s, as, file, to); written != count {
					r.Fatalf("%d written of %d\n%s", written, count, file)
				}
				got := exported(t, formatLines, to, s.Specs)
				if withoutRevisions(got) != withoutRevisions(lines) {
					r.Fatalf("exported\n%simported\n%s", lines, got)
				}
			})
		})
	}
}

// lines returns a file of JSON lines with n overrides.
func lines(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, `{"at":"user-%d","resource":"gpt-4","revision":"none","limits":{"rpm":`+
			`{"capacity_milli":%d000,"burst_milli":%[2]d000,"refill_milli":%[2]d000,"period_ms":60000}}}`+"\n",
			i, i+10)
	}
	return out.String()
}

// TestImportRequests: 10,000 rows, in the usual form 2,000, take a read per hundred. Each takes a read and a
// transaction more, with the record of its change. A repetition writes nothing.
func TestImportRequests(t *testing.T) {
	longform.NoRace(t, "it counts requests; TestImportGoesOn and others import too")
	count := longform.Count(t, "rows", 10_000, 2_000)
	memory, to := onTable(t)
	s := demo(t)
	for _, want := range []struct{ written, unchanged int }{{count, 0}, {0, count}} {
		before := memory.Consumed().Requests
		written, unchanged := load(t, s, formatLines, lines(count), to)
		after := memory.Consumed().Requests
		if written != want.written || unchanged != want.unchanged {
			t.Errorf("%d written, %d unchanged, want %+v", written, unchanged, want)
		}
		if reads := after["BatchGetItem"] - before["BatchGetItem"]; reads != count/100+want.written {
			t.Errorf("%d reads, want %d", reads, count/100+want.written)
		}
		if writes := after["TransactWriteItems"] - before["TransactWriteItems"]; writes != want.written {
			t.Errorf("%d writes, want %d", writes, want.written)
		}
	}
}

// failing is a store whose writes fail after some.
type failing struct {
	store.OverrideStore
	left int
}

var errDown = errors.New("down")

func (f *failing) Set(ctx context.Context, spec *store.Spec, s store.Stored) (store.Revision, error) {
	if f.left--; f.left < 0 {
		return "", errDown
	}
	return f.OverrideStore.Set(ctx, spec, s)
}

// TestImportGoesOn: after a failure the same import writes the rest.
func TestImportGoesOn(t *testing.T) {
	s := demo(t)
	_, to := onTable(t)
	changes, _, _, err := compare(t.Context(), quiet(), to, read(t, s, formatLines, lines(20)), false)
	if err != nil {
		t.Fatal(err)
	}
	written := 0
	for i := range changes { // one at a time
		n, err := apply(t.Context(), quiet(), &failing{to, min(1, 7-i)}, changes[i:i+1], 0)
		written += n
		if err != nil {
			if !errors.Is(err, errDown) {
				t.Fatal(err)
			}
			break
		}
	}
	if written != 7 {
		t.Errorf("%d written before the failure, want 7", written)
	}
	if rest, unchanged := load(t, s, formatLines, lines(20), to); rest != 13 || unchanged != 7 {
		t.Errorf("then %d written, %d unchanged", rest, unchanged)
	}
}

// TestImportRevisions: a row does not replace an override that has changed since, nor a deletion.
func TestImportRevisions(t *testing.T) {
	s := demo(t)
	ctx := t.Context()
	_, to := onTable(t)
	load(t, s, formatLines, lines(3), to)
	spec, err := s.Resource("gpt-4")
	if err != nil {
		t.Fatal(err)
	}
	file := strings.ReplaceAll(exported(t, formatLines, to, s.Specs), `"period_ms":60000`, `"period_ms":30000`)
	at, err := to.Get(ctx, spec, "user-0", "user-1")
	if err != nil {
		t.Fatal(err)
	}
	at[0].Limits[0].Period = 90_000
	at[1].Limits[0] = nil // a deletion
	for _, one := range at {
		if _, err := to.Set(ctx, spec, one); err != nil {
			t.Fatal(err)
		}
	}
	rows := read(t, s, formatLines, file)
	changes, _, wrong, err := compare(ctx, quiet(), to, slices.Clone(rows), false)
	if len(changes) != 1 || changes[0].At != "user-2" || len(wrong) != 2 || wrong[0].line != 1 ||
		wrong[1].line != 2 || err != nil {
		t.Errorf("%d changes, %v, %v", len(changes), wrong, err)
	}
	changes, _, wrong, err = compare(ctx, quiet(), to, rows, true)
	if len(changes) != 3 || len(wrong) != 0 || err != nil {
		t.Errorf("to overwrite: %d changes, %v, %v", len(changes), wrong, err)
	}
	// Another write between the comparison and the write.
	if at, err = to.Get(ctx, spec, "user-2"); err != nil {
		t.Fatal(err)
	}
	at[0].Limits[0].Period = 90_000
	if _, err := to.Set(ctx, spec, at[0]); err != nil {
		t.Fatal(err)
	}
	written, err := apply(ctx, quiet(), to, changes, 1000)
	const want = "line 3: user-2 on gpt-4 has been changed by another write"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%d written, %v", written, err)
	}
}

// TestBadRows: all lines are checked, and each error has its line.
func TestBadRows(t *testing.T) {
	s := demo(t)
	const good = `{"capacity_milli":9000,"burst_milli":9000,"refill_milli":9000,"period_ms":1000}`
	for _, test := range []struct {
		as, file string
		want     []problem // texts are parts
	}{
		{formatLines, "\n{\n" + `{"at":"user-1","resource":"gpt-4","limits":{"rpm":` + good + "}}\n" +
			`{"at":"user-1","resource":"gpt-4","limits":{"rpm":` + good + "}}\n" +
			`{"at":"crew-1","resource":"gpt-4","limits":{"rpm":` + good + "}}\n" +
			`{"at":"user-2","resource":"gpt-5","limits":{"rpm":` + good + "}}\n" +
			`{"at":"user-3","resource":"gpt-4","limits":{"rpx":` + good + "}}\n" +
			`{"at":"user-4","resource":"gpt-4","limits":{}}` + "\n" +
			`{"at":"user-5","resource":"gpt-4","limits":{"rpm":{"capacity_milli":-1}}}` + "\n" +
			`{"at":"user-6","resource":"gpt-4","epoch":4,"limits":{"rpm":` + good + "}}\n" +
			`{"at":"user-7","more":1}`, []problem{
			{2, "write an object"}, {11, "more"}, {4, "in line 3 already"}, {5, "crew"}, {6, "gpt-5"}, {7, "rpx"},
			{8, "override delete user-4"}, {9, "limit rpm"}, {10, "regional quota"},
		}},
		{formatCSV, "at,resource\n", []problem{{1, "want the columns"}}},
		{formatCSV, strings.Join(columns, ",") + "\nuser-1,gpt-4,,rpm,9000,9000,9000,1000\n" +
			"user-1,gpt-4,7,tpm,9000,9000,9000,1000\nuser-1,gpt-4,,rpm,x,9000,9000,1000\n" +
			"\"\"\"user-\",gpt-4,,rpm,9000,9000,9000,1000\n", []problem{
			{3, "revision"}, {4, "capacity_milli x is not"}, {4, "twice"}, {5, "not a Go string"},
		}},
	} {
		rows, wrong := readRows(strings.NewReader(test.file), test.as)
		_, more := check(s, rows)
		if test.as == formatLines {
			wrong = append(wrong, more...)
		}
		if len(wrong) != len(test.want) {
			t.Errorf("%d problems, want %d: %v", len(wrong), len(test.want), wrong)
			continue
		}
		for i, want := range test.want {
			if wrong[i].line != want.line || !strings.Contains(wrong[i].text, want.text) {
				t.Errorf("%d: %s, want %d: %s", wrong[i].line, wrong[i].text, want.line, want.text)
			}
		}
	}
}

// TestProblemsOfALine: the problems of one line come in the order of its limits' names.
func TestProblemsOfALine(t *testing.T) {
	const line = `{"at":"user-1","resource":"gpt-4","revision":"none",` +
		`"limits":{"e":{},"d":{},"c":{},"b":{},"a":{}}}`
	for range 8 { // Go iterates over a map in any order
		rows, _ := readRows(strings.NewReader(line), formatLines)
		_, wrong := check(demo(t), rows)
		if !slices.IsSortedFunc(wrong, func(a, b problem) int { return strings.Compare(a.text, b.text) }) ||
			len(wrong) != 5 {
			t.Fatalf("%+v", wrong)
		}
	}
}

// blind is a store that has nothing, and forgets what it is told.
type blind struct{ store.OverrideStore }

func (blind) Get(_ context.Context, spec *store.Spec, at ...string) ([]store.Stored, error) {
	<-time.After(time.Second)
	all := make([]store.Stored, len(at))
	for i := range all {
		all[i] = store.Stored{At: at[i], Limits: make([]*bucket.Limit, len(spec.Limits))}
	}
	return all, nil
}

func (blind) Set(context.Context, *store.Spec, store.Stored) (store.Revision, error) { return "1", nil }

// List yields an override a second.
func (blind) List(_ context.Context, spec *store.Spec) iter.Seq2[store.Stored, error] {
	return func(yield func(store.Stored, error) bool) {
		for i := range 15 {
			<-time.After(time.Second)
			limits := make([]*bucket.Limit, len(spec.Limits))
			limits[0] = &bucket.Limit{Capacity: 1, Burst: 1, Refill: 1, Period: 1}
			if !yield(store.Stored{At: fmt.Sprint("user-", i), Revision: "1", Limits: limits}, nil) {
				return
			}
		}
	}
}

// TestImportRate: an import keeps to its rate, and says how far it is while it lasts: after a second, and
// then each 10 s of a log.
func TestImportRate(t *testing.T) {
	s := demo(t)
	rows := read(t, s, formatLines, lines(50))
	for _, test := range []struct {
		rate     int
		took     time.Duration
		progress []string
	}{
		{10, 4900 * time.Millisecond, []string{"11"}}, {2, 24500 * time.Millisecond, []string{"3", "23", "43"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var errs bytes.Buffer
			env := program.Env{Stdout: io.Discard, Stderr: &errs, Now: time.Now}
			began := time.Now()
			written, err := apply(t.Context(), env, blind{}, rows, test.rate)
			if took := time.Since(began); err != nil || written != len(rows) || took != test.took {
				t.Errorf("%d a second: %d written in %v, %v; want %v", test.rate, written, took, err, test.took)
			}
			var want strings.Builder
			for _, n := range test.progress {
				want.WriteString(n + " of 50 written\n")
			}
			if errs.String() != want.String() {
				t.Errorf("%d a second: %q, want %q", test.rate, &errs, &want)
			}
		})
	}
}

// TestReadProgress: an export and a comparison that last say how far they are.
func TestReadProgress(t *testing.T) {
	s := demo(t)
	rows := read(t, s, formatLines, lines(2_500))
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		env := program.Env{Stdout: io.Discard, Stderr: &errs, Now: time.Now}
		if _, _, _, err := compare(t.Context(), env, blind{}, rows, false); err != nil {
			t.Fatal(err)
		}
		_, _, err := writeRows(t.Context(), io.Discard, newProgress(env), formatCSV, blind{}, s.Specs[:1])
		if want := "1000 of 2500 compared\n1 exported\n11 exported\n"; err != nil || errs.String() != want {
			t.Errorf("%q, %v, want %q", &errs, err, want)
		}
	})
}
