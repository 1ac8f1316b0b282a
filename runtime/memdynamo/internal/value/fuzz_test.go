package value_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

func FuzzParseNumber(f *testing.F) {
	for _, seed := range []string{
		"0", "-1", "1.50", "+.5e+3", "1e125", "1e-130", "1e999999999", "0e-999999999", "-", "1e", "NaN",
		"9223372036854775808",
		strings.Repeat("9", 38), strings.Repeat("1", 39), "1" + zeros(200) + "e-200", "１", "1_0",
	} {
		f.Add(seed)
	}
	grammar := regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?0*[0-9]{1,9})?$`)
	f.Fuzz(func(t *testing.T, text string) {
		n, err := value.ParseNumber(text)
		if err != nil {
			if grammar.MatchString(text) && strings.HasPrefix(message(t, err), notNumeric) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if exact := rational(t, text); rational(t, n.String()).Cmp(exact) != 0 {
			t.Errorf("%q is %s", text, n)
		}
		if again := parse(t, n.String()); again.Cmp(n) != 0 || again.String() != n.String() {
			t.Errorf("%q: %s is parsed to %s", text, n, again)
		}
		if size := value.Size(n); size < 1 || size > 21 {
			t.Errorf("%q: %d bytes", text, size)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"S":"é\u0000"}`, `{"N":"1e3"}`, `{"B":"AP9h"}`, `{"BOOL":true}`, `{"NULL":true}`, `{"SS":["b","a"]}`,
		`{"NS":["1","2.50"]}`,
		`{"BS":["/w==","YQ=="]}`, `{"L":[{"S":"a"},{"L":[]}]}`, `{"M":{"a":{"M":{"b":{"N":"-0"}}}}}`,
		`{"S":"a","N":"x"}`, `null`, `{}`,
		nested(32, "L"), nested(33, "M"), `{"SS":[null,""]}`, `{"L":[null]}`, `{"B":"YR=="}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var w *value.Wire
		if json.Unmarshal(text, &w) != nil {
			return
		}
		v, err := value.Decode(w)
		if err != nil {
			if v != nil || err.Error() == "" {
				t.Errorf("%s: %v, %v", text, v, err)
			}
			return
		}
		encoded := value.Append(nil, v)
		again := decode(t, string(encoded))
		if !value.Equal(v, again) || !bytes.Equal(value.Append(nil, again), encoded) {
			t.Errorf("%s: %s", text, encoded)
		}
		if value.Depth(v) > value.MaxDepth || value.Size(v) != value.Size(again) || value.Size(v) < 0 {
			t.Errorf("%s: depth %d, size %d and %d", text, value.Depth(v), value.Size(v), value.Size(again))
		}
	})
}
