package usage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// windowReader is an aggregator that may do soseenhing wrong.
type windowReader struct {
	extract func(codec.Record) ([]codec.Delta, error)
	change  func(*dynamodb.UpdateItemInput)
	images  func(codec.Record) codec.Record
	replies func(*dynamodb.UpdateItemOutput)
}

// replying changes what is returned.
type replying struct {
	API
	change func(*dynamodb.UpdateItemOutput)
}

// UpdateItem implements API.
func (r *replying) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := r.API.UpdateItem(ctx, in, opts...)
	if err == nil {
		r.change(out)
	}
	return out, err
}

func extractWindows(rec codec.Record) ([]codec.Delta, error) {
	if rec.Bucket() == "" {
		return nil, nil
	}
	return rec.Deltas(windowCounters()...)
}

// shards puts the records of h into shards, one after the other, and returns their shards.
func (h *history) shards() []string {
	shard, sequence := 1, 1_000_000
	all := make([]string, len(h.records))
	for i := range h.records {
		if h.dice.IntN(12) == 0 { // it is split: sequence numbers of its child may be anything
			shard, sequence = shard+1, 1+h.dice.IntN(2_000_000)
		}
		sequence += 1 + h.dice.IntN(9)
		all[i], h.records[i].Sequence = fmt.Sprintf("shardId-%08d", shard), strconv.Itoa(sequence)
	}
	return all
}

// limitWindows returns what the windows of the history's limit hold, by their ends in ms, and their sum.
func (l *ledger) limitWindows(t *testing.T, entity string) (windows map[int64]int64, total int64) {
	t.Helper()
	windows = map[int64]int64{}
	for u, err := range ReadWindows(t.Context(), l.client, l.table,
		WindowQuestion{Entity: entity, Resource: "gpt-4", Limit: "usd"}) {
		if err != nil {
			t.Fatal(err)
		}
		ends := int64(0)
		if !u.End.IsZero() {
			ends = u.End.UnixMilli()
		}
		if windows[ends] += u.Millitokens; u.Millitokens == 0 {
			delete(windows, ends)
		}
		total += u.Millitokens
	}
	return windows, total
}

// windowFault is how windows differ from the model.
type windowFault string

const (
	windowsRight windowFault = "right"
	sumMore      windowFault = "the sum of the windows is more than tc"
	sumLess      windowFault = "the sum of the windows is less than tc"
	otherWindow  windowFault = "the sum is tc, and the windows are others"
)

