package value_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// item has 30 attributes: texts, numbers, and a few of everything else.
func item() []byte {
	text := []byte(
		`{"list":{"L":[{"S":"a"},{"N":"1"}]},"map":{"M":{"a":{"BOOL":true}}},"set":{"SS":["a","b","c"]},
			"bytes":{"B":"AP9h"}`)
	for i := range 13 {
		text = fmt.Appendf(text, `,"text%d":{"S":"some text, number %d"},"number%d":{"N":"%d"}`, i, i, i, i*1234567)
	}
	return append(text, '}')
}

func BenchmarkUnmarshal(b *testing.B) {
	text := item()
	b.ReportAllocs()
	for b.Loop() {
		var w map[string]*value.Wire
		if err := json.Unmarshal(text, &w); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeAppend(b *testing.B) {
	w := unmarshal[map[string]*value.Wire](b, string(item()))
	b.ReportAllocs()
	var buffer []byte
	for b.Loop() {
		m, err := value.DecodeMap(w)
		if err != nil || len(m) != 30 {
			b.Fatal(len(m), err)
		}
		buffer = value.AppendMap(buffer[:0], m)
	}
}

func BenchmarkArithmetic(b *testing.B) {
	for _, c := range []struct{ name, a, b string }{
		{"small", "123456789", "-987"}, {"decimals", "1234.5678", "0.0001"},
		{"38 digits", "12345678901234567890123456789012345678", "1"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x, errX := value.ParseNumber(c.a)
				y, errY := value.ParseNumber(c.b)
				sum, errSum := x.Add(y)
				if errX != nil || errY != nil || errSum != nil || sum.Cmp(x) == 0 {
					b.Fatal(errX, errY, errSum, sum)
				}
			}
		})
	}
}
