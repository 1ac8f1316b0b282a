package usage

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

// inWindow is made, of a write that left windows with these ends: inWindow(1, noon, "user-1", "usd=1000",
// "usd we=1893600000000").
func inWindow(sequence int, at time.Time, entity string, says ...string) codec.Record {
	rec := made(sequence, at, entity)
	for _, limit := range says {
		name, n, _ := strings.Cut(limit, "=")
		name, isEnd := strings.CutSuffix(name, " we")
		field := "tc"
		if isEnd {
			field = item.WindowField
		}
		rec.New.(plain)[item.LimitAttribute(name, field)] = n
	}
	return rec
}

// read returns what ReadWindows yields: "gpt-4 usd 2030-01-03T00:00:00Z: 1000 in 1".
func (l *ledger) read(t *testing.T, q WindowQuestion) (all []string) {
	t.Helper()
	for u, err := range ReadWindows(t.Context(), l.client, l.table, q) {
		if err != nil {
			return append(all, err.Error())
		}
		all = append(all, fmt.Sprintf("%s %s %s: %d in %d", u.Resource, u.Limit, u.End.Format(time.RFC3339Nano),
			u.Millitokens, u.Writes))
	}
	return all
}

// first and second are the ends of two windows of limits, in ms.
var (
	first  = strconv.FormatInt(noon.Add(12*time.Hour).UnixMilli(), 10)
	second = strconv.FormatInt(noon.Add(36*time.Hour).UnixMilli(), 10)
)

// TestLimitWindows: a windowed limit counts in the window that the write left, besides hour and day; a batch
// is one write of each window.
func TestLimitWindows(t *testing.T) {
	l := newLedger(t)
	api := &tap{API: l.client}
	late := noon.Add(40 * time.Hour)
	if err := l.aggregator(t, api).Add(t.Context(), "shardId-1", []codec.Record{
		inWindow(1, noon, "user-1", "usd=1000", "usd we="+first, "rpm=1000"),
		inWindow(2, noon.Add(time.Minute), "user-1", "usd=2000", "usd we="+first, "eur=5", "eur we="+first),
		inWindow(3, noon, "user-1", "usd=-500", "usd we="+second),
		inWindow(4, late, "user-1", "usd=-30", "usd we="+second), // no later window is open
		inWindow(5, noon, "user-1", "usd=-7", "usd we=0"),        // of a bucket that has had none yet
		inWindow(6, noon, "user-1", "usd=0", "usd we=0"),
		inWindow(7, noon, "user-2", "rpm=1000"),
	}); err != nil {
		t.Fatal(err)
	}
	// user-1: two hours, two days, four windows of limits; user-2: an hour and a day
	if api.writes != 10 {
		t.Errorf("%d writes, want 10", api.writes)
	}
	if diff := cmp.Diff([]string{
		"gpt-4 eur 2030-01-03T00:30:00Z: 5 in 1",
		"gpt-4 usd 0001-01-01T00:00:00Z: -7 in 0",
		"gpt-4 usd 2030-01-03T00:30:00Z: 3000 in 2",
		"gpt-4 usd 2030-01-04T00:30:00Z: -530 in 0",
	}, l.read(t, WindowQuestion{Entity: "user-1"})); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
	if got := l.read(t, WindowQuestion{Entity: "user-2"}); got != nil {
		t.Errorf("a limit that refills has windows: %q", got)
	}
	var days int64
	for u, err := range Read(t.Context(), l.client, l.table, Question{Entity: "user-1", Span: Day}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, spent := range u.Limits {
			if spent.Limit == "usd" {
				days += spent.Millitokens
			}
		}
	}
	if days != -7+3000-530 {
		t.Errorf("days sum up to %d", days)
	}
	for sort, want := range map[string]struct {
		kept      time.Time
		watermark string
	}{
		"usd#" + first:  {noon.Add(12 * time.Hour), "2@" + strconv.FormatInt(noon.Unix()+60, 10)},
		"usd#" + second: {late.Add(LeastKeep), "4@" + strconv.FormatInt(late.Unix(), 10)},
		"usd#0":         {noon.Add(LeastKeep), "5@" + strconv.FormatInt(noon.Unix(), 10)},
	} {
		out, err := l.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &l.table, Key: codec.Item{
			"PK": codec.S("ENTITY#user-1"), "SK": codec.S("#USAGE#gpt-4#window#" + sort)}})
		if err != nil {
			t.Fatal(err)
		}
		ttl, _ := out.Item["ttl"].(*types.AttributeValueMemberN)
		watermark, _ := out.Item["w_1"].(*types.AttributeValueMemberS)
		wants := strconv.FormatInt(want.kept.Add(400*24*time.Hour).Unix(), 10)
		if ttl == nil || ttl.Value != wants || watermark == nil ||
			watermark.Value != strings.Repeat("0", 39)+want.watermark {
			t.Errorf("%s: %v, want ttl %s and watermark %s", sort, out.Item, wants, want.watermark)
		}
	}
}

