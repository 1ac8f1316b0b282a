package runtime_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime"
)

// side is one side of a stream record: numbers by attribute.
type side map[string]string

func (s side) Number(attr string) (string, bool) { n, ok := s[attr]; return n, ok }
func (side) Text(string) (string, bool)          { return "", false }

func TestAppendDelta(t *testing.T) {
	at := time.Unix(1, 0)
	tc := func(n string) side { return side{"b_rpm_tc": n} }
	for _, test := range []struct {
		name     string
		old, new runtime.Image
		want     int64 // 0: no delta
		err      string
	}{
		{"insert", nil, tc("7000"), 7000, ""},
		{"insert, carried over", nil, side{"b_rpm_tc": "7000", "m_rpm": "7000"}, 0, ""},
		{"insert, carried over and charged", nil, side{"b_rpm_tc": "7000", "m_rpm": "6500"}, 500, ""},
		{"modify, carried over once", side{"b_rpm_tc": "7000", "m_rpm": "6500"}, side{"b_rpm_tc": "7100", "m_rpm": "6500"}, 100, ""},
		{"another limit's history", nil, side{"b_rpm_tc": "7000", "m_tpm": "6500"}, 7000, ""},
		{"malformed history", nil, side{"b_rpm_tc": "7000", "m_rpm": "x"}, 0,
			`sluice: stream record: attribute m_rpm: "x", want an integer of 64 bits`},
		{"modify", tc("7000"), tc("9000"), 2000, ""},
		{"given back", tc("9000"), tc("8500"), -500, ""},
		{"nothing consumed", tc("9000"), tc("9000"), 0, ""},
		{"remove", tc("9000"), nil, 0, ""},
		{"a new limit", side{}, tc("1000"), 1000, ""},
		{"a removed limit", tc("1000"), side{}, 0, ""},
		{"the difference saturates", tc("-9223372036854775808"), tc("5"), math.MaxInt64, ""},
		{"malformed", nil, tc("1.5"), 0, `sluice: stream record: attribute b_rpm_tc: "1.5", want an integer of 64 bits`},
		{"malformed before", tc(""), tc("1"), 0, `sluice: stream record: attribute b_rpm_tc: "", want an integer of 64 bits`},
		{"too large", nil, tc("9223372036854775808"), 0,
			`sluice: stream record: attribute b_rpm_tc: "9223372036854775808", want an integer of 64 bits`},
	} {
		t.Run(test.name, func(t *testing.T) {
			first := runtime.Delta{Limit: "first"}
			got, err := runtime.AppendDelta([]runtime.Delta{first}, runtime.Record{Old: test.old, New: test.new, At: at},
				"user-1", "gpt-4", "rpm", "b_rpm_tc")
			check(t, err, test.err)
			want := []runtime.Delta{first}
			if test.want != 0 {
				want = append(want, runtime.Delta{Entity: "user-1", Resource: "gpt-4", Limit: "rpm", Millitokens: test.want, At: at})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("deltas (-want +got):\n%s", diff)
			}
		})
	}
}
