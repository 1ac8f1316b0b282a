package sdklog_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"

	"github.com/sluice-go/sluice/runtime/internal/sdklog"
)

const refused = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"}`

// service refuses each request, with a header.
type service struct{ name, value string }

// Do implements dynamodb.HTTPClient.
func (s service) Do(r *http.Request) (*http.Response, error) {
	header := http.Header{}
	if s.name != "" {
		header.Set(s.name, s.value)
	}
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: header, Request: r,
		Body: io.NopCloser(strings.NewReader(refused)),
	}, nil
}

// recorder keeps what is logged, and the request that a context is of.
type recorder struct {
	lines *[]string
	of    string
}

// Logf implements logging.Logger.
func (r recorder) Logf(class logging.Classification, format string, args ...any) {
	*r.lines = append(*r.lines, string(class)+" "+r.of+fmt.Sprintf(format, args...))
}

type ofKey struct{}

// WithContext implements logging.ContextLogger.
func (r recorder) WithContext(ctx context.Context) logging.Logger {
	of, _ := ctx.Value(ofKey{}).(string)
	return recorder{r.lines, of}
}

// TestQuiet: the warning of a checksum that is not there goes, all others stay. Without the option it is
// there: once an SDK does without it, this package can go.
func TestQuiet(t *testing.T) {
	right := fmt.Sprint(crc32.ChecksumIEEE([]byte(refused)))
	const failed = "WARN call: failed to close HTTP response body, this may affect connection reuse: " +
		"response did not match expected checksum, "
	for name, test := range map[string]struct {
		service service
		option  func(*dynamodb.Options)
		want    string
	}{
		"no checksum, without the option": {service{}, func(*dynamodb.Options) {}, failed + "0, " + right},
		"no checksum":                     {service{}, sdklog.Quiet, ""},
		"the right checksum":              {service{"X-Amz-Crc32", right}, sdklog.Quiet, ""},
		"a wrong checksum":                {service{"X-Amz-Crc32", "7"}, sdklog.Quiet, failed + "7, " + right},
		"another warning": {service{"Date", "today"}, sdklog.Quiet,
			"WARN call: failed to parse response Date header value, got "},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			client := dynamodb.New(dynamodb.Options{
				Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("sluice", "sluice", ""),
				HTTPClient: test.service, Logger: recorder{lines: &lines}, Retryer: aws.NopRetryer{},
			})
			key := map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "a"}}
			_, err := client.PutItem(context.WithValue(t.Context(), ofKey{}, "call: "),
				&dynamodb.PutItemInput{TableName: aws.String("table"), Item: key}, test.option)
			if err == nil || !strings.HasSuffix(err.Error(), "ConditionalCheckFailedException: ") {
				t.Error(err)
			}
			got := strings.Join(lines, "\n")
			if test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
				t.Errorf("logged %q, want %q", got, test.want)
			}
		})
	}
}

// TestNothingToQuiet: a client that logs nothing keeps its logger, and one that is quiet is quiet once.
func TestNothingToQuiet(t *testing.T) {
	for _, logger := range []logging.Logger{nil, logging.Nop{}} {
		o := dynamodb.Options{Logger: logger}
		if sdklog.Quiet(&o); o.Logger != logger {
			t.Errorf("%T became %T", logger, o.Logger)
		}
	}
	var lines []string
	o := dynamodb.Options{Logger: recorder{lines: &lines}}
	sdklog.Quiet(&o)
	once := o.Logger
	if sdklog.Quiet(&o); o.Logger != once {
		t.Errorf("%#v twice", o.Logger)
	}
}
