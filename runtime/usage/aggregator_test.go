package usage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// noon is an instant within an hour and a day.
var noon = time.Date(2030, 1, 2, 12, 30, 0, 0, time.UTC)

// made is a record that says that entity took so many millitokens of limits of gpt-4, as rpm=1000; bad is one
// that cannot be read.
func made(sequence int, at time.Time, entity string, took ...string) codec.Record {
	rec := codec.Record{At: at, Sequence: strconv.Itoa(sequence),
		New: plain{"SK": "S:#BUCKET#gpt-4", "entity_id": "S:" + entity}}
	for _, limit := range took {
		name, n, _ := strings.Cut(limit, "=")
		rec.New.(plain)["b_"+name+"_tc"] = n
	}
	return rec
}

// plain is an image of numbers, and of strings, which start with "S:".
type plain map[string]string

func (p plain) Attr(name string) (kind, text string) {
	text, ok := p[name]
	if !ok {
		return "", ""
	}
	if text, ok := strings.CutPrefix(text, "S:"); ok {
		return "S", text
	}
	return "N", text
}

func (p plain) Len() int { return len(p) + 100 } // as if there were other attributes

func (p plain) Each(visit func(string) bool) {
	for name := range p {
		if !visit(name) {
			return
		}
	}
}

// ledger is a table of windows, and who adds to it.
type ledger struct {
	client *dynamodb.Client
	table  string
	poison []string
}

func newLedger(t testing.TB) *ledger {
	t.Helper()
	client := dynamotest.Client(t)
	return &ledger{client: client, table: dynamotest.Table(t, client, dynamotest.Streamless(operator.Table))}
}

