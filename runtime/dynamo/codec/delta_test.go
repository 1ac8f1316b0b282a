package codec_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// side is one side of a stream record: numbers by attribute, and strings, which start with "S:".
type side map[string]string

func (s side) Attr(name string) (kind, text string) {
	text, ok := s[name]
	if !ok {
		return "", ""
	}
	if text, ok := strings.CutPrefix(text, "S:"); ok {
		return "S", text
	}
	return "N", text
}

func (s side) Len() int { return len(s) }

func (s side) Each(visit func(string) bool) {
	for name := range s {
		if !visit(name) {
			return
		}
	}
}

// bucketWith is a whole bucket of user-1 on gpt-4, with limits that have consumed so much, and with what set
// says; "" is nothing.
func bucketWith(set side, consumed ...string) side {
	whole := side{
		"PK": "S:ENTITY#user-1", "SK": "S:#BUCKET#gpt-4", "GSI2PK": "S:RESOURCE#gpt-4", "GSI2SK": "S:BUCKET#user-1",
		"entity_id": "S:user-1", "resource": "S:gpt-4", "rf": "1", "cv": "1", "op": "S:op", "ttl": "1",
	}
	for _, limit := range consumed {
		name, tc, _ := strings.Cut(limit, "=")
		for _, field := range []string{"tk", "cp", "bx", "ra", "rp"} {
			whole["b_"+name+"_"+field] = "1"
		}
		whole["b_"+name+"_tc"] = tc
	}
	for name, text := range set {
		if whole[name] = text; text == "" {
			delete(whole, name)
		}
	}
	return whole
}

func TestDeltas(t *testing.T) {
	at := time.Unix(1, 0)
	const of = "sluice: stream record of ENTITY#user-1 / #BUCKET#gpt-4: attribute "
	none := codec.Image(nil)
	for _, test := range []struct {
		name     string
		old, new codec.Image
		want     string // limit=millitokens, in order
		err      string
	}{
		{"insert", none, bucketWith(nil, "rpm=7000", "tpm=5"), "rpm=7000 tpm=5", ""},
		{"modify", bucketWith(nil, "rpm=7000", "tpm=5"), bucketWith(nil, "rpm=9000", "tpm=6"),
			"rpm=2000 tpm=1", ""},
		{"one of two", bucketWith(nil, "rpm=7000", "tpm=5"), bucketWith(nil, "rpm=7000", "tpm=6"), "tpm=1", ""},
		{"given back", bucketWith(nil, "rpm=9000"), bucketWith(nil, "rpm=8500"), "rpm=-500", ""},
		{"nothing consumed", bucketWith(nil, "rpm=9000"), bucketWith(nil, "rpm=9000"), "", ""},
		{"remove", bucketWith(nil, "rpm=9000"), none, "", ""},
		{"a new limit", bucketWith(nil, "rpm=1"), bucketWith(nil, "rpm=1", "tpm=1000"), "tpm=1000", ""},
		{"a dropped limit", bucketWith(nil, "rpm=1", "tpm=1000"), bucketWith(nil, "rpm=2"), "rpm=1", ""},
		{"limits that nobody knows", bucketWith(nil, "rpm=1", "z=1", "a=1"), bucketWith(nil, "a=3", "tpm=1", "z=2",
			"rpm=2"), "rpm=1 tpm=1 a=2 z=1", ""},
		{"a limit that nobody knows, alone", none, bucketWith(nil, "z=2"), "z=2", ""},
		{"carried over", none, bucketWith(side{"m_rpm": "7000"}, "rpm=7000"), "", ""},
		{"carried over and charged", none, bucketWith(side{"m_rpm": "6500"}, "rpm=7000", "tpm=1"),
			"rpm=500 tpm=1", ""},
		{"carried over before", bucketWith(side{"m_rpm": "6500"}, "rpm=7000"),
			bucketWith(side{"m_rpm": "6500"}, "rpm=7100", "z=1"), "rpm=100 z=1", ""},
		{"carried over, of a limit that nobody knows", none, bucketWith(side{"m_z": "2"}, "z=5"), "z=3", ""},
		{"the difference saturates", bucketWith(nil, "rpm=-9223372036854775808"), bucketWith(nil, "rpm=5"),
			"rpm=9223372036854775807", ""},
		{"a fraction", none, bucketWith(nil, "rpm=1.5"), "", of + `b_rpm_tc "1.5"`},
		{"a string", none, bucketWith(side{"b_rpm_tc": "S:1"}, "rpm=1"), "",
			of + "b_rpm_tc S"},
		{"malformed before", bucketWith(nil, "rpm="), bucketWith(nil, "rpm=1"), "",
			of + `b_rpm_tc ""`},
		{"malformed history", none, bucketWith(side{"m_rpm": "x"}, "rpm=1"), "",
			of + `m_rpm "x"`},
		{"too large", none, bucketWith(nil, "z=9223372036854775808"), "",
			of + `b_z_tc "9223372036854775808"`},
		{"of no limit", none, bucketWith(nil, "a.b=1"), "", of + "b_a.b_tc limit"},
		{"nobody's", none, bucketWith(side{"entity_id": ""}, "rpm=1"), "",
			of + "entity_id missing"},
		{"an entity", none, side{"PK": "S:ENTITY#user-1", "SK": "S:#META"}, "", ""},
		{"a per-limit item", none, side{"PK": "S:ENTITY#user-1", "SK": "S:#BUCKET#gpt-4#rpm", "b_rpm_tc": "1"},
			"", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			rec := codec.Record{Old: test.old, New: test.new, At: at}
			if rec.Bucket() == "" {
				if test.want != "" || test.err != "" {
					t.Error("it is taken for no bucket")
				}
				return
			}
			got, err := rec.Deltas(
				codec.Counter{Limit: "rpm", Consumed: "b_rpm_tc", Carried: "m_rpm"},
				codec.Counter{Limit: "tpm", Consumed: "b_tpm_tc", Carried: "m_tpm"},
			)
			if got := errtext.Of(err); got != test.err {
				t.Errorf("error %q, want %q", got, test.err)
			}
			var want []codec.Delta
			for pair := range strings.FieldsSeq(test.want) {
				limit, n, _ := strings.Cut(pair, "=")
				milli, err := strconv.ParseInt(n, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, codec.Delta{Entity: "user-1", Resource: "gpt-4", Limit: limit, Millitokens: milli,
					At: at})
			}
			if diff := cmp.Diff(want, got); diff != "" && test.err == "" {
				t.Errorf("deltas (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDeltasAllocations: the result is all that is allocated for, of a bucket with a plan too.
func TestDeltasAllocations(t *testing.T) {
	rec := codec.Record{Old: bucketWith(nil, "rpm=1", "tpm=1"),
		New: bucketWith(side{"po": "S:org-1"}, "rpm=2", "tpm=1")}
	if n := testing.AllocsPerRun(100, func() {
		if deltas, err := rec.Deltas(
			codec.Counter{Limit: "rpm", Consumed: "b_rpm_tc", Carried: "m_rpm"},
			codec.Counter{Limit: "tpm", Consumed: "b_tpm_tc", Carried: "m_tpm"},
		); err != nil || len(deltas) != 1 {
			t.Error(deltas, err)
		}
	}); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
