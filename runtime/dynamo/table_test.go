package dynamo

import (
	"github.com/sluice-go/sluice/runtime/bucket"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestTableName: what DynamoDB takes for a table, which New refuses the rest of.
func TestTableName(t *testing.T) {
	const arn = "arn:aws-us-gov:dynamodb:us-gov-west-1:123456789012:table/"
	longest := strings.Repeat("x", 255)
	for table, want := range map[string]string{
		"rate_limits": "rate_limits", "a-1": "a-1", "..B": "..B", longest: longest,
		arn + "rate_limits": "rate_limits",
		"":                  "", "ab": "", longest + "x": "", "rate limits": "", "tisch\n": "", "größe": "",
		arn: "", arn + "ab": "", arn + "rate_limits/index/GSI1": "", "arn:aws:s3:::rate_limits": "",
	} {
		name, ok := operator.TableName(table)
		if name != want || ok != (want != "") {
			t.Errorf("%q is %q, %v, want %q", table, name, ok, want)
		}
		_, err := New(&dynamodb.Client{}, table).Open(&store.Env{Clock: store.SystemClock()})
		if (err == nil) != ok {
			t.Errorf("New with %q: %v", table, err)
		}
	}
	_, err := New(&dynamodb.Client{}, "t").Open(&store.Env{Clock: store.SystemClock()})
	wantErr(t, err, "setup: dynamo.New: table \"t\" is not a table's name: "+
		"pass 3 to 255 letters, digits, '_', '.' and '-', or an ARN | correct the call")
	_, err = New(nil, "").Open(&store.Env{Clock: store.SystemClock()})
	wantErr(t, err, "setup: dynamo.New: the client is nil | correct the call")
}

// TestSplitVersion takes apart what docs/design.md, "Overrides and cv", adds up.
func TestSplitVersion(t *testing.T) {
	for _, want := range [][2]int64{{0, 0}, {1, 0}, {90_000, 2 * override.MaxVersion}, {3, 1_772_366_400_000}} {
		revision, overrides := operator.SplitVersion(want[0]*bucket.RevisionUnit + want[1])
		if got := [2]int64{revision, overrides}; got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
