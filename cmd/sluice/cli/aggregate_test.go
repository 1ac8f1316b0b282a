package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// stream is a table on which calls consume, and whose stream is added up.
type stream struct {
	*testing.T

	client *dynamodb.Client
	table  string
	lim    *limits.Limiter
}

func newStream(t *testing.T) *stream {
	t.Helper()
	s := &stream{T: t, client: dynamotest.Client(t)}
	s.table = dynamotest.Table(t, s.client, operator.Table)
	var err error
	if s.lim, err = limits.New(dynamo.New(s.client, s.table)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.lim.Close(context.WithoutCancel(t.Context())) })
	return s
}

// consume has some users and their project take something, and give some of it back.
func (s *stream) consume(rounds int) {
	s.Helper()
	for i := range rounds {
		user := limits.User{ID: fmt.Sprint(i % 3), Project: limits.Project{ID: "7"}}
		lease, err := s.lim.GPT4.Acquire(s.Context(), user, limits.GPT4Cost{TPM: 100})
		if err == nil && i%2 == 0 {
			err = lease.Settle(s.Context(), limits.GPT4Cost{RPM: 1, TPM: int64(60 + i)})
		}
		if err != nil {
			s.Fatal(err)
		}
	}
}

// aggregate runs the command at an endpoint until it ends, or ctx does.
func (s *stream) aggregate(ctx context.Context, endpoint, flags string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	program := cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}
	args := append([]string{"aggregate", "--table", s.table, "--endpoint", endpoint, "--idle", "1ms"},
		strings.Fields(flags)...)
	code = program.Run(ctx, args)
	return code, out.String(), errs.String()
}

// progress matches what aggregate prints to stderr unless something is wrong: nothing, or progress where it
// takes long enough for some.
var progress = regexp.MustCompile(`^([\d,]+ records?, [\d,]+ counted, .*\n)*$`)