// deliver adds a history to its windows in batches that overlap, come again, and lose requests and replies.
// It returns what is first wrong with the windows, and what they hold then.
func (l *ledger) deliver(t *testing.T, h *history, r windowReader) (windowFault, string) {
	t.Helper()
	dice, failing := rand.New(rand.NewPCG(h.dice.Uint64(), 1)), errors.New("no reply")
	api := &tap{API: l.client}
	if r.change != nil {
		api.API = &rewriting{l.client, r.change}
	}
	if r.replies != nil {
		api.API = &replying{l.client, r.replies}
	}
	var mu sync.Mutex
	api.fails = func(int) (before, after error) {
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
	a := l.aggregator(t, api)
	a.config.Extract = extractWindows
	if r.extract != nil {
		a.config.Extract = r.extract
	}
	shards, records := h.shards(), h.records
	add := func(from, to int) int {
		batch := make([]codec.Record, 0, to-from)
		for _, rec := range records[from:to] {
			if r.images != nil {
				rec = r.images(rec)
			}
			batch = append(batch, rec)
		}
		failed, isUncounted := errors.AsType[*UncountedError](a.Add(t.Context(), shards[from], batch))
		if !isUncounted {
			return to
		}
		for ; records[from].Sequence != failed.Sequence; from++ {
		}
		return from
	}
	for next, most := 0, 0; next < len(records); {
		mu.Lock()
		from, to := next, next+1+dice.IntN(8)
		if dice.IntN(4) == 0 { // the checkpoint was behind, or a second reader is
			from -= dice.IntN(min(next, 20) + 1)
		}
		mu.Unlock()
		to = min(to, len(records))
		for to > from+1 && (shards[to-1] != shards[from] || records[to-1].At.Sub(records[from].At) > LeastKeep) {
			to--
		}
		if records[max(most, to)-1].At.Sub(records[from].At) > LeastKeep { // it has left the stream
			continue
		}
		counted := add(from, to)
		next, most = max(next, counted), max(most, to)
		if counted < most { // records behind it may be in some windows
			continue
		}
		_, total := l.limitWindows(t, h.entity)
		if want := h.totals[most-1]; total != want {
			fault := sumLess
			if total > want {
				fault = sumMore
			}
			return fault, fmt.Sprintf("after %d records: %d, want %d", most, total, want)
		}
	}
	got, _ := l.limitWindows(t, h.entity)
	if diff := cmp.Diff(h.want(), got); diff != "" {
		return otherWindow, diff
	}
	return windowsRight, ""
}

// TestWindowHistories: at all times the sum over all windows is tc. Each window has what was used of its
// capacity, and besides what settles that belong to other windows counted in it.
func TestWindowHistories(t *testing.T) {
	l, seen := newLedger(t), map[string]int{}
	lengths := [...]int64{shortWindow, longWindow}
	for seed := range longform.Histories(t, "histories", uint64(300), 24) {
		h := newHistory(seed, lengths[seed%2])
		model := maps.Clone(h.sums)
		maps.DeleteFunc(model, func(_, n int64) bool { return n == 0 })
		if diff := cmp.Diff(h.want(), model); diff != "" {
			t.Fatalf("seed %d: the two models differ (-by balance +by writes):\n%s", seed, diff)
		}
		if fault, how := l.deliver(t, h, windowReader{}); fault != windowsRight {
			t.Fatalf("seed %d: %s (-want +got):\n%s", seed, fault, how)
		}
		for what, n := range h.seen {
			seen[what] += n
		}
	}
	for _, what := range []string{"create", "call", "settle", "reset", "reshape", "window shortened", "expiry",
		"call of rpm alone", "give-back in its window", "give-back of another window",
		"give-back before the first window"} {
		if seen[what] == 0 {
			t.Errorf("no history has: %s", what)
		}
	}
}

// TestWindowHistoriesControls: readers that do soseenhing wrong are found out, each for what it does.
func TestWindowHistoriesControls(t *testing.T) {
	longform.NoRace(t, "controls, whose broken variants ship nowhere")
	ends := func(of func(codec.Record) int64) func(codec.Record) ([]codec.Delta, error) {
		return func(rec codec.Record) ([]codec.Delta, error) {
			deltas, err := extractWindows(rec)
			for i, d := range deltas {
				if d.Limit == "usd" {
					deltas[i].Ends = of(rec)
				}
			}
			return deltas, err
		}
	}
	for name, control := range map[string]struct {
		reader windowReader
		want   windowFault
		length int64
	}{
		"the record's time": {windowReader{extract: ends(func(rec codec.Record) int64 {
			return windowEnd(rec.At.UnixMilli(), 0, shortWindow)
		})}, otherWindow, shortWindow},
		"the old image's window": {windowReader{extract: ends(func(rec codec.Record) (ends int64) {
			if rec.Old != nil {
				_, text := rec.Old.Attr("b_usd_we")
				ends, _ = strconv.ParseInt(text, 10, 64)
			}
			return ends
		})}, otherWindow, shortWindow},
		"no watermark": {windowReader{change: func(in *dynamodb.UpdateItemInput) {
			in.ConditionExpression = aws.String(*in.ConditionExpression + " OR attribute_exists(PK)")
		}}, sumMore, shortWindow},
		"what precedes the first window is lost": {windowReader{images: func(rec codec.Record) codec.Record {
			if img, ok := rec.New.(plain); ok && img["b_usd_we"] == "0" {
				img = maps.Clone(img)
				delete(img, "b_usd_we")
				rec.New = img
			}
			return rec
		}}, sumMore, shortWindow}, // for it is given back
		"watermarks are dropped early": {windowReader{replies: func(out *dynamodb.UpdateItemOutput) {
			for name, v := range out.Attributes {
				if s, ok := v.(*types.AttributeValueMemberS); ok && strings.HasPrefix(name, "w_") {
					sequence, _, _ := strings.Cut(s.Value, dateSign)
					s.Value = dated(sequence, noon.AddDate(-1, 0, 0))
				}
			}
		}}, sumMore, longWindow},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t)
			fault, how := windowsRight, ""
			for seed := uint64(1000); seed < 1100 && fault == windowsRight; seed++ {
				fault, how = l.deliver(t, newHistory(seed, control.length), control.reader)
			}
			if fault != control.want {
				t.Errorf("got %s, want %s:\n%s", fault, control.want, how)
			}
		})
	}
}
