package value_test

import (
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// The sizes are DynamoDB Local's: what is left of 400 KB for a string beside the value.
func TestSize(t *testing.T) {
	for text, want := range map[string]int{
		`{"S":""}`: 0, `{"S":"é"}`: 2, `{"S":"😀"}`: 4, `{"B":"YWE="}`: 2, `{"BOOL":true}`: 1,
		`{"BOOL":false}`: 1,
		`{"NULL":true}`:  1,
		`{"SS":["a"]}`:   1, `{"SS":["a","bc"]}`: 3, `{"NS":["1","22","-333"]}`: 8, `{"BS":["YQ==","YWE="]}`: 3,
		`{"L":[]}`: 3, `{"L":[{"S":"a"}]}`: 5, `{"L":[{"S":"a"},{"N":"12"}]}`: 8, `{"L":[{"L":[]}]}`: 7,
		`{"M":{}}`: 3, `{"M":{"k":{"S":"a"}}}`: 6, `{"M":{"k":{"S":"a"},"kk":{"NULL":true}}}`: 10,
		`{"M":{"k":{"M":{"q":{"BOOL":true}}}}}`: 11,
	} {
		if got := value.Size(decode(t, text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
	for size, texts := range map[int]string{
		1: "0",
		2: "1 9 10 12 99 100 1000 0.1 0.01 0.12 0.001 0.0012 1e125 1e124 1e-130 1e-129 1.5e-129 1200 1e10 1e11",
		3: "101 123 1234 0.123 1.1 1.01 12.3 12.34 120 -1 -10 -12 -0.1 -1e-130",
		4: "12345 123456 1.234 -123 -1234",
		20: strings.Repeat("9", 38) + " " + strings.Repeat("9", 37) + " 0." + strings.Repeat("9", 38) + " 1" +
			zeros(36) + "1",
		21: "-" + strings.Repeat("9", 38) + " " + strings.Repeat("9", 38) + "0 0.0" + strings.Repeat("9", 38) +
			" -" + strings.Repeat("9", 37) +
			" " + strings.Repeat("9", 37) + ".9 -" + strings.Repeat("9", 37) + ".9 -" + strings.Repeat("9", 38) + "0",
	} {
		for text := range strings.FieldsSeq(texts) {
			if got := value.Size(parse(t, text)); got != size {
				t.Errorf("%s: %d, want %d", text, got, size)
			}
		}
	}
}

func TestItemSize(t *testing.T) {
	for text, want := range map[string]int{
		`{"M":{}}`: 0, `{"M":{"a":{"S":"k"}}}`: 2, `{"M":{"é":{"N":"1"},"bb":{"L":[]}}}`: 9,
	} {
		if got := value.ItemSize(decode(t, text).(value.Map)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
