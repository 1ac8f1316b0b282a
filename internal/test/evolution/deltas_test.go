package evolution_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	v1 "github.com/sluice-go/sluice/internal/test/evolution/v1/limits"
	v2 "github.com/sluice-go/sluice/internal/test/evolution/v2/limits"
	v3 "github.com/sluice-go/sluice/internal/test/evolution/v3/limits"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// side is one side of a stream record.
type side codec.Item

// Attr implements runtime.Image.
func (s side) Attr(name string) (kind, text string) {
	switch v := s[name].(type) {
	case *types.AttributeValueMemberN:
		return "N", v.Value
	case *types.AttributeValueMemberS:
		return "S", v.Value
	}
	return "", ""
}

// Len implements runtime.Image.
func (s side) Len() int { return len(s) }

// Each implements runtime.Image.
func (s side) Each(visit func(string) bool) {
	for name := range s {
		if !visit(name) {
			return
		}
	}
}

// TestDeltas: every version reads the stream alike. A write that adds a limit has consumed its cost of it. A
// write that removes a limit has consumed nothing of it: neither all that was ever consumed, nor that given
// back. Limits unknown to a reader's schema are reported too.
func TestDeltas(t *testing.T) {
	w := newWorld(t)
	var before codec.Image
	for _, step := range []struct {
		writer int
		want   []string // what each version's parser says of the user's bucket
	}{
		{1, []string{"rpm 2", "tpm 30"}},
		{2, []string{"rpm 2", "tpd 4", "tpm 30"}},
		{3, []string{"tpd 4", "tpm 30"}},
		{1, []string{"tpm 30"}},
		{4, []string{"rpm 2", "tpd 4", "tpm 30"}},
	} {
		take(t, w.deploy(t, step.writer), cost{rpm: 2, tpm: 30, tpd: 4})
		after := side(w.item(t, "user-a"))
		for name, extract := range map[string]func(codec.Record) ([]codec.Delta, error){
			"first": v1.ExtractDeltas, "second": v2.ExtractDeltas, "third": v3.ExtractDeltas,
		} {
			deltas, err := extract(codec.Record{Old: before, New: after})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range deltas {
				got = append(got, fmt.Sprint(d.Limit, " ", d.Millitokens/bucket.Milli))
			}
			if slices.Sort(got); !slices.Equal(got, step.want) {
				t.Errorf("of a write of version %d the %s parser says %v, want %v", step.writer, name, got, step.want)
			}
		}
		before = after
	}
}
