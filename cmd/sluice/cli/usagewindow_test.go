package cli_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// consumeIn adds a record of user-1 by which a windowed limit consumed so many millitokens, and left a window
// with this end, or none if it is zero.
func (b *book) consumeIn(resource, limit string, milli int64, ends time.Time) {
	b.t.Helper()
	we := int64(0)
	if !ends.IsZero() {
		we = ends.UnixMilli()
	}
	rest := map[string]streams.AttributeValue{
		"b_" + limit + "_we": &streams.AttributeValueMemberN{Value: strconv.FormatInt(we, 10)},
	}
	for n := range 20 { // as many as a bucket has, which is searched for limits that the schema does not have
		rest[fmt.Sprint("other", n)] = &streams.AttributeValueMemberN{Value: "1"}
	}
	b.add(start, "user-1", resource, map[string]int64{limit: milli}, rest)
}

// fillWindows writes days of Berlin of user-1, whose last was reset, and sessions of five hours.
func (b *book) fillWindows() {
	b.t.Helper()
	midnight := time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)
	for days, tokens := range []int64{500, 1_234_567, 2_000_500, 3_000, 1_750_000, 0, 999_000, 2_000_000} {
		b.consumeIn("gpt-4", "usd", tokens, midnight.AddDate(0, 0, -days))
	}
	b.consumeIn("gpt-4", "usd", -4_567, midnight.AddDate(0, 0, -1))
	b.consumeIn("gpt-4", "usd", 250_000, midnight.Add(time.Millisecond)) // after a reset
	b.consumeIn("gpt-4", "usd", -30_000, time.Time{})
	b.consumeIn("embeddings", "session", 7_000, start.Add(-time.Hour-23*time.Second))
	b.consumeIn("embeddings", "session", 9_000, start.Add(4*time.Hour+123*time.Millisecond))
	b.consume(start, "user-1", "gpt-4", map[string]int64{"rpm": 1_000})
}

// TestUsageWindows: every form says the same of the same windows. Their ends are in the zone that is asked
// for.
func TestUsageWindows(t *testing.T) {
	sequential(t)
	b := newBook(t)
	b.fillWindows()
	for name, line := range map[string]string{
		"windows.txt":         "user-1 --by window",
		"windows-berlin.txt":  "user-1 --by window --zone Europe/Berlin",
		"windows-kolkata.txt": "user-1 --by window --zone Asia/Kolkata --resource embeddings",
		"windows.json":        "user-1 --by window --json --zone Europe/Berlin",
		"windows.csv":         "user-1 --by window --csv",
		"windows-plot.txt":    "user-1 --by window --plot --resource gpt-4 --file " + demo,
		"windows-since.txt":   "user-1 --by window --since 2026-03-01 --zone Europe/Berlin",
	} {
		code, out, errs := b.usage(line)
		if code != 0 || errs != "" {
			t.Errorf("%s: exit code %d, stderr\n%s", line, code, errs)
		}
		golden(t, name, out)
		if _, same, _ := b.usage(strings.Replace(line, "--by", "--span", 1)); same != out {
			t.Errorf("%s with --span:\n%s", line, same)
		}
	}
	code, out, errs := b.usage("user-2 --by window --zone Europe/Berlin")
	expect(t, code, out, errs, 0, "", "user-2: no usage by window is stored since 2026-02-22 13:00 "+
		"Europe/Berlin: nothing was consumed, or neither `sluice aggregate` nor a Lambda function has counted it\n")
}

// TestUsageNever: usage of a prepaid limit is in one window, which never ends, in any zone and form.
func TestUsageNever(t *testing.T) {
	sequential(t)
	b := newBook(t)
	b.consumeIn("gpt-4", "credits", 7_000, time.UnixMilli(253_402_300_799_000))
	for line, want := range map[string]string{
		"user-1 --by window --zone Europe/Berlin":        "never",
		"user-1 --by window --json --zone Europe/Berlin": `"end":"9999-12-31T23:59:59Z"`,
		"user-1 --by window --csv --zone Asia/Kolkata":   "9999-12-31T23:59:59Z",
	} {
		code, out, errs := b.usage(line)
		if code != 0 || errs != "" || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, want %s in\n%s%s", line, code, want, out, errs)
		}
	}
}

// TestAggregateWindows: the command counts windows of limits that it has no schema of, keeps them for as long
// as it is told, and an erasure takes them along.
func TestAggregateWindows(t *testing.T) {
	s := newStream(t)
	ends := time.Now().Add(time.Hour).Truncate(time.Minute)
	for _, tc := range []int64{1_000, 3_500} {
		bucket := codec.Item{"PK": codec.S("ENTITY#user-1"), "SK": codec.S("#BUCKET#gpt-4"),
			"entity_id": codec.S("user-1"), "resource": codec.S("gpt-4"), "GSI2PK": codec.S("RESOURCE#gpt-4"),
			"GSI2SK": codec.S("BUCKET#user-1"), "rf": codec.N(1), "cv": codec.N(1), "op": codec.S("AAAAAAAAAAAA"),
			"b_usd_tc": codec.N(tc), "b_usd_we": codec.N(ends.UnixMilli()), "ttl": codec.N(ends.Unix() + 86_400)}
		if _, err := s.client.PutItem(t.Context(),
			&dynamodb.PutItemInput{TableName: &s.table, Item: bucket}); err != nil {
			t.Fatal(err)
		}
	}
	if came := s.once("--keep-windows 26h"); came.Counted != 2 || came.Windows != 3 {
		t.Errorf("%+v", came)
	}
	kept := false
	for _, item := range s.items() {
		d := codec.Decoder{Item: item}
		if d.Text("SK") == "#USAGE#gpt-4#window#usd#"+strconv.FormatInt(ends.UnixMilli(), 10) {
			kept = time.Unix(d.Int("ttl"), 0).Equal(ends.Add(26 * time.Hour))
		}
	}
	if !kept {
		t.Errorf("no window of usd that is kept for 26 hours: %v", s.items())
	}
	const usage = "usage user-1 --by window --csv --table "
	code, out, errs := sluice(t, time.Now(), strings.Fields(usage+s.table)...)
	expect(t, code, out, errs, 0, "end,resource,limit,tokens,writes,running\n"+
		ends.UTC().Format(time.RFC3339)+",gpt-4,usd,3.5,2,true\n", "")
	if code, _, errs := sluice(t, time.Now(), "entity", "erase", "user-1", "--file", demo, "--table",
		s.table); code != 0 {
		t.Fatal(errs)
	}
	if code, out, _ := sluice(t, time.Now(), strings.Fields(usage+s.table)...); code != 0 || out != "" {
		t.Errorf("exit code %d, erased usage:\n%s", code, out)
	}
}
