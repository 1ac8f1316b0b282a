package differential_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// operation is one step of a history.
type operation struct {
	input any // *dynamodb.PutItemInput, ...
	// pages makes a Query or Scan read on until no LastEvaluatedKey comes; with segments a Scan does so in each
	// of them.
	pages    bool
	segments int32
}

// history is what both engines are put through, in this order.
type history []operation

// maxPages bounds how far an operation reads on, should an engine never come to an end.
const maxPages = 60

// kind is the operation's name in the API.
func (o operation) kind() string {
	return strings.TrimSuffix(reflect.TypeOf(o.input).Elem().Name(), "Input")
}

// writes tells whether the operation may change a table.
func (o operation) writes() bool {
	switch o.input.(type) {
	case *dynamodb.PutItemInput, *dynamodb.UpdateItemInput, *dynamodb.DeleteItemInput,
		*dynamodb.BatchWriteItemInput,
		*dynamodb.TransactWriteItemsInput:
		return true
	}
	return false
}

// GoString is what rapid prints of a history that failed.
func (h history) GoString() string {
	var b strings.Builder
	for _, o := range h {
		fmt.Fprintf(&b, "\n    %v", o)
	}
	return b.String()
}

// String is the operation as it goes over the wire, with long runs of a character cut down.
func (o operation) String() string {
	note := ""
	if o.pages {
		note = " and the pages after it"
	}
	if o.segments > 0 {
		note += fmt.Sprintf(" in each of %d segments", o.segments)
	}
	return fmt.Sprintf("%s %s%s", o.kind(), shorten(string(marshal(o))), note)
}

// errPrinted is how the transport of marshal ends every request.
var errPrinted = errors.New("only to be printed")

// marshal returns the JSON that the SDK makes of the operation.
func marshal(o operation) []byte {
	to := &printer{}
	s := &side{client: dynamodb.New(dynamodb.Options{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("sluice", "sluice", ""),
		HTTPClient: to, Retryer: aws.NopRetryer{}, IdempotencyTokenProvider: unnamed{},
		APIOptions: []func(*middleware.Stack) error{rewrite(nil)},
	})}
	if _, err := s.send(context.Background(), o.input); !errors.Is(err, errPrinted) {
		return fmt.Appendf(nil, "%v", err)
	}
	return to.body
}

// unnamed stands for the request tokens that the SDK makes up.
type unnamed struct{}

func (unnamed) GetIdempotencyToken() (string, error) { return "its own", nil }

type printer struct{ body []byte }

func (p *printer) Do(req *http.Request) (*http.Response, error) {
	var err error
	if p.body, err = io.ReadAll(req.Body); err != nil {
		return nil, err
	}
	return nil, errPrinted
}

// shorten replaces runs of more than 40 of the same character by one and how many there were.
func shorten(text string) string {
	var b strings.Builder
	runes := []rune(text)
	for i := 0; i < len(runes); {
		n := 1
		for i+n < len(runes) && runes[i+n] == runes[i] {
			n++
		}
		if n > 40 {
			fmt.Fprintf(&b, "%c(%d times)", runes[i], n)
		} else {
			b.WriteString(string(runes[i : i+n]))
		}
		i += n
	}
	return b.String()
}

// run runs the operation and returns its replies: one, or one per page.
func (s *side) run(ctx context.Context, o operation) ([]reply, error) {
	scan, _ := o.input.(*dynamodb.ScanInput)
	if o.segments == 0 || scan == nil {
		return s.read(ctx, o)
	}
	var replies []reply
	for segment := range o.segments {
		part := *scan
		part.Segment, part.TotalSegments = &segment, &o.segments
		more, err := s.read(ctx, operation{input: &part, pages: o.pages})
		if err != nil {
			return nil, err
		}
		replies = append(replies, more...)
	}
	return replies, nil
}

// read runs the operation, and reads on if it is to.
func (s *side) read(ctx context.Context, o operation) ([]reply, error) {
	var replies []reply
	input := o.input
	for {
		next, err := s.send(ctx, input)
		r, err := s.reply(err)
		if err != nil {
			return nil, err
		}
		replies = append(replies, r)
		if !o.pages || next == nil || len(replies) == maxPages {
			return replies, nil
		}
		switch in := input.(type) {
		case *dynamodb.QueryInput:
			after := *in
			after.ExclusiveStartKey, input = next, &after
		case *dynamodb.ScanInput:
			after := *in
			after.ExclusiveStartKey, input = next, &after
		default:
			return nil, fmt.Errorf("a %T has no pages", input)
		}
	}
}

// send sends one request and returns its LastEvaluatedKey, if any. All that came back is with s.wire.
func (s *side) send(ctx context.Context, input any) (last item, err error) {
	switch in := input.(type) {
	case *dynamodb.PutItemInput:
		_, err = s.client.PutItem(ctx, in)
	case *dynamodb.GetItemInput:
		_, err = s.client.GetItem(ctx, in)
	case *dynamodb.UpdateItemInput:
		_, err = s.client.UpdateItem(ctx, in)
	case *dynamodb.DeleteItemInput:
		_, err = s.client.DeleteItem(ctx, in)
	case *dynamodb.BatchGetItemInput:
		_, err = s.client.BatchGetItem(ctx, in)
	case *dynamodb.BatchWriteItemInput:
		_, err = s.client.BatchWriteItem(ctx, in)
	case *dynamodb.TransactWriteItemsInput:
		mine := *in
		if in.ClientRequestToken != nil {
			mine.ClientRequestToken = aws.String(s.token(*in.ClientRequestToken))
		}
		_, err = s.client.TransactWriteItems(ctx, &mine)
	case *dynamodb.QueryInput:
		out, failed := s.client.Query(ctx, in)
		if err = failed; err == nil {
			last = out.LastEvaluatedKey
		}
	case *dynamodb.ScanInput:
		out, failed := s.client.Scan(ctx, in)
		if err = failed; err == nil {
			last = out.LastEvaluatedKey
		}
	default:
		err = fmt.Errorf("no operation takes a %T", input)
	}
	return last, err
}

// item is an item, or a key, or the values of an expression.
type item = map[string]types.AttributeValue
