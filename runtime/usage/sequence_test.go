package usage

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// TestPadded: sequence numbers are compared as text of one length, so anything else is no sequence number.
func TestPadded(t *testing.T) {
	zeros := strings.Repeat("0", sequenceDigits)
	for sequence, want := range map[string]string{
		"7": zeros[1:] + "7", "10": zeros[2:] + "10", zeros: zeros, zeros[1:] + "9": zeros[1:] + "9",
		"": "", zeros + "1": "", "12a": "", "-7": "", " 7": "", "7 ": "", "1e5": "", "٣": "",
	} {
		got, err := padded(sequence)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", sequence, got, err, want)
		}
	}
}

// TestSumsSaturate: sums stop at the bounds of int64, where others would turn what was consumed into a
// give-back.
func TestSumsSaturate(t *testing.T) {
	of := func(n int64) entry {
		return entry{deltas: []codec.Delta{{Limit: "tpm", Millitokens: n}, {Limit: "rpm", Millitokens: 1}}}
	}
	for _, test := range []struct{ a, b, want int64 }{
		{1, 2, 3}, {math.MaxInt64, 1, math.MaxInt64}, {math.MinInt64, -1, math.MinInt64},
	} {
		s := &addition{entries: []entry{of(test.a), of(test.b)}}
		limits, writes := s.sum()
		if len(limits) != 2 || limits[0] != (codec.Delta{Limit: "rpm", Millitokens: 2}) ||
			limits[1] != (codec.Delta{Limit: "tpm", Millitokens: test.want}) || writes != 2 {
			t.Errorf("%d and %d: %+v of %d writes, want %d", test.a, test.b, limits, writes, test.want)
		}
	}
}

// refusing is a table whose windows have this watermark. It refuses two writes.
type refusing struct {
	watermark types.AttributeValue
	writes    int
}

// UpdateItem implements API.
func (r *refusing) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (
	*dynamodb.UpdateItemOutput, error) {
	if r.writes++; r.writes > 2 {
		return nil, errors.New("a write that was refused before")
	}
	return nil, &types.ConditionalCheckFailedException{Item: map[string]types.AttributeValue{"w_1": r.watermark}}
}

// TestForeignWatermark: a window is added to only by its watermark. Without one that can be compared, or if
// it refuses what is above it, the batch fails, and is not tried for ever.
func TestForeignWatermark(t *testing.T) {
	zeros := strings.Repeat("0", sequenceDigits)
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	const none = " has no watermark w_1: delete the item, or fix it"
	for name, test := range map[string]struct {
		watermark types.AttributeValue
		want      string
	}{
		"none":               {nil, none},
		"a number":           {&types.AttributeValueMemberN{Value: zeros}, none},
		"too short":          {text("9"), none},
		"too long":           {text(zeros + "9"), none},
		"below what it adds": {text(zeros[1:] + "4"), " refuses what is above its watermark " + zeros[1:] + "4"},
		"at what it adds":    {text(zeros[1:] + "5"), ""},
	} {
		l := &ledger{table: "table"}
		a := l.aggregator(t, &refusing{watermark: test.watermark})
		a.config.Writers = 1
		err := a.Add(t.Context(), "shardId-1", []codec.Record{made(5, noon, "user-1", "rpm=1000")})
		if test.want == "" && err != nil || test.want != "" &&
			(err == nil || !strings.HasSuffix(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