// once counts what there is, which must go well, and returns what that came to.
func (s *stream) once(flags string) (came struct {
	Records, Counted, Windows, Poisoned int64
	Behind                              float64 `json:"behind_seconds"`
}) {
	s.Helper()
	code, out, errs := s.aggregate(s.Context(), dynamotest.Endpoint(s), "--once --json "+flags)
	if err := json.Unmarshal([]byte(out), &came); err != nil || code != 0 || !progress.MatchString(errs) {
		s.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
	return came
}

// items returns all that is in the table.
func (s *stream) items() []codec.Item {
	s.Helper()
	out, err := s.client.Scan(s.Context(), &dynamodb.ScanInput{TableName: &s.table,
		ConsistentRead: aws.Bool(true)})
	if err != nil || out.LastEvaluatedKey != nil {
		s.Fatal("scan: ", err)
	}
	return out.Items
}

// wrong returns where the sums of the windows, by hours and by days, are not what the buckets say that they
// consumed.
func (s *stream) wrong() string {
	s.Helper()
	want, hours, days := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, item := range s.items() {
		d := codec.Decoder{Item: item}
		sort := strings.Split(d.Text("SK"), "#")
		for name := range item {
			switch {
			case sort[1] == "BUCKET" && strings.HasPrefix(name, "b_") && strings.HasSuffix(name, "_tc"):
				want[d.Text("PK")+" "+sort[2]+" "+name[2:len(name)-3]] += d.Int(name)
			case sort[1] == "USAGE" && strings.HasPrefix(name, "u_"):
				sums := map[string]map[string]int64{"hour": hours, "day": days}[sort[3]]
				sums[d.Text("PK")+" "+sort[2]+" "+name[2:]] += d.Int(name)
			}
		}
		if err := d.Err(); err != nil {
			s.Fatal(err)
		}
	}
	if len(want) == 0 {
		return "nothing was consumed"
	}
	if !maps.Equal(hours, want) || !maps.Equal(days, want) {
		return fmt.Sprintf("hours %v\ndays  %v\nwant  %v", hours, days, want)
	}
	return ""
}

// TestAggregate: what was consumed is in the windows, for people to see; a second run finds nothing new.
func TestAggregate(t *testing.T) {
	s := newStream(t)
	s.consume(9)
	if came := s.once(""); came.Counted < 18 || came.Windows < 8 || came.Records < came.Counted ||
		came.Behind != 0 {
		t.Errorf("%+v", came)
	}
	if wrong := s.wrong(); wrong != "" {
		t.Error(wrong)
	}
	if came := s.once(""); came.Counted != 0 || came.Windows != 0 {
		t.Errorf("again: %+v", came)
	}
	code, out, errs := sluice(t, time.Now(), "usage", "project-7", "--since", "2d", "--csv", "--table", s.table)
	if want := "start,resource,rpm,tpm,writes,running\n"; code != 0 || errs != "" ||
		!strings.HasPrefix(out, want) {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	s.consume(1)
	code, out, errs = s.aggregate(t.Context(), dynamotest.Endpoint(t), "--once")
	line := regexp.MustCompile(`^table ` + s.table +
		`: \d+ records read, \d of them counted in \d writes of windows; up to date\n$`)
	if code != 0 || !progress.MatchString(errs) || !line.MatchString(out) {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// TestAggregateSumsAreHeld is the control of wrong: an aggregator that forgot what it has counted counts it
// again, and is caught.
func TestAggregateSumsAreHeld(t *testing.T) {
	s := newStream(t)
	s.consume(4)
	if s.wrong() == "" {
		t.Error("nobody noticed that nothing was counted")
	}
	s.once("")
	for _, item := range s.items() {
		key := codec.Item{"PK": item["PK"], "SK": item["SK"]}
		var err error
		switch sort := item["SK"].(*types.AttributeValueMemberS).Value; {
		case strings.HasPrefix(sort, "#CHECKPOINT#"):
			_, err = s.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.table, Key: key})
		case strings.HasPrefix(sort, "#USAGE#"):
			maps.DeleteFunc(item, func(name string,
				_ types.AttributeValue) bool {
				return strings.HasPrefix(name, "w_")
			})
			_, err = s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.table, Item: item})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.once("")
	if s.wrong() == "" {
		t.Error("nobody noticed that all was counted twice")
	}
}

// proxy has the tests' engine answer, and tells of each request before and after that. A request of which
// before says that it is refused is not passed on.
func proxy(t *testing.T, before func(operation string) (refused bool), after func(operation string)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil { // who sent it is gone
			return
		}
		r = r.WithContext(context.WithoutCancel(r.Context()))
		r.Body = io.NopCloser(bytes.NewReader(body))
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if before(operation) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w,
				`{"__type":"com.amazon.coral.validate#ValidationException","message":"not today"}`)
			return
		}
		pass(t, w, r)
		after(operation)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestAggregateKilled kills it at each of its writes, before and after that is done, without a last
// checkpoint; and starts it again. Every record counts once.
func TestAggregateKilled(t *testing.T) {
	longform.NoRace(t, "TestAggregate runs the same goroutines")
	s := newStream(t)
	killed := 0
	for at := 1; ; at++ {
		s.consume(2)
		var writes atomic.Int64
		var dead atomic.Bool
		ctx, kill := context.WithCancel(t.Context())
		is := func(operation string) bool { return operation == "UpdateItem" || operation == "PutItem" }
		url := proxy(t, func(operation string) bool {
			if is(operation) && writes.Add(1) == int64(at+1)/2 && at%2 == 1 {
				dead.Store(true)
				kill()
			}
			return dead.Load()
		}, func(operation string) {
			if is(operation) && writes.Load() >= int64(at+1)/2 && at%2 == 0 {
				dead.Store(true)
				kill()
			}
		})
		code, out, errs := s.aggregate(ctx, url, "--once")
		kill()
		if !dead.Load() { // it came to its end
			if code != 0 || !progress.MatchString(errs) {
				t.Errorf("exit code %d\n%s%s", code, out, errs)
			}
			break
		}
		killed++
		if code != 1 || !strings.Contains(errs, "sluice: interrupted; run the same command again: it resumes at "+
			"the same place\n") {
			t.Errorf("killed at %d: exit code %d\n%s%s", at, code, out, errs)
		}
	}
	if killed < 8 {
		t.Errorf("killed %d times only", killed)
	}
	if wrong := s.wrong(); wrong != "" {
		t.Error(wrong)
	}
}

// TestAggregateTwoAtOnce: two beside each other, beside calls, count once.
func TestAggregateTwoAtOnce(t *testing.T) {
	s := newStream(t)
	s.consume(6)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var writing sync.WaitGroup
	checkpoints, ended := make(chan struct{}, 1_000), make(chan struct{}, 2)
	for range 2 {
		url := proxy(t, func(string) bool { return false }, func(operation string) {
			if operation == "PutItem" {
				checkpoints <- struct{}{}
			}
		})
		writing.Go(func() {
			defer func() { ended <- struct{}{} }()
			code, out, errs := s.aggregate(ctx, url, "")
			line := regexp.MustCompile(`^table ` + s.table +
				`: [\d,]+ records? read, \d+ of them counted in \d+ writes? of windows; (up to date|\d+s behind)\n$`)
			if code != 0 || !progress.MatchString(errs) || !line.MatchString(out) {
				t.Errorf("exit code %d\n%s%s", code, out, errs)
			}
		})
	}
	for range 4 {
		select {
		case <-checkpoints:
		case <-ended:
			t.Fatal("it ended by itself")
		}
		s.consume(6)
	}
	end() // as Ctrl-C does: well
	writing.Wait()
	s.once("")
	if wrong := s.wrong(); wrong != "" {
		t.Error(wrong)
	}
}

// TestAggregatePoisoned: a record that cannot be read is put aside, whole, and those behind it count.
func TestAggregatePoisoned(t *testing.T) {
	s := newStream(t)
	key := codec.Item{"PK": codec.S("ENTITY#user-bad"), "SK": codec.S("#BUCKET#gpt-4")}
	put := func(changes codec.Item) string {
		t.Helper()
		item := (&limits.GPT4Bucket{Entity: "user-bad", Op: "op"}).MarshalItem()
		maps.Copy(item, changes)
		if _, err := s.client.PutItem(t.Context(),
			&dynamodb.PutItemInput{TableName: &s.table, Item: item}); err != nil {
			t.Fatal(err)
		}
		return asJSON(t, item)
	}
	one := put(codec.Item{"b_rpm_tc": codec.S("much")})
	s.consume(3)
	file := filepath.Join(t.TempDir(), "poisoned.jsonl")
	code, out, errs := s.aggregate(t.Context(), dynamotest.Endpoint(t), "--once --poisoned "+file)
	if want := "sluice: 1 record could not be read and is not counted: see " + file + "\n"; code != 1 ||
		!sameFacts(errs, want) || !strings.HasSuffix(out, "; up to date\n") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	two := put(codec.Item{"b_tpm_tc": &types.AttributeValueMemberBOOL{Value: true}})
	s.consume(1)
	if code, _, errs = s.aggregate(t.Context(), dynamotest.Endpoint(t), "--once --poisoned "+file); code != 1 {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	three := put(codec.Item{"b_rpm_tc": codec.S("more")})
	code, _, errs = s.aggregate(t.Context(), dynamotest.Endpoint(t), "--once")
	last, rest, _ := strings.Cut(errs, "\n")
	if want := "sluice: 1 record could not be read and is not counted: see the lines above\n"; code != 1 ||
		rest != want {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	place := regexp.MustCompile(`"shard":"shardId-[^"]+","sequence":"\d+","at":"20\d\d-[^"]+"`)
	got := place.ReplaceAllString(string(text)+last+"\n", "PLACE")
	const letter = `{"error":"sluice: stream record of ENTITY#user-bad / #BUCKET#gpt-4: attribute b_%s, want ` +
		`an integer of 64 bits",PLACE,"old":%s,"new":%s}` + "\n"
	want := fmt.Sprintf(letter, "rpm_tc: of type S", "null", one) +
		fmt.Sprintf(letter, "tpm_tc: of type BOOL", one, two) +
		fmt.Sprintf(letter, "rpm_tc: of type S", two, three)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := s.client.DeleteItem(t.Context(),
		&dynamodb.DeleteItemInput{TableName: &s.table, Key: key}); err != nil {
		t.Fatal(err)
	}
	if wrong := s.wrong(); wrong != "" {
		t.Error(wrong)
	}
}

// asJSON returns an item of strings, numbers and what is neither as DynamoDB writes it, less what that is.
func asJSON(t *testing.T, item codec.Item) string {
	t.Helper()
	all := map[string]map[string]any{}
	for name, v := range item {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			all[name] = map[string]any{"S": v.Value}
		case *types.AttributeValueMemberN:
			all[name] = map[string]any{"N": v.Value}
		default:
			all[name] = map[string]any{strings.TrimPrefix(fmt.Sprintf("%T", v), "*types.AttributeValueMember"): nil}
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAggregateFails: an error of the installation ends it at once, with the cure.
func TestAggregateFails(t *testing.T) {
	longform.NoRace(t, "TestAggregate runs the same goroutines")
	client := dynamotest.Client(t)
	streamless := dynamotest.Table(t, client, func(name string) *dynamodb.CreateTableInput {
		in := operator.Table(name)
		in.StreamSpecification = nil
		return in
	})
	half := dynamotest.Table(t, client, func(name string) *dynamodb.CreateTableInput {
		in := operator.Table(name)
		in.StreamSpecification.StreamViewType = types.StreamViewTypeNewImage
		return in
	})
	const cure = "; run `sluice table check --table %s`, which says how to fix it: usage is counted from " +
		"the stream\n"
	for table, want := range map[string]string{
		streamless: "sluice: table " + streamless + " has no stream that is on" + fmt.Sprintf(cure, streamless),
		half: "sluice: the stream of table " + half + " has NEW_IMAGE, not NEW_AND_OLD_IMAGES" +
			fmt.Sprintf(cure, half),
		"cli-test-none": "sluice: table cli-test-none does not exist: ",
	} {
		for _, flags := range []string{"", "--once"} {
			code, out, errs := sluice(t, start, append([]string{"aggregate", "--idle=1ms", "--table", table},
				strings.Fields(flags)...)...)
			if code != 1 || out != "" || !hasFacts(errs, want) {
				t.Errorf("%s %s: exit code %d\n%s%s\nwant %s", table, flags, code, out, errs, want)
			}
		}
	}

	s := &stream{T: t, client: client, table: "cli-test-none"}
	silent := httptest.NewServer(nil)
	silent.Close()
	code, out, errs := s.aggregate(t.Context(), silent.URL, "")
	expect(t, code, out, errs, 1, "", "sluice: "+silent.URL+" does not answer"+
		": start `sluice dev`, or correct the endpoint (--endpoint, AWS_ENDPOINT_URL_DYNAMODB)\n")

	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamotest.Endpoint(t))
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", silent.URL) // streams alone do not answer
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	var output strings.Builder
	code = cli.Program{Stdout: &output, Stderr: &output, Now: time.Now}.Run(t.Context(),
		[]string{"aggregate", "--table", half})
	expect(t, code, "", output.String(), 1, "", "sluice: "+silent.URL+" does not answer"+
		": start `sluice dev`, or correct the endpoint (--endpoint, AWS_ENDPOINT_URL_DYNAMODB_STREAMS)\n")

	denying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".ListStreams") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w,
				`{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"User: nobody"}`)
			return
		}
		pass(t, w, r)
	}))
	defer denying.Close()
	s.table = half
	const denied, policy = "sluice: DynamoDB denies access to table ", "; attach the policy that `sluice " +
		"infra iam --role aggregator --table "
	if code, out, errs = s.aggregate(t.Context(), denying.URL, ""); code != 1 || out != "" ||
		!hasFacts(errs, denied+half) ||
		!hasFacts(errs, policy+half+"` prints\n") {
		t.Errorf("denied: exit code %d\n%s%s", code, out, errs)
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	code, out, errs = s.aggregate(over, dynamotest.Endpoint(t), "--once") // Ctrl-C at once
	expect(t, code, out, errs, 1, "",
		"sluice: interrupted; run the same command again: it resumes at the same place\n")

	folder := t.TempDir()
	const help = "; run `sluice aggregate --help`\n"
	for flags, test := range map[string]struct {
		code int
		want string
	}{
		"--poisoned=": {2, "--poisoned is empty: pass the name of a file" + help},
		"--idle 0s":   {2, "--idle 0s is too short: pass 1ms or more" + help},
		"--keep-hours=": {2,
			`--keep-hours: period "" is no duration: write a number and ms, s, m, h or d, such as 1m` + help},
		"--keep-hours 23h": {2, `--keep-hours: period "23h" is too short: a stream goes back for 24h, and what ` +
			`it delivers again has to find its window` + help},
		"--keep-windows 23h": {2, `--keep-windows: period "23h" is too short: a stream goes back for 24h, and ` +
			`what it delivers again has to find its window` + help},
		"--keep-days 400": {2,
			`--keep-days: ` + notPeriod("400") + help},
		"--table x": {2,
			`table "x" is not a table's name: pass 3 to 255 letters, digits, '_', '.' and '-', or an ARN` + help},
		"--poisoned " + folder: {1, "--poisoned: open " + folder + ": is a directory\n"},
	} {
		code, out, errs := sluice(t, start, append([]string{"aggregate"}, strings.Fields(flags)...)...)
		expect(t, code, out, errs, test.code, "", "sluice: "+test.want)
	}
}

// TestAggregateKeeps: windows are kept for as long as they are asked for.
func TestAggregateKeeps(t *testing.T) {
	s := newStream(t)
	s.consume(1)
	s.once("--keep-hours 26h --keep-days 3d")
	for _, item := range s.items() {
		d := codec.Decoder{Item: item}
		parts := strings.Split(d.Text("SK"), "#")
		if parts[1] != "USAGE" {
			continue
		}
		form, keep := "2006-01-02T15", 27*time.Hour
		if parts[3] == "day" {
			form, keep = "2006-01-02", 4*24*time.Hour
		}
		begins, err := time.Parse(form, parts[4])
		if err != nil {
			t.Fatal(err)
		}
		if got, want := time.Unix(d.Int("ttl"), 0), begins.Add(keep); !got.Equal(want) {
			t.Errorf("%s is kept until %v, want %v", d.Text("SK"), got.UTC(), want)
		}
	}
}