// TestLimitWindowless: a record that no limit's window can hold is put aside, and counts nowhere.
func TestLimitWindowless(t *testing.T) {
	l := newLedger(t)
	resource := func(rec codec.Record, bytes int) codec.Record {
		rec.New.(plain)["SK"] = "S:#BUCKET#" + strings.Repeat("r", bytes)
		return rec
	}
	if err := l.aggregator(t, l.client).Add(t.Context(), "shardId-1", []codec.Record{
		inWindow(1, noon, "user-1", "usd=1", "usd we=-1"),
		inWindow(2, noon, "user-1", "usd=1", "usd we=253402300800000"),
		inWindow(3, noon, "user-1", "usd=1", "usd we=soon"),
		resource(inWindow(4, noon, "user-1", "usd=1", "usd we="+first), longestLimit-2),
		resource(inWindow(5, noon, "user-2", "usd=5", "usd we=253402300799999"), longestLimit-3),
	}); err != nil {
		t.Fatal(err)
	}
	const ends = "want ms since 1970, up to the end of year 9999"
	if diff := cmp.Diff([]string{
		"1: sluice: stream record of limit usd: its window ends at -1: " + ends,
		"2: sluice: stream record of limit usd: its window ends at 253402300800000: " + ends,
		`3: sluice: stream record of  / #BUCKET#gpt-4: attribute b_usd_we: "soon", want an integer of 64 bits`,
		"4: sluice: stream record of a resource and a limit of 994 bytes: the key of a limit's window has room " +
			"for 993",
	}, l.poison); diff != "" {
		t.Errorf("put aside (-want +got):\n%s", diff)
	}
	if got := l.windows(t, true); len(got) != 2 { // an hour and a window
		t.Errorf("windows: %v", got)
	}
	if got := l.read(t, WindowQuestion{Entity: "user-2"}); len(got) != 1 ||
		!strings.HasSuffix(got[0], "r usd 9999-12-31T23:59:59.999Z: 5 in 1") {
		t.Errorf("windows: %q", got)
	}
}

