package conformance_test

import (
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// answering returns an engine that says the same to every request.
func answering(t *testing.T, status int, body string) server {
	t.Helper()
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-Requestid", "1")
		w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(body))), 10))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(engine.Close)
	return server{url: engine.URL}
}

// TestRunnerNotices is the negative control: a reply that differs in what matters is a difference, and only
// such a one.
func TestRunnerNotices(t *testing.T) {
	const item = `{"Item":{"s":{"SS":["a","b"]},"l":{"L":[{"N":"1"},{"N":"2"}]}},
		"ConsumedCapacity":{"CapacityUnits":0.5}}`
	for _, test := range []struct {
		name, operation string
		status          int
		recorded, reply string
		same            bool
	}{
		{"the same", "GetItem", 200, item, item, true},
		{"members in another order", "GetItem", 200, `{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
		{"a set in another order", "GetItem", 200, `{"v":{"SS":["a","b"]}}`, `{"v":{"SS":["b","a"]}}`, true},
		{"a set misses an element", "GetItem", 200, `{"v":{"SS":["a","b"]}}`, `{"v":{"SS":["a"]}}`, false},
		{"a list in another order", "GetItem", 200, `{"v":{"L":[{"N":"1"},{"N":"2"}]}}`,
			`{"v":{"L":[{"N":"2"},{"N":"1"}]}}`, false},
		{"another value", "GetItem", 200, `{"v":{"S":"a"}}`, `{"v":{"S":"b"}}`, false},
		{"another type", "GetItem", 200, `{"v":{"S":"1"}}`, `{"v":{"N":"1"}}`, false},
		{"another spelling of an attribute's number", "GetItem", 200, `{"v":{"N":"1"}}`, `{"v":{"N":"1.0"}}`,
			false},
		{"another spelling of a plain number", "GetItem", 200, `{"v":1}`, `{"v":1.0}`, true},
		{"another plain number", "GetItem", 200, `{"v":1}`, `{"v":1.5}`, false},
		{"a member is missing", "GetItem", 200, `{"a":1,"b":2}`, `{"a":1}`, false},
		{"a member too many", "GetItem", 200, `{"a":1}`, `{"a":1,"b":2}`, false},
		{"an empty member is not none", "GetItem", 200, `{"Item":{}}`, `{}`, false},
		{"another status", "GetItem", 400, `{}`, `{}`, false},
		{"any body", "GetItem", 200, `*`, `{"a":1}`, true},
		{"any body, another status", "GetItem", 400, `*`, `{"a":1}`, false},
		{"a scan in another order", "Scan", 200, `{"Items":[{"a":1},{"a":2}]}`, `{"Items":[{"a":2},{"a":1}]}`,
			true},
		{"a query in another order", "Query", 200, `{"Items":[{"a":1},{"a":2}]}`, `{"Items":[{"a":2},{"a":1}]}`,
			false},
		{"a scan misses an item", "Scan", 200, `{"Items":[{"a":1},{"a":1}]}`, `{"Items":[{"a":1}]}`, false},
		{"another time", "DescribeTable", 200, `{"CreationDateTime":"<CreationDateTime>"}`,
			`{"CreationDateTime":1795270227.085}`, true},
		{"no time", "DescribeTable", 200, `{"CreationDateTime":"<CreationDateTime>"}`,
			`{"CreationDateTime":"soon"}`, false},
		{"an exception's prefix", "GetItem", 200, `{"__type":"AException","message":"m"}`,
			`{"__type":"com.x#AException","Message":"m"}`, true},
		{"another exception", "GetItem", 200, `{"__type":"AException","message":"m"}`,
			`{"__type":"BException","message":"m"}`, false},
		{"another message", "GetItem", 200, `{"__type":"AException","message":"m"}`,
			`{"__type":"AException","message":"n"}`, false},
		{"reasons in another order", "TransactWriteItems", 200,
			`{"CancellationReasons":[{"Code":"None"},{"Code":"A"}]}`,
			`{"CancellationReasons":[{"Code":"A"},{"Code":"None"}]}`, false},
		{"no JSON", "GetItem", 200, `{}`, `{`, false},
		{"two replies", "GetItem", 200, `{}`, `{}{}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := fmt.Sprintf("> %s\n{}\n< %d\n%s\n", test.operation, test.status, test.recorded)
			parsed, err := parseScript(text)
			if err != nil {
				t.Fatal(err)
			}
			difference, err := newRun(answering(t, 200, test.reply)).check(t.Context(), parsed.steps[0])
			if err != nil {
				t.Fatal(err)
			}
			if (difference == "") != test.same {
				t.Errorf("recorded %s, got %s: difference %q", test.recorded, test.reply, difference)
			}
		})
	}
}

