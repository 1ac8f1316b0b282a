package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

const feedARN = "arn:aws:dynamodb:us-east-1:000000000000:table/feed/stream/2026-01-02T03:04:05.000"

// newFeed returns an engine with the table feed, of a hash key pk, and its stream of that view.
func newFeed(t testing.TB, view string) *rig {
	t.Helper()
	r := newRig(t)
	r.do("CreateTable", `{"TableName":"feed","BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],"KeySchema":[{"AttributeName":"pk",
		"KeyType":"HASH"}],
		"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"`+view+`"}}`)
	return r
}

// set puts an item with that n; delete takes it out.
func (r *rig) set(pk string, n int) {
	r.t.Helper()
	r.do("PutItem", fmt.Sprintf(`{"TableName":"feed","Item":{"pk":{"S":%q},"n":{"N":"%d"}}}`, pk, n))
}

func (r *rig) unset(pk string) {
	r.t.Helper()
	r.do("DeleteItem", fmt.Sprintf(`{"TableName":"feed","Key":{"pk":{"S":%q}}}`, pk))
}

// shard is a shard as DescribeStream has it.
type shard struct {
	ShardID, ParentShardID string
	SequenceNumberRange    struct{ StartingSequenceNumber, EndingSequenceNumber string }
}

// shards returns all shards of the stream, so many at once.
func (r *rig) shards(limit int) (all []shard) {
	r.t.Helper()
	start := ""
	for range 100 {
		page := parse[struct {
			StreamDescription struct {
				Shards               []shard
				LastEvaluatedShardID string
			}
		}](r.do("DescribeStream", fmt.Sprintf(`{"StreamArn":%q,"Limit":%d`, feedARN, limit)+start+`}`)).
			StreamDescription
		all = append(all, page.Shards...)
		if page.LastEvaluatedShardID == "" {
			return all
		}
		start = fmt.Sprintf(`,"ExclusiveStartShardId":%q`, page.LastEvaluatedShardID)
	}
	r.t.Fatal("no end of shards")
	return nil
}

// iterator returns an iterator of the shard; at is a type, and a sequence number where it wants one.
func (r *rig) iterator(shard string, at ...string) string {
	r.t.Helper()
	return parse[struct{ ShardIterator string }](r.do("GetShardIterator", iteratorInput(shard, at...))).
		ShardIterator
}

func iteratorInput(shard string, at ...string) string {
	input := fmt.Sprintf(`{"StreamArn":%q,"ShardId":%q,"ShardIteratorType":%q`, feedARN, shard, at[0])
	if len(at) > 1 {
		input += fmt.Sprintf(`,"SequenceNumber":%q`, at[1])
	}
	return input + `}`
}

// record is a record, as far as models go.
type record struct {
	EventName string
	Dynamodb  struct {
		Keys, NewImage, OldImage json.RawMessage
		SequenceNumber           string
	}
}

func (r record) sequence() string { return r.Dynamodb.SequenceNumber }

// records reads on from an iterator, so many at once, until the shard ends or has no more. next is where to
// go on, or empty.
func (r *rig) records(iterator string, limit int) (all []record, next string) {
	r.t.Helper()
	for range 1000 {
		page := parse[struct {
			Records           []record
			NextShardIterator string
		}](r.do("GetRecords", fmt.Sprintf(`{"ShardIterator":%q,"Limit":%d}`, iterator, limit)))
		all = append(all, page.Records...)
		iterator = page.NextShardIterator
		if iterator == "" || len(page.Records) == 0 {
			return all, iterator
		}
	}
	r.t.Fatal("no end of records")
	return nil, ""
}

