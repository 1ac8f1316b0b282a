package cli_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/usage"
)

var update = flag.Bool("update", false, "write testdata/usage anew")

// golden holds got against a file of testdata/usage.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "usage", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: run go test -update ./cmd/sluice/cli -run Usage if this is as good:\n%s", file, got)
	}
}

// book is an aggregator that writes the windows of made-up records.
type book struct {
	t          *testing.T
	aggregator *usage.Aggregator
	client     *dynamodb.Client
	table      string
	written    int
}

// newBook returns a book of a table of its own.
func newBook(t *testing.T) *book {
	t.Helper()
	b := &book{t: t, client: dynamotest.Client(t)}
	b.table = dynamotest.Table(t, b.client, operator.Table)
	var err error
	b.aggregator, err = usage.New(usage.Config{
		Client: b.client, Table: b.table, Extract: limits.ExtractDeltas,
		Poisoned: func(_ context.Context, p usage.Poison) error { return p.Err },
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// image is a bucket that has consumed so many millitokens of each limit.
func image(entity, resource string, consumed map[string]int64) map[string]streams.AttributeValue {
	item := map[string]streams.AttributeValue{
		"PK": &streams.AttributeValueMemberS{
			Value: "ENTITY#" + entity,
		}, "SK": &streams.AttributeValueMemberS{Value: "#BUCKET#" + resource},
		"entity_id": &streams.AttributeValueMemberS{Value: entity},
	}
	for limit, milli := range consumed {
		item["b_"+limit+"_tc"] = &streams.AttributeValueMemberN{Value: strconv.FormatInt(milli, 10)}
	}
	return item
}

// consume adds a record by which a bucket's limits consumed so many millitokens at an instant.
func (b *book) consume(at time.Time, entity, resource string, milli map[string]int64) {
	b.t.Helper()
	b.add(at, entity, resource, milli, nil)
}

// add is consume; the new image also has these attributes.
func (b *book) add(at time.Time, entity, resource string, milli map[string]int64,
	more map[string]streams.AttributeValue) {
	b.t.Helper()
	before := map[string]int64{}
	after := map[string]int64{}
	const already = 1_000_000_000
	for limit, n := range milli {
		before[limit], after[limit] = already, already+n
	}
	now := image(entity, resource, after)
	maps.Copy(now, more)
	b.written++
	rec, err := usage.FromStreams(streams.Record{EventName: "MODIFY", Dynamodb: &streams.StreamRecord{
		ApproximateCreationDateTime: &at, SequenceNumber: aws.String(strconv.Itoa(b.written)),
		OldImage: image(entity, resource, before), NewImage: now,
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.aggregator.Add(b.t.Context(), "shardId-1", []codec.Record{rec}); err != nil {
		b.t.Fatal(err)
	}
}

// usage runs the command at start.
func (b *book) usage(line string) (code int, stdout, stderr string) {
	b.t.Helper()
	return sluice(b.t, start, append(append([]string{"usage"}, strings.Fields(line)...), "--table", b.table)...)
}

// fill writes a day of user-1, whose nights are quiet, and some windows of project-7, on two resources.
func (b *book) fill() {
	b.t.Helper()
	for hour := range 30 {
		at := start.Add(time.Duration(hour-30) * time.Hour)
		if clock := at.Hour(); clock < 7 && clock != 2 {
			continue
		}
		n := int64(1 + hour*hour*11%23)
		b.consume(at, "user-1", "gpt-4", map[string]int64{"rpm": n * 180_000, "tpm": n * 27_100_500})
	}
	yesterday := start.Add(-24 * time.Hour)
	b.consume(yesterday, "project-7", "gpt-4", map[string]int64{"rpm": 2_000, "tpm": 1_234_567})
	b.consume(yesterday.Add(time.Minute), "project-7", "gpt-4", map[string]int64{"rpm": 1_000})
	b.consume(yesterday, "project-7", "embeddings", map[string]int64{"rps": 3_000})
	b.consume(start, "project-7", "gpt-4", map[string]int64{"tpm": -234_567})
	b.consume(start, "team-1", "gpt-4", map[string]int64{"tpm": 1_500}) // of a kind that limits.yaml has no more
}

// TestUsageForms: every form says the same of the same windows.
func TestUsageForms(t *testing.T) {
	sequential(t)
	b := newBook(t)
	b.fill()
	for name, line := range map[string]string{
		"days.txt":     "project-7",
		"hours.txt":    "project-7 --by hour",
		"resource.txt": "project-7 --resource embeddings --by hour",
		"today.txt":    "project-7 --since 2026-03-01",
		"days.json":    "project-7 --json",
		"days.csv":     "project-7 --csv",
		"plot.txt":     "user-1 --by hour --since 12h --plot --file " + demo,
		"nofile.txt":   "project-7 --plot",
		"unknown.txt":  "team-1 --plot --file " + demo,
		"far.txt":      "project-7 --plot --file " + demo,
	} {
		code, out, errs := b.usage(line)
		if code != 0 || errs != "" {
			t.Errorf("%s: exit code %d, stderr\n%s", line, code, errs)
		}
		golden(t, name, out)
	}
	for name, line := range map[string]string{
		"hours.svg": "user-1 --resource gpt-4 --by hour --since 2d --file " + demo,
		"days.svg":  "project-7 --by day --file " + demo,
	} {
		file := filepath.Join(t.TempDir(), name)
		code, out, errs := b.usage(line + " --svg " + file)
		expect(t, code, out, errs, 0, "", "wrote "+file+"\n") // stdout may be where the picture goes
		drawn, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, string(drawn))
		if bytes.Contains(drawn, []byte("<script")) || bytes.Contains(drawn, []byte("NaN")) ||
			bytes.Contains(drawn, []byte("%!")) {
			t.Errorf("%s: a picture with what is no picture:\n%s", name, drawn)
		}
	}
}

// TestUsageBounds: a window counts from the instant on that it still holds, and what has not come yet is not
// asked for.
func TestUsageBounds(t *testing.T) {
	sequential(t)
	b := newBook(t)
	for hours := range 4 {
		b.consume(
			start.Add(time.Duration(-hours)*time.Hour-time.Minute),
			"user-1",
			"gpt-4",
			map[string]int64{"rpm": 1_000},
		)
	}
	for resource, line := range map[string]string{"one": "--resource gpt-4", "all": ""} {
		// by the key, and by a look at each
		for since, want := range map[string]int{"1m": 1, "59m": 1, "61m": 2, "2h": 2, "121m": 3, "7d": 4} {
			code, out, errs := b.usage("user-1 --json --by hour --since " + since + " " + line)
			if got := strings.Count(out, "\n"); code != 0 || got != want {
				t.Errorf(
					"%s since %s: exit code %d, %d windows, want %d\n%s%s",
					resource,
					since,
					code,
					got,
					want,
					out,
					errs,
				)
			}
		}
	}
}

// TestUsageOfNobody: that nothing is there is no mistake; no form prints anything, and no file is written.
func TestUsageOfNobody(t *testing.T) {
	sequential(t)
	b := newBook(t)
	file := filepath.Join(t.TempDir(), "none.svg")
	for _, form := range []string{"", "--json", "--csv", "--plot", "--svg " + file} {
		code, out, errs := b.usage("user-1 --resource gpt-4 " + form)
		expect(
			t,
			code,
			out,
			errs,
			0,
			"",
			"user-1 on gpt-4: no usage by day is stored since 2026-02-22 00:00 UTC: nothing was consumed, or "+
				"neither `sluice aggregate` nor a Lambda function has counted it\n",
		)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a chart of nothing was written")
	}
}

func TestUsageFails(t *testing.T) {
	sequential(t)
	b := newBook(t)
	b.consume(start, "user-1", "gpt-4", map[string]int64{"rpm": 1_000})
	const help = "; run `sluice usage --help`\n"
	for line, want := range map[string]string{
		"user": `entity "user" is not of the form kind-id: write it as it is stored, ` +
			`such as user-123` + help,
		"user-1 --resource GPT%": `resource "GPT%" cannot be a name in limits.yaml: write it as there, such ` +
			`as gpt-4` + help,
		"user-1 --resource=": `resource "" cannot be a name in limits.yaml: write it as there, such as ` +
			`gpt-4` + help,
		"user-1 --since=": `--since: period "" is no duration: write a number and ms, s, m, h or d, ` +
			`such as 1m; or pass a date, such as 2026-11-21` + help,
		"user-1 --since 7": `--since: ` + notPeriod("7") + `; or pass a date, such as 2026-11-21` +
			help,
		"user-1 --since 2026-03-02": `--since 2026-03-02: that day has not begun in UTC: pass an earlier one` +
			help,
		"user-1 --since 2026-02-30":    `--since 2026-02-30 is not a date: pass one such as 2026-11-21` + help,
		"user-1 --since 2026-02-28T10": `--since 2026-02-28T10 is not a date: pass one such as 2026-11-21` + help,
		"user-1 --plot --file=": `--file is empty: pass the path of the schema, or leave the flag out for ` +
			`limits.yaml` + help,
		"user-1 --by week":    `--by must be one of "hour","day","month","window" but got "week"` + help,
		"user-1 --svg=":       `--svg is empty: pass the name of a file` + help,
		"user-1 --json --csv": `--json and --csv can't be used together` + help,
	} {
		code, out, errs := b.usage(line)
		expect(t, code, out, errs, 2, "", "sluice: "+want)
	}
	code, out, errs := b.usage("user-1 --plot --file none.yaml")
	if code != 1 || out != "" || !hasFacts(errs, "; pass --file, or run the command in the schema's folder\n") {
		t.Errorf("a schema that is not there: exit code %d\n%s%s", code, out, errs)
	}
	code, out, errs = b.usage("user-1 --svg " + filepath.Join(t.TempDir(), "none", "x.svg"))
	if code != 1 || out != "" || !hasFacts(errs, "sluice: --svg ") ||
		!strings.Contains(errs, ": there is no folder ") {
		t.Errorf("a folder that is not there: exit code %d\n%s%s", code, out, errs)
	}
	code, out, errs = sluice(t, start, "usage", "user-1", "--table", "cli-test-none")
	if code != 1 || out != "" || !hasFacts(errs, "sluice: table cli-test-none does not exist: ") {
		t.Errorf("a missing table: exit code %d\n%s%s", code, out, errs)
	}
}

// TestUsageMalformed: an item that is no window is named, with its attribute; nothing is printed beside it.
func TestUsageMalformed(t *testing.T) {
	sequential(t)
	for name, test := range map[string]struct {
		sort string
		item codec.Item
		want string
	}{
		"consumed": {"gpt-4#day#2026-03-01", codec.Item{"writes": codec.N(1), "u_rpm": codec.S("much")},
			"attribute u_rpm: of type S, want an integer of 64 bits"},
		"writes": {"gpt-4#day#2026-03-01", codec.Item{"u_rpm": codec.N(1)},
			"attribute writes: missing, want an integer of 64 bits"},
		"start": {
			"gpt-4#day#2026-02-30", codec.Item{"writes": codec.N(1)},
			`attribute SK: "#USAGE#gpt-4#day#2026-02-30", want a start such as 2006-01-02`,
		},
		"key": {"gpt-4", codec.Item{"writes": codec.N(1)},
			`attribute SK: "#USAGE#gpt-4", want #USAGE#<resource>#<span>#<start>`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			b.consume(start.Add(-24*time.Hour), "user-1", "gpt-4", map[string]int64{"rpm": 1_000})
			test.item["PK"], test.item["SK"] = codec.S("ENTITY#user-1"), codec.S("#USAGE#"+test.sort)
			if _, err := b.client.PutItem(t.Context(),
				&dynamodb.PutItemInput{TableName: &b.table, Item: test.item}); err != nil {
				t.Fatal(err)
			}
			code, out, errs := b.usage("user-1")
			expect(t, code, out, errs, 1, "", fmt.Sprintf("sluice: the window ENTITY#user-1 / #USAGE#%s is "+
				"malformed: %s; fix or delete the item\n", test.sort, test.want))
		})
	}
}

// small is a client whose pages have one item.
type small struct {
	*dynamodb.Client
	pages int
}

// Query is the client's.
func (s *small) Query(
	ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	s.pages++
	in.Limit = aws.Int32(1)
	return s.Client.Query(ctx, in, opts...)
}

// TestUsagePages: all pages are read, and no more than are asked for.
func TestUsagePages(t *testing.T) {
	b := newBook(t)
	for day := range 4 {
		b.consume(start.AddDate(0, 0, -day), "user-1", "gpt-4", map[string]int64{"rpm": 1_000})
	}
	client := &small{Client: b.client}
	question := usage.Question{Entity: "user-1", Resource: "gpt-4", Span: usage.Day,
		Until: start.Truncate(24 * time.Hour)}
	var days []int
	for u, err := range usage.Read(t.Context(), client, b.table, question) {
		if err != nil {
			t.Fatal(err)
		}
		days = append(days, u.Start.Day())
	}
	if got := fmt.Sprint(days); got != "[26 27 28]" || client.pages < 3 {
		t.Errorf("days %s in %d pages, want [26 27 28]", got, client.pages)
	}
	client.pages = 0
	for _, err := range usage.Read(t.Context(), client, b.table, question) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if client.pages != 1 {
		t.Errorf("%d pages were read for one window", client.pages)
	}
	question.Since = question.Until
	for u, err := range usage.Read(t.Context(), client, b.table, question) {
		t.Errorf("of no time there is %v, %v", u, err)
	}
}
