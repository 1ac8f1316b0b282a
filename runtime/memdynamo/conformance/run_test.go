package conformance_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// server is an engine under test.
type server struct {
	url   string
	local bool // it is DynamoDB Local, which differs from AWS where a script says so
}

// run is one run of one script on one engine.
type run struct {
	server
	names map[string]string // what $T and saved names stand for
}

// answer is the reply of an engine to a step, ready to be compared.
type answer struct {
	status int
	tree   any // canonical
}

func newRun(s server) *run {
	return &run{server: s, names: map[string]string{"T": "conformance-" + rand.Text()[:12]}}
}

// check runs a step and returns how its reply differs from the recorded one: "" if it does not. An error is
// that of a step that got no reply, or none that the protocol allows.
func (r *run) check(ctx context.Context, s *step) (string, error) {
	got, err := r.do(ctx, s)
	if err != nil {
		return "", err
	}
	want := s.on(r.local)
	if want == nil {
		return "", errors.New("no reply is recorded: run with -update")
	}
	if want.status != got.status {
		return fmt.Sprintf("status %d, want %d\ngot  %s\nwant %s", got.status, want.status, r.text(got), want.body),
			nil
	}
	if want.body == anyBody {
		return "", nil
	}
	wanted, err := parseJSON([]byte(want.body))
	if err != nil {
		return "", fmt.Errorf("the recorded reply is no JSON: %w", err)
	}
	folded, err := parseJSON([]byte(r.text(got))) // as the record is
	if err != nil {
		return "", err
	}
	wanted, folded = canonical(s.operation, wanted), canonical(s.operation, folded)
	if cmp.Equal(wanted, folded) {
		return "", nil
	}
	return fmt.Sprintf("got  %s\nwant %s\n-want +got\n%s", oneLine(folded), oneLine(wanted),
		cmp.Diff(wanted, folded)), nil
}

// record runs a step and notes the reply as DynamoDB Local's.
func (r *run) record(ctx context.Context, s *step) error {
	got, err := r.do(ctx, s)
	if err != nil {
		return err
	}
	old := s.on(true)
	note := &reply{status: got.status, body: r.text(got)}
	if old != nil && old.body == anyBody && old.status == got.status {
		note.body = anyBody
	}
	if s.want != nil && s.want.reason != "" {
		s.local = note
	} else {
		s.want = note
	}
	return nil
}

func (r *run) text(a answer) string { return fold(pretty(a.tree, ""), r.names) }

// orders are a step's directives.
type orders struct {
	header   http.Header
	saves    map[string]string // name -> path
	paged    bool
	segments int // 0: the scan is not split

	untilPath, untilText string // repeat until the reply says so; empty: do not
}

func ordersOf(s *step) (*orders, error) {
	o := &orders{header: http.Header{}, saves: map[string]string{}}
	o.header.Set("X-Amz-Target", target(s.operation))
	o.header.Set("Content-Type", "application/x-amz-json-1.0")
	o.header.Set("Authorization",
		"AWS4-HMAC-SHA256 Credential=conformance/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, "+
			"Signature=0")
	for _, directive := range s.directives {
		word, rest, _ := strings.Cut(directive, " ")
		switch word {
		case "header":
			name, value, _ := strings.Cut(rest, ":")
			if o.header.Del(name); value != "" {
				o.header.Set(name, strings.TrimSpace(value))
			}
		case "save":
			name, path, _ := strings.Cut(rest, " ")
			o.saves[name] = path
		case "pages":
			o.paged = true
		case "until":
			o.untilPath, o.untilText, _ = strings.Cut(rest, " ")
		case "segments":
			var err error
			if o.segments, err = strconv.Atoi(rest); err != nil || o.segments < 1 {
				return nil, fmt.Errorf("@segments %s: want a number from 1 on", rest)
			}
		default:
			return nil, fmt.Errorf("there is no directive @%s", word)
		}
	}
	return o, nil
}

// do sends a step's request and obeys its directives.
func (r *run) do(ctx context.Context, s *step) (answer, error) {
	o, err := ordersOf(s)
	if err != nil {
		return answer{}, err
	}
	body := expand(s.request, r.names)
	var got answer
	if o.paged || o.segments > 0 {
		got, err = r.readAll(ctx, o, body)
	} else {
		got, err = r.await(ctx, o, body)
	}
	if err != nil {
		return answer{}, err
	}
	for name, path := range o.saves {
		if r.names[name], err = follow(got.tree, path); err != nil {
			return answer{}, err
		}
	}
	got.tree = canonical(s.operation, got.tree)
	return got, nil
}

// await sends one request, and again until its reply has the text that is waited for, if any is.
func (r *run) await(ctx context.Context, o *orders, body string) (answer, error) {
	for {
		got, err := r.send(ctx, o.header, body)
		if err != nil || o.untilPath == "" {
			return got, err
		}
		// Until then it may not be there at all: DynamoDB Local answers with failures, too, while it makes an
		// index.
		if text, err := follow(got.tree, o.untilPath); err == nil && text == o.untilText {
			return got, nil
		}
	}
}

// send sends one request and checks what every reply must have.
func (r *run) send(ctx context.Context, header http.Header, body string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/", strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header = header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	if response.Header.Get("X-Amzn-Requestid") == "" {
		return answer{}, fmt.Errorf("the reply has no x-amzn-RequestId: %s", text)
	}
	sum := response.Header.Get("X-Amz-Crc32")
	if want := strconv.FormatUint(uint64(crc32.ChecksumIEEE(text)), 10); sum != want && (sum != "" || !r.local) {
		return answer{}, fmt.Errorf("x-amz-crc32 is %q, want %s, of the reply %s", sum, want, text)
	}
	tree, err := parseJSON(text)
	if err != nil {
		tree = string(text) // as a reply has it that is not the protocol's
	}
	return answer{response.StatusCode, tree}, nil
}

// target is the header that names an operation.
func target(operation string) string {
	if slices.Contains([]string{"ListStreams", "DescribeStream", "GetShardIterator", "GetRecords"}, operation) {
		return "DynamoDBStreams_20120810." + operation
	}
	return "DynamoDB_20120810." + operation
}

// follow returns the text at a path such as Streams.0.StreamArn.
func follow(tree any, path string) (string, error) {
	at := tree
	for name := range strings.SplitSeq(path, ".") {
		switch node := at.(type) {
		case map[string]any:
			at = node[name]
		case []any:
			if i, err := strconv.Atoi(name); err == nil && i < len(node) {
				at = node[i]
			}
		}
	}
	if text, ok := at.(string); ok {
		return text, nil
	}
	return "", fmt.Errorf("no text at %s in %s", path, oneLine(tree))
}
