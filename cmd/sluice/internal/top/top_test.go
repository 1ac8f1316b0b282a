package top

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// watched is a table that a terminal shows, with a clock that stands still while it is read.
type watched struct {
	*testing.T

	client *dynamodb.Client
	top    Command
	now    time.Time
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	client := dynamotest.Client(t)
	w := &watched{T: t, client: client, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	w.top = Command{Resource: "embeddings", Most: 2, Watch: true}
	w.top.Table = dynamotest.Table(t, client, operator.Table)
	return w
}

// put stores a bucket of embeddings of which so many of 20 batches are left.
func (w *watched) put(entity string, left int64) {
	w.Helper()
	b := limits.EmbeddingsBucket{Entity: entity, Refilled: w.now.UnixMilli(), Op: "op",
		RPS: bucket.Balance{Limit: bucket.Per(20, time.Minute), Tokens: left * bucket.Milli}}
	if _, err := w.client.PutItem(w.Context(),
		&dynamodb.PutItemInput{TableName: &w.top.Table, Item: b.MarshalItem()}); err != nil {
		w.Fatal(err)
	}
}

// store is the table.
func (w *watched) store() bucketstore.Store {
	return bucketstore.NewTable(w.client, w.top.Table, func() time.Time { return w.now }, false)
}

// watch runs the command on a terminal. After each draw it takes the next of steps; the last is followed by
// Ctrl-C.
func (w *watched) watch(steps ...func()) (screen string, err error) {
	w.Helper()
	ctx, interrupt := context.WithCancel(w.Context())
	defer interrupt()
	var out strings.Builder
	err = w.top.watch(ctx, program.Env{Stdout: &out, Stderr: &out, Now: func() time.Time { return w.now }},
		w.store(),
		func(d time.Duration) <-chan time.Time {
			if want := 2 * time.Second; d != want {
				w.Errorf("a pause of %v, want %v", d, want)
			}
			if len(steps) == 0 {
				interrupt()
				return nil
			}
			steps[0]()
			steps, w.now = steps[1:], w.now.Add(d)
			over := make(chan time.Time)
			close(over)
			return over
		})
	return strings.ReplaceAll(out.String(), clearScreen, "<clear>\n"), err
}

// TestTopWatch draws what there is, as it changes, until Ctrl-C, which is no failure.
func TestTopWatch(t *testing.T) {
	w := newWatched(t)
	none := "no bucket of embeddings in table " + w.top.Table + " (" + connect.Place(w.client) +
		"): none was used, all have expired, or the name, table or region is wrong\n"
	screen, err := w.watch(
		func() { w.put("project-1", 5) },
		func() { w.put("project-2", -2); w.put("project-3", 20) },
	)
	want := "<clear>\n" + none + `again every 2s until Ctrl-C
<clear>
ENTITY     LIMIT                        USED  AVAILABLE  BURST  FULL IN
project-1  rps    ██████████████░░░░░░   71%        5.6     20  43s
1 bucket read in 0s, for 1 read units
again every 2s until Ctrl-C
<clear>
ENTITY     LIMIT                        USED  AVAILABLE  BURST  FULL IN
project-2  rps    ████████████████████  106%       -1.4     20  1m4s
project-1  rps    █████████████░░░░░░░   68%        6.3     20  41s
3 buckets read in 0s, for 2 read units
again every 2s until Ctrl-C
`
	if err != nil || screen != want {
		t.Errorf("%v\n%s\nwant\n%s", err, screen, want)
	}
}

// TestTopNarrow: where names are long, bars give way, as far as they can, on a terminal; elsewhere lines may
// be of any length.
func TestTopNarrow(t *testing.T) {
	for extra, want := range map[int]struct{ bar, line int }{0: {20, 75}, 5: {20, 80}, 6: {19, 80}, 17: {8, 80},
		18: {8, 81}} {
		r := row{Entity: "user-" + strings.Repeat("x", 8+extra), Limit: "rpm", Available: 50_000, Burst: 100_000,
			FullIn: 79_600}
		for screen, wide := range map[bool]int{true: want.bar, false: term.BarWidth} {
			var out strings.Builder
			if err := (&board{Rows: []row{r}}).write(&out, term.NewBar(screen)); err != nil {
				t.Fatal(err)
			}
			_, text, _ := strings.Cut(out.String(), "\n")
			text, _, _ = strings.Cut(text, "\n")
			parts := term.NewBar(screen)
			got := strings.Count(text, parts.Used) + strings.Count(strings.ReplaceAll(text, r.Entity, ""), parts.Left)
			if long := utf8.RuneCountInString(text); got != wide || screen && long != want.line ||
				!strings.HasPrefix(text, r.Entity+" ") {
				t.Errorf("terminal %v, an id of %d letters: a bar of %d in a line of %d, want %d in %d\n%s", screen,
					len(r.Entity), got, long, wide, want.line, text)
			}
		}
	}
}

// TestTopWatchFails: what is wrong ends it, and is not drawn over.
func TestTopWatchFails(t *testing.T) {
	w := newWatched(t)
	w.put("project-1", 5)
	screen, err := w.watch(func() {
		if _, err := w.client.DeleteTable(t.Context(),
			&dynamodb.DeleteTableInput{TableName: &w.top.Table}); err != nil {
			t.Error(err)
		}
	})
	missing := "sluice: table " + w.top.Table + " does not exist; run `sluice table create "
	if err == nil || !strings.HasPrefix(err.Error(), missing) ||
		strings.Count(screen, "<clear>") != 1 {
		t.Errorf("%v\n%s", err, screen)
	}
}

// TestTopProgress: nothing in the first second; then a line that is written over and wiped off on a terminal,
// and lines in a log.
func TestTopProgress(t *testing.T) {
	for terminal, want := range map[bool]string{
		true: "<200 buckets read, 1s<300 buckets read, 1s<1,100 buckets read, 1m59s<1,200 buckets read, 2m0s < " +
			"                        <",
		false: "200 buckets read, 1s\n1,100 buckets read, 1m59s\n",
	} {
		var out strings.Builder
		began := time.Unix(0, 0)
		p := newProgress(&out, terminal, began)
		for _, at := range []struct {
			ms      int
			buckets int
		}{{999, 100}, {1000, 200}, {1200, 300}, {1300, 400}, {119_000, 1100}, {119_900, 1200}} {
			p.show(began.Add(time.Duration(at.ms)*time.Millisecond), at.buckets)
		}
		p.Wipe()
		if got := strings.ReplaceAll(out.String(), "\r", "<"); got != want {
			t.Errorf("terminal %v:\n%q\nwant\n%q", terminal, got, want)
		}
	}
	var out strings.Builder
	p := newProgress(&out, true, time.Unix(0, 0))
	p.show(time.Unix(0, 0), 1)
	p.Wipe()
	if out.String() != "" {
		t.Errorf("%q of what took no time", out.String())
	}
}

// TestTopRowsOfAnyNumbers: whatever an item has, it has a place, and the greater share is ahead.
func TestTopRowsOfAnyNumbers(t *testing.T) {
	rows := []row{ // as they are to be
		{Available: math.MinInt64, Burst: 1},
		{Available: math.MinInt64, Burst: 1e15},
		{Available: -1, Burst: 1e15},
		{Entity: "none", Burst: 0},
		{Entity: "none", Burst: math.MaxInt64, Limit: "x"},
		{Available: 1, Burst: math.MaxInt64},
		{Available: 1, Burst: 1e15},
		{Available: 1, Burst: 3},
		{Available: 1, Burst: 1},
	}
	want := []uint64{20, 20, 20, 20, 20, 19, 19, 13, 0}
	for i, r := range rows {
		if got := min(r.parts(20), 20); got != want[i] {
			t.Errorf("%+v: %d of 20 parts, want %d", r, got, want[i])
		}
		if i > 0 && compareRows(rows[i-1], r) >= 0 {
			t.Errorf("%+v is not ahead of %+v", rows[i-1], r)
		}
	}
}
