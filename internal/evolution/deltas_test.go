package evolution_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	v1 "github.com/sluice-go/sluice/internal/evolution/v1/limits"
	v2 "github.com/sluice-go/sluice/internal/evolution/v2/limits"
	v3 "github.com/sluice-go/sluice/internal/evolution/v3/limits"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// side is one side of a stream record.
type side codec.Item

// Number implements runtime.Image.
func (s side) Number(attr string) (string, bool) {
	n, ok := s[attr].(*types.AttributeValueMemberN)
	if !ok {
		return "", false
	}
	return n.Value, true
}

// Text implements runtime.Image.
func (s side) Text(attr string) (string, bool) {
	v, ok := s[attr].(*types.AttributeValueMemberS)
	if !ok {
		return "", false
	}
	return v.Value, true
}

// TestDeltas: whichever version reads the stream, a write that adds a limit has consumed its cost of it, and one that removes a
// limit nothing: neither all that was ever consumed, nor that given back.
func TestDeltas(t *testing.T) {
	w := newWorld(t)
	var before runtime.Image
	for _, step := range []struct {
		writer               int
		first, second, third []string // what each version's parser says of the user's bucket
	}{
		{1, []string{"rpm 2", "tpm 30"}, []string{"rpm 2", "tpm 30"}, []string{"tpm 30"}},
		{2, []string{"rpm 2", "tpm 30"}, []string{"rpm 2", "tpd 4", "tpm 30"}, []string{"tpd 4", "tpm 30"}},
		{3, []string{"tpm 30"}, []string{"tpd 4", "tpm 30"}, []string{"tpd 4", "tpm 30"}},
		{1, []string{"tpm 30"}, []string{"tpm 30"}, []string{"tpm 30"}},
		{4, []string{"rpm 2", "tpm 30"}, []string{"rpm 2", "tpd 4", "tpm 30"}, []string{"tpd 4", "tpm 30"}},
	} {
		take(t, w.deploy(t, step.writer), cost{rpm: 2, tpm: 30, tpd: 4})
		after := side(w.item(t, "user-a"))
		for _, parser := range []struct {
			name    string
			extract func(runtime.Record) ([]runtime.Delta, error)
			want    []string
		}{{"first", v1.ExtractDeltas, step.first}, {"second", v2.ExtractDeltas, step.second}, {"third", v3.ExtractDeltas, step.third}} {
			deltas, err := parser.extract(runtime.Record{Old: before, New: after})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range deltas {
				got = append(got, fmt.Sprint(d.Limit, " ", d.Millitokens/bucket.Milli))
			}
			if slices.Sort(got); !slices.Equal(got, parser.want) {
				t.Errorf("of a write of version %d the %s parser says %v, want %v", step.writer, parser.name, got, parser.want)
			}
		}
		before = after
	}
}
