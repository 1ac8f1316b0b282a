package value_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

func TestEqual(t *testing.T) {
	// Texts of a row are equal; those of different rows are not.
	rows := [][]string{
		{`{"S":"1"}`}, {`{"S":""}`}, {`{"N":"1"}`, `{"N":"1.0"}`, `{"N":"0.1e1"}`},
		{`{"N":"1.5"}`, `{"N":"15e-1"}`}, {`{"B":"MQ=="}`},
		// 1 modulo 2 to the 64
		{`{"BOOL":true}`}, {`{"BOOL":false}`}, {`{"NULL":true}`}, {`{"N":"18446744073709551617"}`},
		{`{"SS":["1","2"]}`, `{"SS":["2","1"]}`}, {`{"SS":["1"]}`}, {`{"SS":["1","3"]}`},
		{`{"NS":["1","2.5"]}`, `{"NS":["2.50","1.0"]}`}, {`{"NS":["1","2"]}`}, {`{"NS":["1"]}`},
		{`{"BS":["MQ==","Mg=="]}`, `{"BS":["Mg==","MQ=="]}`},
		{`{"L":[]}`}, {`{"L":[{"S":"1"},{"N":"2"}]}`, `{"L":[{"S":"1"},{"N":"2.0"}]}`},
		{`{"L":[{"N":"2"},{"S":"1"}]}`},
		{`{"M":{}}`}, {`{"M":{"a":{"N":"1"},"b":{"L":[]}}}`, `{"M":{"b":{"L":[]},"a":{"N":"1.0"}}}`},
		{`{"M":{"a":{"N":"1"},"c":{"L":[]}}}`},
		{`{"M":{"a":{"N":"1"}}}`},
	}
	for i, row := range rows {
		for j, other := range rows {
			for _, a := range row {
				for _, b := range other {
					if value.Equal(decode(t, a), decode(t, b)) != (i == j) {
						t.Errorf("Equal(%s, %s) is %t", a, b, i != j)
					}
				}
			}
		}
		for _, a := range row {
			if value.Equal(decode(t, a), nil) || value.Equal(nil, decode(t, a)) {
				t.Errorf("%s equals no value", a)
			}
		}
	}
	if !value.Equal(nil, nil) {
		t.Error("no value differs from no value")
	}
}

func TestCompare(t *testing.T) {
	// Each row is in ascending order.
	rows := [][]string{
		{`{"S":""}`, `{"S":"A"}`, `{"S":"a"}`, `{"S":"aa"}`, `{"S":"b"}`, `{"S":"é"}`, `{"S":"\uffff"}`,
			`{"S":"😀"}`},
		{`{"N":"-1e125"}`, `{"N":"-10"}`, `{"N":"-9"}`, `{"N":"-1e-130"}`, `{"N":"0"}`, `{"N":"1e-130"}`,
			`{"N":"0.5"}`, `{"N":"9"}`, `{"N":"10"}`, `{"N":"10.5"}`, `{"N":"9223372036854775807"}`,
			`{"N":"9223372036854775808"}`, `{"N":"1e125"}`},
		{`{"B":""}`, `{"B":"AA=="}`, `{"B":"fw=="}`, `{"B":"gA=="}`, `{"B":"gAA="}`, `{"B":"/w=="}`},
	}
	for i, row := range rows {
		for j, a := range row {
			for k, b := range row {
				if order, ok := value.Compare(decode(t, a), decode(t, b)); !ok ||
					order != bytes.Compare([]byte{byte(j)}, []byte{byte(k)}) {
					t.Errorf("Compare(%s, %s) = %d, %t", a, b, order, ok)
				}
			}
			for _, b := range rows[(i+1)%len(rows)] {
				if order, ok := value.Compare(decode(t, a), decode(t, b)); ok {
					t.Errorf("Compare(%s, %s) = %d", a, b, order)
				}
			}
		}
	}
	for _, text := range []string{`{"BOOL":true}`, `{"NULL":true}`, `{"SS":["a"]}`, `{"NS":["1"]}`,
		`{"BS":["YQ=="]}`, `{"L":[]}`, `{"M":{}}`} {
		if order, ok := value.Compare(decode(t, text), decode(t, text)); ok {
			t.Errorf("Compare(%s, itself) = %d", text, order)
		}
	}
}

func TestEqualNumbersHaveEqualTexts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := parse(t, texts().Draw(rt, "a")), parse(t, texts().Draw(rt, "b"))
		order, ok := value.Compare(a, b)
		if equal := value.Equal(a, b); !ok || equal != (order == 0) || equal != (a.String() == b.String()) {
			rt.Fatalf("%s and %s: order %d, equal %t", a, b, order, equal)
		}
	})
}