// An iterator goes on with what comes after it was made, LATEST from then on.
func TestIteratorsGoOn(t *testing.T) {
	t.Parallel()
	r := newFeed(t, "NEW_AND_OLD_IMAGES")
	r.set("a", 1)
	shard := r.shards(1)[0].ShardID
	horizon, latest := r.iterator(shard, "TRIM_HORIZON"), r.iterator(shard, "LATEST")
	r.set("a", 2)
	var nexts []string
	for iterator, want := range map[string]int{horizon: 2, latest: 1} {
		all, next := r.records(iterator, 10)
		if len(all) != want {
			t.Errorf("%d records, want %d", len(all), want)
		}
		nexts = append(nexts, next)
	}
	r.set("b", 1)
	for _, next := range nexts {
		if all, _ := r.records(next, 10); len(all) != 1 {
			t.Errorf("%d records of one change", len(all))
		}
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	const (
		key      = `"Keys":{"pk":{"S":"a"}}`
		newImage = `"NewImage":{"pk":{"S":"a"},"n":{"N":"2"}}`
		oldImage = `"OldImage":{"pk":{"S":"a"},"n":{"N":"1"}}`
	)
	for _, test := range []struct{ view, insert, modify, remove string }{
		{"KEYS_ONLY", key + `,"SizeBytes":3`, key + `,"SizeBytes":3`, key + `,"SizeBytes":3`},
		{"NEW_IMAGE", key + `,"NewImage":{"pk":{"S":"a"},"n":{"N":"1"}},"SizeBytes":9`,
			key + `,` + newImage + `,"SizeBytes":9`,
			key + `,"SizeBytes":3`},
		{"OLD_IMAGE", key + `,"SizeBytes":3`, key + `,` + oldImage + `,"SizeBytes":9`,
			key + `,"OldImage":{"pk":{"S":"a"},"n":{"N":"2"}},"SizeBytes":9`},
		{"NEW_AND_OLD_IMAGES", key + `,"NewImage":{"pk":{"S":"a"},"n":{"N":"1"}},"SizeBytes":9`,
			key + `,` + newImage + `,` + oldImage + `,"SizeBytes":15`,
			key + `,"OldImage":{"pk":{"S":"a"},"n":{"N":"2"}},"SizeBytes":9`},
	} {
		r := newFeed(t, test.view)
		r.pass(1500 * time.Millisecond)
		r.set("a", 1)
		r.set("a", 1) // changes nothing
		r.set("a", 2)
		r.unset("a")
		r.unset("a") // changes nothing
		shard := r.shards(1)[0].ShardID
		output := parse[struct {
			Records []map[string]any
		}](r.do("GetRecords", fmt.Sprintf(`{"ShardIterator":%q}`, r.iterator(shard, "TRIM_HORIZON"))))
		ids := map[any]bool{}
		for i, got := range output.Records {
			id, _ := got["eventID"].(string)
			if len(id) != 32 || ids[id] {
				t.Errorf("eventID %q", id)
			}
			ids[id] = true
			delete(got, "eventID")
			want := []string{test.insert, test.modify, test.remove}[i]
			text, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			// The shard itself has the first sequence number.
			if diff := jsonDiff(
				fmt.Sprintf(`{"eventName":%q,"eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"us-east-1",
				"dynamodb":{"ApproximateCreationDateTime":1767323046,"SequenceNumber":"00000000000000000000%d",
				"StreamViewType":%q,%s}}`,
					[]string{"INSERT", "MODIFY", "REMOVE"}[i], i+2, test.view, want), string(text)); diff != "" {
				t.Errorf("%s: record %d (-want +got):\n%s", test.view, i, diff)
			}
		}
		if len(output.Records) != 3 {
			t.Errorf("%s: %d records, want 3", test.view, len(output.Records))
		}
	}
}

// A deletion by expiry is the service's, one by a user is not.
func TestRecordOfExpiry(t *testing.T) {
	t.Parallel()
	r := newFeed(t, "KEYS_ONLY")
	r.do("UpdateTimeToLive",
		`{"TableName":"feed","TimeToLiveSpecification":{"AttributeName":"n","Enabled":true}}`)
	r.set("a", int(r.now.Unix())+5)
	r.set("b", int(r.now.Unix())+5)
	r.unset("b")
	r.pass(10 * time.Second)
	shard := r.shards(1)[0].ShardID
	output := parse[struct {
		Records []struct {
			EventName    string
			UserIdentity json.RawMessage
		}
	}](r.do("GetRecords", fmt.Sprintf(`{"ShardIterator":%q}`, r.iterator(shard, "TRIM_HORIZON"))))
	var got []string
	for _, record := range output.Records {
		got = append(got, record.EventName+string(record.UserIdentity))
	}
	want := []string{"INSERT", "INSERT", "REMOVE",
		`REMOVE{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"}`}
	if !slices.Equal(got, want) {
		t.Errorf("records %q, want %q", got, want)
	}
}

func TestGetRecordsSize(t *testing.T) {
	t.Parallel()
	r := newFeed(t, "NEW_IMAGE")
	for i := range 4 {
		r.do("PutItem", fmt.Sprintf(`{"TableName":"feed","Item":{"pk":{"S":"k%d"},"b":{"S":%q}}}`, i,
			strings.Repeat("b", 390<<10)))
	}
	iterator := r.iterator(r.shards(1)[0].ShardID, "TRIM_HORIZON")
	page := func() int {
		output := parse[struct {
			Records           []record
			NextShardIterator string
		}](r.do("GetRecords", fmt.Sprintf(`{"ShardIterator":%q}`, iterator)))
		iterator = output.NextShardIterator
		return len(output.Records)
	}
	for _, want := range []int{2, 2, 0} {
		if got := page(); got != want {
			t.Errorf("%d records at once, want %d", got, want)
		}
	}
}

// Streams remember for a day, also those of tables that are gone, and iterators live for a quarter of an
// hour.
func TestStreamRetention(t *testing.T) {
	t.Parallel()
	r := newFeed(t, "NEW_AND_OLD_IMAGES")
	r.set("a", 1)
	shard := r.shards(1)[0].ShardID
	iterator := r.iterator(shard, "TRIM_HORIZON")
	all, _ := r.records(iterator, 10)
	read := fmt.Sprintf(`{"ShardIterator":%q}`, iterator)
	r.pass(15 * time.Minute)
	r.do("GetRecords", read)
	r.pass(time.Millisecond)
	r.fails("GetRecords", read, exception.ExpiredIterator, "The shard iterator has expired")
	_, next := r.records(r.iterator(shard, "TRIM_HORIZON"), 10)
	for range 3 { // each next one lives anew
		r.pass(10 * time.Minute)
		_, next = r.records(next, 10)
	}

	r.pass(24*time.Hour - 50*time.Minute)
	r.set("a", 2)
	iterator = r.iterator(shard, "TRIM_HORIZON")
	if all, _ := r.records(iterator, 10); len(all) != 2 {
		t.Errorf("%d records before the day is over, want 2", len(all))
	}
	r.pass(10 * time.Minute)
	for _, at := range []string{"AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"} {
		r.fails("GetShardIterator", iteratorInput(shard, at, all[0].sequence()),
			exception.TrimmedDataAccess, "The data you are trying to access has been trimmed")
	}
	r.fails("GetRecords", fmt.Sprintf(`{"ShardIterator":%q}`, iterator),
		exception.TrimmedDataAccess, "The data you are trying to access has been trimmed")
	if all, _ := r.records(r.iterator(shard, "TRIM_HORIZON"), 10); len(all) != 1 {
		t.Errorf("%d records after a day, want 1", len(all))
	}

	r.do("DeleteTable", `{"TableName":"feed"}`)
	all, next = r.records(r.iterator(shard, "TRIM_HORIZON"), 10)
	if len(all) != 1 || next != "" {
		t.Errorf("of a deleted table: %d records, next iterator %q; want 1 and none", len(all), next)
	}
	r.gives("ListStreams", `{"TableName":"feed"}`,
		`{"Streams":[{"StreamArn":"`+feedARN+`","TableName":"feed","StreamLabel":"2026-01-02T03:04:05.000"}]}`)
	r.pass(25 * time.Hour)
	r.gives("ListStreams", `{}`, `{"Streams":[]}`)
	r.fails("GetShardIterator", iteratorInput(shard, "LATEST"), exception.ResourceNotFound,
		"Requested resource not found: Stream: "+feedARN+" not found")
}

func TestDescribeStream(t *testing.T) {
	t.Parallel()
	r := newFeed(t, "KEYS_ONLY")
	describe := func(status, shards string) {
		t.Helper()
		r.gives("DescribeStream", `{"StreamArn":"`+feedARN+`"}`, `{"StreamDescription":{"StreamArn":"`+feedARN+`",
			"StreamLabel":"2026-01-02T03:04:05.000","StreamStatus":"`+status+`","StreamViewType":"KEYS_ONLY",
			"CreationRequestDateTime":1767323045,"TableName":"feed","KeySchema":[{"AttributeName":"pk",
			"KeyType":"HASH"}],
			"Shards":[`+shards+`]}}`)
	}
	shard := func(id int, parent, ending string) string {
		if ending != "" {
			ending = `,"EndingSequenceNumber":"` + ending + `"`
		}
		if parent != "" {
			parent = `,"ParentShardId":"` + parent + `"`
		}
		return fmt.Sprintf(
			`{"ShardId":"shardId-%020d","SequenceNumberRange":{"StartingSequenceNumber":"%021d"%s}%s}`, id, id, ending,
			parent)
	}
	describe("ENABLED", shard(1, "", ""))
	r.set("a", 1)
	if err := r.SplitShards("feed"); err != nil {
		t.Fatal(err)
	}
	const root, last = "shardId-00000000000000000001", "000000000000000000002"
	describe("ENABLED", shard(1, "", last)+","+shard(3, root, "")+","+shard(4, root, ""))
	r.do("UpdateTable", `{"TableName":"feed","StreamSpecification":{"StreamEnabled":false}}`)
	const end = "000000000000000000004"
	describe("DISABLED", shard(1, "", last)+","+shard(3, root, end)+","+shard(4, root, end))
	if err := r.SplitShards("feed"); err == nil {
		t.Error("a disabled stream was split")
	}
	if err := r.SplitShards("nope"); err == nil {
		t.Error("the stream of a table that does not exist was split")
	}
}

func TestListStreams(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	arn := func(name string) string {
		return "arn:aws:dynamodb:us-east-1:000000000000:table/" + name + "/stream/2026-01-02T03:04:05.000"
	}
	summary := func(name string) string {
		return `{"StreamArn":"` + arn(name) + `","TableName":"` + name +
			`","StreamLabel":"2026-01-02T03:04:05.000"}`
	}
	for _, name := range []string{"ccc", "aaa", "bbb"} {
		r.do("CreateTable", parse[definition](simple).with(`{"TableName":"`+name+`",
			"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"}}`))
	}
	r.gives("ListStreams", `{}`, `{"Streams":[`+summary("aaa")+`,`+summary("bbb")+`,`+summary("ccc")+`]}`)
	r.gives("ListStreams", `{"Limit":3}`, `{"Streams":[`+summary("aaa")+`,`+summary("bbb")+`,`+
		summary("ccc")+`]}`)
	r.gives("ListStreams", `{"Limit":2}`, `{"Streams":[`+summary("aaa")+`,`+summary("bbb")+
		`],"LastEvaluatedStreamArn":"`+arn("bbb")+`"}`)
	r.gives("ListStreams", `{"ExclusiveStartStreamArn":"`+arn("bbb")+`"}`, `{"Streams":[`+summary("ccc")+`]}`)
	r.gives("ListStreams", `{"TableName":"bbb"}`, `{"Streams":[`+summary("bbb")+`]}`)
	r.gives("ListStreams", `{"TableName":"nope"}`, `{"Streams":[]}`)
}

func TestStreamsInvalid(t *testing.T) {
	t.Parallel()
	r := newFeed(t, "KEYS_ONLY")
	r.set("a", 1)
	const (
		least = "1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: Member must " +
			"have value greater than or equal to 1"
		rules = "One or more parameter values were invalid: "
		short = " failed to satisfy constraint: Member must have length greater than or equal to "
	)
	id := r.shards(1)[0].ShardID
	one := "000000000000000000001"
	for _, test := range []struct{ operation, input, want string }{
		{"ListStreams", `{"Limit":0}`, least},
		{"ListStreams", `{"Limit":101}`, rules + "Limit cannot be greater than the maximum allowed size: 100"},
		{"DescribeStream", `{"StreamArn":"` + feedARN + `","Limit":0}`, least},
		{"DescribeStream", `{"StreamArn":"` + feedARN + `","Limit":101}`,
			rules + "Limit cannot be greater than the maximum: 100"},
		{"DescribeStream", `{"StreamArn":"` + feedARN + `","ExclusiveStartShardId":"foo"}`,
			"1 validation error detected: Value 'foo' at 'exclusiveStartShardId'" + short + "28"},
		{"GetShardIterator", iteratorInput(id, "TRIM_HORIZON", one),
			rules + "SequenceNumber should not be passed for this iterator type"},
		{"GetShardIterator", iteratorInput(id, "AT_SEQUENCE_NUMBER", "abc"),
			"1 validation error detected: Value 'abc' at 'sequenceNumber'" + short + "21"},
		{"GetShardIterator", iteratorInput(id, "AT_SEQUENCE_NUMBER", strings.Repeat("x", 21)),
			rules + "Invalid SequenceNumber"},
		{"GetShardIterator", iteratorInput(id, "AT_SEQUENCE_NUMBER", strings.Repeat("0", 21)),
			"Invalid SequenceNumber for the shard"},
		{"GetShardIterator", iteratorInput(id, "AFTER_SEQUENCE_NUMBER", "000000000000000000003"),
			"Invalid SequenceNumber for the shard"},
		{"GetRecords", `{"ShardIterator":"` + feedARN + `|1|Zm9v"}`, "Invalid ShardIterator"},
	} {
		r.invalid(test.operation, test.input, test.want)
	}
	r.fails("GetShardIterator", strings.Replace(iteratorInput(id, "LATEST"), feedARN, "foo", 1),
		exception.ResourceNotFound,
		"Requested resource not found: Stream: foo not found")
}