// TestReadWindows: windows come by resource, limit and end, as far as they are asked for.
func TestReadWindows(t *testing.T) {
	l := newLedger(t)
	var records []codec.Record
	for i, resource := range []string{"gpt-4", "gpt-4-mini", "gpt-4"} {
		for j, limit := range []string{"usd", "eur"} {
			ends := noon.AddDate(0, 0, 1+i).UnixMilli()
			rec := inWindow(10*i+j+1, noon, "user-1", limit+"=1000", fmt.Sprintf("%s we=%d", limit, ends))
			rec.New.(plain)["SK"] = "S:#BUCKET#" + resource
			records = append(records, rec)
		}
	}
	records = append(records, inWindow(50, noon, "user-1", "usd=-9", "usd we=0"))
	if err := l.aggregator(t, l.client).Add(t.Context(), "shardId-1", records); err != nil {
		t.Fatal(err)
	}
	at := func(day int) time.Time { return noon.AddDate(0, 0, day) }
	for name, test := range map[string]struct {
		q    WindowQuestion
		want string
	}{
		"all": {WindowQuestion{}, "gpt-4 eur 3, gpt-4 eur 5, gpt-4 usd 0, gpt-4 usd 3, gpt-4 usd 5, " +
			"gpt-4-mini eur 4, gpt-4-mini usd 4"},
		"resource": {WindowQuestion{Resource: "gpt-4"},
			"gpt-4 eur 3, gpt-4 eur 5, gpt-4 usd 0, gpt-4 usd 3, gpt-4 usd 5"},
		"limit":              {WindowQuestion{Resource: "gpt-4", Limit: "eur"}, "gpt-4 eur 3, gpt-4 eur 5"},
		"limit of resources": {WindowQuestion{Limit: "eur"}, "gpt-4 eur 3, gpt-4 eur 5, gpt-4-mini eur 4"},
		"since an end":       {WindowQuestion{Limit: "usd", Since: at(1)}, "gpt-4 usd 5, gpt-4-mini usd 4"},
		"since before it": {WindowQuestion{Limit: "usd", Since: at(1).Add(-time.Millisecond)},
			"gpt-4 usd 3, gpt-4 usd 5, gpt-4-mini usd 4"},
		"until an end":    {WindowQuestion{Limit: "usd", Until: at(1)}, "gpt-4 usd 0, gpt-4 usd 3"},
		"until before it": {WindowQuestion{Limit: "usd", Until: at(1).Add(-time.Millisecond)}, "gpt-4 usd 0"},
		"both":            {WindowQuestion{Limit: "usd", Since: at(1), Until: at(2)}, "gpt-4-mini usd 4"},
		"none":            {WindowQuestion{Limit: "tpm"}, ""},
	} {
		test.q.Entity = "user-1"
		var got []string
		for u, err := range ReadWindows(t.Context(), l.client, l.table, test.q) {
			if err != nil {
				t.Fatal(err)
			}
			day := 0
			if !u.End.IsZero() {
				day = u.End.Day()
			}
			got = append(got, fmt.Sprint(u.Resource, " ", u.Limit, " ", day))
		}
		if all := strings.Join(got, ", "); all != test.want {
			t.Errorf("%s: got %s, want %s", name, all, test.want)
		}
	}
	if got := l.read(t, WindowQuestion{}); len(got) != 1 ||
		got[0] != "usage.ReadWindows: the question names no entity, such as user-123" {
		t.Errorf("got %q", got)
	}
}

// TestReadWindowsMalformed: an item that is no window is named. Read does not look at windows of limits.
func TestReadWindowsMalformed(t *testing.T) {
	const key = "want #USAGE#<resource>#window#<limit>#<end in ms>"
	for sort, want := range map[string]string{
		"gpt-4#window#usd":                 `attribute SK: "#USAGE#gpt-4#window#usd", ` + key,
		"gpt-4#window#usd#soon":            `attribute SK: "#USAGE#gpt-4#window#usd#soon", ` + key,
		"gpt-4#window#usd#-1":              `attribute SK: "#USAGE#gpt-4#window#usd#-1", ` + key,
		"gpt-4#window#usd#253402300800000": `attribute SK: "#USAGE#gpt-4#window#usd#253402300800000", ` + key,
		"gpt-4#window#usd#1#2":             `attribute SK: "#USAGE#gpt-4#window#usd#1#2", ` + key,
		"gpt-4#window#usd#1":               "attribute u_usd: missing, want an integer of 64 bits",
		"gpt-4#window#usd#2":               "attribute writes: missing, want an integer of 64 bits",
	} {
		l := newLedger(t)
		window := codec.Item{"PK": codec.S("ENTITY#user-1"), "SK": codec.S(item.UsagePrefix + sort)}
		if strings.HasSuffix(sort, "#2") {
			window["u_usd"] = codec.N(1)
		}
		if _, err := l.client.PutItem(t.Context(),
			&dynamodb.PutItemInput{TableName: aws.String(l.table), Item: window}); err != nil {
			t.Fatal(err)
		}
		want = fmt.Sprintf("sluice: the window ENTITY#user-1 / #USAGE#%s is malformed; fix or delete the item: %s",
			sort, want)
		if got := l.read(t, WindowQuestion{Entity: "user-1"}); len(got) != 1 || got[0] != want {
			t.Errorf("got %q, want %s", got, want)
		}
		for u, err := range Read(t.Context(), l.client, l.table, Question{Entity: "user-1", Span: Hour}) {
			t.Errorf("Read yields %v, %v", u, err)
		}
	}
}