// TestRunnerChecksHeaders: a reply without a request id or with a wrong checksum fails whatever it says.
func TestRunnerChecksHeaders(t *testing.T) {
	parsed, err := parseScript("> GetItem\n{}\n< 200\n*\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, id, sum string
		local         bool
		want          string // how the difference begins
	}{
		{"both", "1", "2745614147", false, "<nil>"},
		{"no request id", "", "2745614147", false, "the reply has no x-amzn-RequestId"},
		{"no checksum", "1", "", false, `x-amz-crc32 is ""`},
		{"no checksum of DynamoDB Local", "1", "", true, "<nil>"},
		{"a wrong checksum", "1", "7", false, `x-amz-crc32 is "7"`},
		{"a wrong checksum of DynamoDB Local", "1", "7", true, `x-amz-crc32 is "7"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range map[string]string{"X-Amzn-Requestid": test.id, "X-Amz-Crc32": test.sum} {
					if value != "" {
						w.Header().Set(name, value)
					}
				}
				_, _ = io.WriteString(w, "{}")
			}))
			t.Cleanup(engine.Close)
			_, err := newRun(server{url: engine.URL, local: test.local}).check(t.Context(), parsed.steps[0])
			if got := fmt.Sprint(err); !strings.HasPrefix(got, test.want) {
				t.Errorf("error %s, want %s", got, test.want)
			}
		})
	}
}

// TestRunnerKnowsTheEngine: where the two differ, DynamoDB Local is held to its reply and every other engine
// to AWS's.
func TestRunnerKnowsTheEngine(t *testing.T) {
	parsed, err := parseScript("> GetItem\n{}\n< 200 AWS counts otherwise\n{\"n\":1}\n< local 200\n{\"n\":2}\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		local bool
		reply string
		same  bool
	}{
		{false, `{"n":1}`, true},
		{false, `{"n":2}`, false},
		{true, `{"n":2}`, true},
		{true, `{"n":1}`, false},
	} {
		engine := answering(t, 200, test.reply)
		engine.local = test.local
		got, err := newRun(engine).check(t.Context(), parsed.steps[0])
		if err != nil || (got == "") != test.same {
			t.Errorf("local %v, reply %s: difference %q, error %v", test.local, test.reply, got, err)
		}
	}
}

func TestScriptErrors(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"no operation", "{}\n", `1: want a comment or > OPERATION, not "{}"`},
		{"status", "> A\n{}\n< good\n{}\n", `3: "good" is no status`},
		{"two replies", "> A\n{}\n< 200\n{}\n< 200\n{}\n",
			"5: want one reply, or one with a reason and then < local"},
		{"local alone", "> A\n{}\n< local 200\n{}\n", "3: want one reply, or one with a reason and then < local"},
		{"local without a reason", "> A\n{}\n< 200\n{}\n< local 200\n{}\n",
			"5: want one reply, or one with a reason and then < local"},
		{"a reason without local", "\n> A\n{}\n< 200 AWS\n{}\n", "2: a reason, but no < local"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := parseScript(test.text)
			if err == nil || err.Error() != test.want {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

func TestDirectiveErrors(t *testing.T) {
	for _, test := range []struct{ directive, want string }{
		{"repeat 3", "there is no directive @repeat"},
		{"segments", "@segments : want a number from 1 on"},
		{"segments 0", "@segments 0: want a number from 1 on"},
		{"save name Item.absent", "no text at Item.absent in {}"},
	} {
		s := &step{operation: "Scan", directives: []string{test.directive}, request: "{}",
			want: &reply{status: 200, body: "{}"}}
		if _, err := newRun(answering(t, 200, "{}")).check(t.Context(), s); err == nil || err.Error() != test.want {
			t.Errorf("@%s: error %v, want %s", test.directive, err, test.want)
		}
	}
}

func TestMacros(t *testing.T) {
	names := map[string]string{"T": "table", "arn": "arn:1"}
	long := strings.Repeat("x", 70)
	for _, test := range []struct{ text, want string }{
		{`{"TableName":"$T-2"}`, `{"TableName":"table-2"}`},
		{`$arn $unknown $5`, `arn:1 $unknown $5`},
		{`$([*3)1$(]*3)`, `[[[1]]]`},
		{"[\n$each 2 4 {\"n\":$i}\n]", "[\n{\"n\":2},\n{\"n\":3},\n{\"n\":4}\n]"},
		{`$(x*70)`, long},
	} {
		if got := expand(test.text, names); got != test.want {
			t.Errorf("expand %s\ngot  %s\nwant %s", test.text, got, test.want)
		}
	}
	if got, want := fold(`"table-2" "`+long+`"`, names), `"$T-2" "$(x*70)"`; got != want {
		t.Errorf("fold: got %s, want %s", got, want)
	}
}