func (l *ledger) aggregator(t testing.TB, api API) *Aggregator {
	t.Helper()
	a, err := New(Config{Client: api, Table: l.table, Extract: limits.ExtractDeltas,
		Poisoned: func(_ context.Context, p Poison) error {
			l.poison = append(l.poison, p.Record.Sequence+": "+p.Err.Error())
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// windows returns what the table has: "user-1 hour 2030-01-02T12": {"rpm": 1, "writes": 1}.
func (l *ledger) windows(t testing.TB, hours bool) map[string]map[string]int64 {
	t.Helper()
	found := map[string]map[string]int64{}
	var start map[string]types.AttributeValue
	for {
		out, err := l.client.Scan(t.Context(), &dynamodb.ScanInput{
			TableName: &l.table, ExclusiveStartKey: start, ConsistentRead: aws.Bool(true),
			FilterExpression: aws.String("begins_with(SK, :usage)"),
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":usage": &types.AttributeValueMemberS{Value: item.UsagePrefix},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range out.Items {
			parts := strings.Split(item["SK"].(*types.AttributeValueMemberS).Value, "#")
			if parts[3] == string(Day) == hours {
				continue
			}
			sums := map[string]int64{}
			for name, v := range item {
				limit, isLimit := strings.CutPrefix(name, "u_")
				if n, isNumber := v.(*types.AttributeValueMemberN); isNumber && (isLimit || name == "writes") {
					if sums[limit], err = strconv.ParseInt(n.Value, 10, 64); err != nil {
						t.Fatal(err)
					}
				}
			}
			found[item["entity_id"].(*types.AttributeValueMemberS).Value+" "+parts[4]] = sums
		}
		if start = out.LastEvaluatedKey; start == nil {
			return found
		}
	}
}

// TestAdd: deltas of one batch for one window are one write; hours and days are kept apart, and what cannot
// be read is put aside.
func TestAdd(t *testing.T) {
	l := newLedger(t)
	api := &tap{API: l.client}
	a := l.aggregator(t, api)
	bad := made(4, noon, "user-1", "rpm=x")
	if err := a.Add(t.Context(), "shardId-00000001", []codec.Record{
		made(1, noon, "user-1", "rpm=1000", "tpm=2000"),
		made(2, noon.Add(29*time.Minute), "user-1", "rpm=1000"),
		made(3, noon.Add(30*time.Minute), "user-1", "rpm=1000"),
		bad,
		made(5, noon.Add(12*time.Hour), "user-1", "rpm=-500", "later=7"),
		made(6, noon, "user-2", "tpm=1"),
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]map[string]int64{
		"user-1 2030-01-02T12": {"rpm": 2000, "tpm": 2000, "writes": 2},
		"user-1 2030-01-02T13": {"rpm": 1000, "writes": 1},
		"user-1 2030-01-03T00": {"rpm": -500, "later": 7, "writes": 1},
		"user-2 2030-01-02T12": {"tpm": 1, "writes": 1},
	}, l.windows(t, true)); diff != "" {
		t.Errorf("hours (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]map[string]int64{
		"user-1 2030-01-02": {"rpm": 3000, "tpm": 2000, "writes": 3},
		"user-1 2030-01-03": {"rpm": -500, "later": 7, "writes": 1},
		"user-2 2030-01-02": {"tpm": 1, "writes": 1},
	}, l.windows(t, false)); diff != "" {
		t.Errorf("days (-want +got):\n%s", diff)
	}
	if api.writes != 7 {
		t.Errorf("%d writes, want one for each of 7 windows", api.writes)
	}
	if len(l.poison) != 1 || !strings.HasPrefix(l.poison[0], "4: sluice: stream record of ") {
		t.Errorf("put aside: %q", l.poison)
	}

	item, err := l.client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &l.table, Key: WindowOf("user-1", "gpt-4", Hour, noon).key(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ttl, watermark := item.Item["ttl"].(*types.AttributeValueMemberN),
		item.Item["w_1"].(*types.AttributeValueMemberS)
	if want := noon.Truncate(time.Hour).Add(time.Hour +
		35*24*time.Hour).Unix(); ttl.Value != strconv.FormatInt(want, 10) {
		t.Errorf("ttl %s, want %d", ttl.Value, want)
	}
	if want := strings.Repeat("0", 39) + "2"; watermark.Value != want {
		t.Errorf("watermark %s, want %s", watermark.Value, want)
	}
}

// TestWindowless: a record that no window can hold is put aside, for it would be refused for ever; those
// behind it count.
func TestWindowless(t *testing.T) {
	l := newLedger(t)
	long := made(3, noon, "user-1", "rpm=1")
	long.New.(plain)["SK"] = "S:#BUCKET#" + strings.Repeat("r", longestResource+1)
	fits := made(4, noon, "user-4", "rpm=4")
	fits.New.(plain)["SK"] = "S:#BUCKET#" + strings.Repeat("r", longestResource)
	entity := strings.Repeat("e", longestHash-len("ENTITY#"))
	if err := l.aggregator(t, l.client).Add(t.Context(), "shardId-1", []codec.Record{
		made(1, time.Time{}, "user-1", "rpm=1"), made(2, noon, entity+"e", "rpm=1"), long, fits,
		made(5, noon, entity, "rpm=5"), made(6, time.Time{}, "user-1"),
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"1: sluice: stream record without ApproximateCreationDateTime: no window is of its time",
		"2: sluice: stream record of an entity of 2042 bytes: a window's key has room for 2041",
		"3: sluice: stream record of a resource of 999 bytes: a window's key has room for 998",
	}, l.poison); diff != "" {
		t.Errorf("put aside (-want +got):\n%s", diff)
	}
	for hours, start := range map[bool]string{true: "2030-01-02T12", false: "2030-01-02"} {
		if diff := cmp.Diff(map[string]map[string]int64{
			"user-4 " + start: {"rpm": 4, "writes": 1}, entity + " " + start: {"rpm": 5, "writes": 1},
		}, l.windows(t, hours)); diff != "" {
			t.Errorf("windows (-want +got):\n%s", diff)
		}
	}
}

// tap counts writes, and fails those that it is told to.
type tap struct {
	API
	mu     sync.Mutex
	writes int
	fails  func(n int) (before, after error) // of the n-th write: not applied, or applied without a reply
}

func (c *tap) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	c.mu.Lock()
	c.writes++
	n := c.writes
	c.mu.Unlock()
	var before, after error
	if c.fails != nil {
		before, after = c.fails(n)
	}
	if before != nil {
		return nil, before
	}
	out, err := c.API.UpdateItem(ctx, in, opts...)
	if err == nil && after != nil {
		return nil, after
	}
	return out, err
}

// TestOnce plays streams of several shards in batches of any size that overlap, are delivered again, fail in
// parts, and lose replies, until all of it is acknowledged. The windows have every record once.
func TestOnce(t *testing.T) {
	l, histories := newLedger(t), uint64(60)
	if !dynamotest.OnLocal(t) {
		histories = longform.Histories(t, "histories", histories, 15)
	}
	for seed := range histories {
		if want, got := play(t, l, l.client, seed); !cmp.Equal(want, got) {
			t.Fatalf("seed %d (-want +got):\n%s", seed, cmp.Diff(want, got))
		}
	}
}

// TestOnceControls: a writer without its condition counts twice, and one that moves the watermark too far
// loses.
func TestOnceControls(t *testing.T) {
	longform.NoRace(t, "controls, whose broken variants ship nowhere")
	for name, control := range map[string]struct {
		breaks func(*dynamodb.UpdateItemInput)
		want   counted
	}{
		"no condition": {func(in *dynamodb.UpdateItemInput) {
			in.ConditionExpression = aws.String(*in.ConditionExpression + " OR attribute_exists(PK)")
		}, more},
		"too far": {func(in *dynamodb.UpdateItemInput) {
			for name, v := range in.ExpressionAttributeValues {
				if s, ok := v.(*types.AttributeValueMemberS); ok && len(s.Value) == sequenceDigits &&
					strings.Contains(*in.UpdateExpression, name) {
					far := s.Value[:sequenceDigits-1] + "9"
					in.ExpressionAttributeValues[name] = &types.AttributeValueMemberS{Value: far}
				}
			}
		}, less},
	} {
		l := newLedger(t) // of its own: they play the same seeds
		var want, got map[string]map[string]int64
		for seed := uint64(1000); seed < 1060 && compare(want, got) == exact; seed++ {
			want, got = play(t, l, &rewriting{l.client, control.breaks}, seed)
		}
		if how := compare(want, got); how != control.want {
			t.Errorf("%s: windows count %s, want %s (-want +got):\n%s", name, how, control.want, cmp.Diff(want, got))
		}
	}
}

// counted is how windows differ from what they should have, by the writes that they count.
type counted string

const (
	exact counted = "exactly"
	more  counted = "more"
	less  counted = "less"
	mixed counted = "more here and less there"
)

// compare returns how got differs from want.
func compare(want, got map[string]map[string]int64) counted {
	how := exact
	both := maps.Clone(want)
	maps.Copy(both, got)
	for window := range both {
		switch d := got[window]["writes"] - want[window]["writes"]; {
		case d > 0 && how != less:
			how = more
		case d < 0 && how != more:
			how = less
		case d != 0:
			return mixed
		}
	}
	return how
}

// rewriting changes what is sent.
type rewriting struct {
	API
	change func(*dynamodb.UpdateItemInput)
}

func (r *rewriting) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	r.change(in)
	return r.API.UpdateItem(ctx, in, opts...)
}

// play has entities of their own consume, and delivers the records of each shard in its order, as a stream
// does. It returns what the windows should have, and what they have.
func play(t *testing.T, l *ledger, api API, seed uint64) (want, got map[string]map[string]int64) {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 1))
	failing := errors.New("no reply")
	faulty := &tap{API: api}
	var mu sync.Mutex
	faulty.fails = func(int) (before, after error) {
		mu.Lock()
		defer mu.Unlock()
		switch dice.IntN(20) {
		case 0:
			return failing, nil
		case 1:
			return nil, failing
		}
		return nil, nil
	}
	a := l.aggregator(t, faulty)
	want = map[string]map[string]int64{}
	for shard := range 1 + dice.IntN(2) {
		var records []codec.Record
		for i := range 1 + dice.IntN(30) {
			entity := fmt.Sprintf("user-%dx%d", seed, 10*shard+dice.IntN(2)) // a bucket's records are in one shard
			at := noon.Add(time.Duration(dice.IntN(100)) * time.Minute)
			rpm := int64(dice.IntN(2000) - 500)
			records = append(records, made(7+i*(1+shard), at, entity, fmt.Sprintf("rpm=%d", rpm)))
			if rpm == 0 {
				continue
			}
			w := want[entity+" "+at.Format(Hour.layout())]
			if w == nil {
				w = map[string]int64{"writes": 0}
				want[entity+" "+at.Format(Hour.layout())] = w
			}
			if w["rpm"] += rpm; rpm > 0 {
				w["writes"]++
			}
		}
		for next := 0; next < len(records); {
			end := min(len(records), next+1+dice.IntN(8))
			mu.Lock()
			from := next - dice.IntN(min(next, 5)+1) // as if the checkpoint were behind
			mu.Unlock()
			var failure *UncountedError
			switch err := a.Add(t.Context(), fmt.Sprintf("shardId-%08d", shard), records[from:end]); {
			case err == nil:
				next = end
			case errors.As(err, &failure):
				next = slices.IndexFunc(records, func(r codec.Record) bool { return r.Sequence == failure.Sequence })
			default:
				t.Fatal(err)
			}
		}
	}
	got = l.windows(t, true)
	maps.DeleteFunc(got, func(name string, _ map[string]int64) bool {
		return !strings.HasPrefix(name, fmt.Sprintf("user-%dx", seed))
	})
	return want, got
}

// TestNew: what is missing is named.
func TestNew(t *testing.T) {
	client := newLedger(t).client
	teamA, err := operator.InNamespace(client, "team-a")
	if err != nil {
		t.Fatal(err)
	}
	whole := Config{
		Client: client, Table: "table", Extract: limits.ExtractDeltas,
		Poisoned: func(context.Context, Poison) error { return nil },
	}
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"client": {func(c *Config) { c.Client = nil }, "usage.New: the client is nil"},
		"client of a namespace": {func(c *Config) { c.Client = teamA }, "usage.New: the client is one of " +
			"operator.InNamespace: pass the client that it was made from, and the name as Config.Namespace"},
		"table": {func(c *Config) { c.Table = "" }, "usage.New: the table has no name"},
		"extract": {func(c *Config) { c.Extract = nil },
			"usage.New: Extract is nil: pass ExtractDeltas of the generated package"},
		"poisoned": {func(c *Config) { c.Poisoned = nil },
			"usage.New: Poisoned is nil: say where records go that cannot be read, or they are lost"},
		"writers": {func(c *Config) { c.Writers = -1 },
			"usage.New: -1 writers, want at least 1, or 0 for the default"},
		"keep": {func(c *Config) { c.Keep = map[Span]time.Duration{"week": 1} },
			`usage.New: keep "week" for 1ns: want hour, day or window, and a duration`},
		"short": {func(c *Config) { c.Keep = map[Span]time.Duration{Hour: LeastKeep - 1} },
			`usage.New: keep "hour" for 23h59m59.999999999s: want 24h0m0s or more, or 0 for the default`},
	} {
		c := whole
		test.change(&c)
		if _, err := New(c); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}

// TestAddFails: the failure names the first record that is not in all its windows, and what cannot be put
// aside.
func TestAddFails(t *testing.T) {
	l := newLedger(t)
	broken := errors.New("broken")
	a := l.aggregator(t, &tap{API: l.client, fails: func(n int) (before, after error) {
		if n > 2 {
			return broken, nil
		}
		return nil, nil
	}})
	a.config.Writers = 1
	records := []codec.Record{made(11, noon, "user-1", "rpm=1"), made(12, noon, "user-2", "rpm=1"),
		made(13, noon, "user-1", "rpm=1")}
	err := a.Add(t.Context(), "shardId-1", records)
	failure, ok := errors.AsType[*UncountedError](err)
	if !ok || failure.Sequence != "12" || !errors.Is(err, broken) {
		t.Errorf("got %v, want a failure from 12 on", err)
	}
	a.config.Poisoned = func(context.Context, Poison) error { return broken }
	err = a.Add(t.Context(), "shardId-2", []codec.Record{made(1, noon, "user-1", "rpm=1"),
		made(2, noon, "user-1", "rpm=x"), made(3, noon, "user-1")})
	if failure, ok := errors.AsType[*UncountedError](err); !ok || failure.Sequence != "1" &&
		failure.Sequence != "2" {
		t.Errorf("got %v, want a failure from 2 on", err)
	}
	for _, sequence := range []string{"", "12a", strings.Repeat("1", 41)} {
		bad := made(1, noon, "user-1", "rpm=1")
		bad.Sequence = sequence
		if err := a.Add(t.Context(), "shardId-3", []codec.Record{bad}); err == nil {
			t.Errorf("sequence %q is taken", sequence)
		}
	}
}

// BenchmarkAdd adds batches of records of random buckets. It reports records a second, and write units for a
// thousand of them. An acquire of one bucket makes one record. With the engine in the process most of the
// time is its own and the client's; without one, windows take no time, and what is left is the aggregator's.
func BenchmarkAdd(b *testing.B) {
	for _, engine := range []string{"memdynamo", "none"} {
		for _, buckets := range []int{20, 2000} {
			for _, batch := range []int{100, 1000} {
				b.Run(fmt.Sprintf("engine=%s/buckets=%d/batch=%d", engine, buckets, batch), func(b *testing.B) {
					l := newLedger(b)
					api := &metered{API: l.client, none: engine == "none"}
					benchmarkAdd(b, l.aggregator(b, api), buckets, batch)
					b.ReportMetric(1000*api.units/float64(b.N*batch), "write-units/1000-acquires")
				})
			}
		}
	}
}

func benchmarkAdd(b *testing.B, a *Aggregator, buckets, batch int) {
	b.Helper()
	images := make([]codec.Record, buckets)
	for i := range images {
		images[i] = made(0, noon, fmt.Sprint("user-", i), "rpm=1000", "tpm=5000")
	}
	dice := rand.New(rand.NewPCG(1, 1))
	records := make([]codec.Record, batch)
	sequence := 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range records {
			sequence++
			records[i] = images[dice.IntN(buckets)]
			records[i].Sequence = strconv.Itoa(sequence)
		}
		if err := a.Add(b.Context(), "shardId-1", records); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(sequence)/b.Elapsed().Seconds(), "records/s")
}

// metered adds up the write units of windows.
type metered struct {
	API
	none  bool // nothing is written
	mu    sync.Mutex
	units float64
}

func (m *metered) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if m.none {
		return &dynamodb.UpdateItemOutput{}, nil
	}
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.API.UpdateItem(ctx, in, opts...)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.units += aws.ToFloat64(out.ConsumedCapacity.CapacityUnits)
	return out, nil
}

// inNamespace returns a record of user-1's bucket in a namespace.
func inNamespace(namespace string, rec codec.Record) codec.Record {
	rec.New.(plain)["PK"] = "S:" + item.Namespace(namespace).Hash("ENTITY#user-1")
	return rec
}

// TestNamespaces: an aggregator counts the records of its own namespace alone, in windows of that namespace,
// though others have entities with the same ids. It does not put aside what is wrong with another's.
func TestNamespaces(t *testing.T) {
	l := newLedger(t)
	records := []codec.Record{
		inNamespace("", made(1, noon, "user-1", "rpm=1")),
		inNamespace("team-a", made(2, noon, "user-1", "rpm=2")),
		inNamespace("team-b", made(3, noon, "user-1", "rpm=4")),
		inNamespace("team-b", made(4, noon, "user-1", "rpm=many")),
		inNamespace("team-a", made(5, noon, "user-1", "rpm=8")),
		inNamespace("team", made(6, noon, "user-1", "rpm=16")),
	}
	for namespace, want := range map[string]int64{"": 1, "team-a": 10, "team-b": 4} {
		l.poison = nil
		config := Config{Client: l.client, Table: l.table, Extract: limits.ExtractDeltas, Namespace: namespace,
			Poisoned: func(_ context.Context, p Poison) error {
				l.poison = append(l.poison, p.Record.Sequence)
				return nil
			}}
		a, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // delivered again
			if err := a.Add(t.Context(), "shardId-1", records); err != nil {
				t.Fatal(err)
			}
		}
		if aside := slices.Contains(l.poison, "4"); aside != (namespace == "team-b") {
			t.Errorf("%q: put aside %q", namespace, l.poison)
		}
		var reader dynamo.API = l.client
		if namespace != "" {
			if reader, err = operator.InNamespace(l.client, namespace); err != nil {
				t.Fatal(err)
			}
		}
		var got []int64
		for u, err := range Read(t.Context(), reader, l.table, Question{Entity: "user-1", Span: Hour}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, u.Limits[0].Millitokens)
		}
		if !slices.Equal(got, []int64{want}) {
			t.Errorf("namespace %q has used %d, want %d", namespace, got, want)
		}
	}
	if _, err := New(Config{Client: l.client, Table: l.table, Extract: limits.ExtractDeltas, Namespace: "A",
		Poisoned: func(context.Context, Poison) error { return nil }}); err == nil {
		t.Error("a wrong name was accepted")
	}
}
