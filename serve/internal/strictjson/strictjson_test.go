package strictjson

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// read reads a text of any members, as far as this package knows JSON: strings, numbers, objects and arrays.
func read(r *Reader) (v any, err error) {
	switch r.space() {
	case '{':
		all := map[string]any{}
		err = r.Object("it", func(name string) error {
			all[name], err = read(r)
			return err
		})
		return all, err
	case '[':
		all := []any{}
		err = r.Array("it", func(int) error {
			one, err := read(r)
			all = append(all, one)
			return err
		})
		return all, err
	case '"':
		return r.Text("it")
	}
	l, err := r.Scalar("it")
	return json.Number(l.Text), err
}

func readAll(text []byte) (any, error) {
	r := NewReader(text)
	v, err := read(r)
	if err == nil {
		err = r.End()
	}
	return v, err
}

// TestManyMembers: an object with more members than any request has is refused early: each name is compared
// to those before it.
func TestManyMembers(t *testing.T) {
	var text strings.Builder
	for i := range 1_001 {
		fmt.Fprintf(&text, `, "%d": 1`, i)
	}
	all := "{" + text.String()[2:]
	if _, err := readAll([]byte(all[:strings.LastIndex(all, ",")] + "}")); err != nil {
		t.Error(err)
	}
	if _, err := readAll([]byte(all)); err == nil ||
		err.Error() != "1:9892: it has more than 1000 members: send fewer" {
		t.Error(err)
	}
}

// TestErrors: each mistake has its place and its cure.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1, "b": {"c": "x\u00e9", "d": [1, -2.5e3]}}`: "",
		"":                  "1:1: \"it\" is neither a number nor a text in quotes",
		"{":                 "1:2: it has a member without a name in quotes",
		"{\n  \"a\" 1}":     "2:7: a colon is missing behind \"a\"",
		`{"a": 1 "b"}`:      "1:9: a comma or a '}' is missing in it",
		`{"a": 1, "a": 2}`:  "1:10: member \"a\" is there twice: remove one",
		`{"a": 1, }`:        "1:10: it has a member without a name in quotes",
		`{"a": true}`:       "1:7: \"it\" is neither a number nor a text in quotes",
		`{"a": 01}`:         "1:7: \"it\" is neither a number nor a text in quotes",
		`{"a": "x`:          "1:7: a text has no closing quotation mark",
		`{"a": "x\`:         "1:7: a text has no closing quotation mark",
		"{\"a\": \"x\n\"}":  "1:9: a text has a control character: write it as \\u00XX",
		"{\"a\": \"\xff\"}": "1:7: a text is no UTF-8: encode it",
		`{"a": "\q"}`:       "1:7: a text has an escape that JSON does not have",
		`{"a": "\ud800"}`:   "1:7: a text has an escape that is no character: write both halves of a pair",
		`[1 2]`:             "1:4: a comma or a ']' is missing in it",
		`{} {}`:             "1:4: there is more behind the end: remove it",
	} {
		got := ""
		if _, err := readAll([]byte(text)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	r := NewReader([]byte("{\n \"enity\": 1}"))
	err := r.Object("the body", func(name string) error { return r.Unknown(name, "leave it out") })
	if want := `2:2: member "enity" is unknown: leave it out`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if got, want := Quote("\x1b"+string(make([]byte, 50))), 4*40+2+3; len(got) != want {
		t.Errorf("%s has %d bytes, want %d", got, len(got), want)
	}
}

// FuzzSame: what is read is read by encoding/json too, as the same.
func FuzzSame(f *testing.F) {
	for _, text := range []string{
		`{"a": 1, "b": ["x\u00e9"]}`, `{"a": {"b": "c"}}`, `[-1.5e3, 0]`, `"\ud83d\ude00"`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := readAll(text)
		if err != nil {
			return
		}
		if !json.Valid(text) {
			t.Fatalf("%q is read, and is no JSON", text)
		}
		encoded, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var want, again any
		if err := json.Unmarshal(text, &want); err != nil {
			return // a number that no float64 holds
		}
		if err := json.Unmarshal(encoded, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, again); diff != "" {
			t.Errorf("%q (-encoding/json +read):\n%s", text, diff)
		}
	})
}
