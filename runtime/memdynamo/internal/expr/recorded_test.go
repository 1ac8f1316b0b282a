package expr

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// request is what the recorded expressions are about: testdata/request.json.
type request struct {
	Item, Values map[string]*value.Wire
	Names        map[string]string

	item, values value.Map
}

func readRequest(t testing.TB) request {
	t.Helper()
	text, err := os.ReadFile("testdata/request.json")
	if err != nil {
		t.Fatal(err)
	}
	var r request
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if r.item, err = value.DecodeMap(r.Item); err != nil {
		t.Fatal(err)
	}
	if r.values, err = value.DecodeMap(r.Values); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r request) scope(t testing.TB) *Scope {
	t.Helper()
	s, err := NewScope(r.Names, r.values)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// recorded calls try with each text of a file of testdata and compares what it returns with what DynamoDB
// Local 2.6.1 said.
func recorded(t *testing.T, file string, try func(s *Scope, r request, text string) (string, error)) {
	t.Helper()
	lines, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	r := readRequest(t)
	before := string(value.AppendMap(nil, r.item))
	count := 0
	for line := range strings.Lines(string(lines)) {
		quoted, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		text, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got, err := try(r.scope(t), r, text)
		if err != nil {
			got = invalid(t, err)
		}
		if got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
		count++
	}
	if count < 50 {
		t.Errorf("%s has only %d lines", file, count)
	}
	if after := string(value.AppendMap(nil, r.item)); after != before {
		t.Errorf("the item changed:\n got %s\nwant %s", after, before)
	}
}

func TestRecordedConditions(t *testing.T) {
	recorded(t, "condition.txt", func(s *Scope, r request, text string) (string, error) {
		c, err := s.Condition(ConditionExpression, text)
		if err != nil {
			return "", err
		}
		return strconv.FormatBool(c.Holds(r.item)), nil
	})
}

// The recorded results of updates are the attributes that changed; null is gone.
func TestRecordedUpdates(t *testing.T) {
	recorded(t, "update.txt", func(s *Scope, r request, text string) (string, error) {
		u, err := s.Update(text)
		if err != nil {
			return "", err
		}
		after, err := u.Apply(r.item)
		if err != nil {
			return "", err
		}
		return changes(r.item, after), nil
	})
}

func TestRecordedProjections(t *testing.T) {
	recorded(t, "projection.txt", func(s *Scope, r request, text string) (string, error) {
		p, err := s.Projection(text)
		if err != nil {
			return "", err
		}
		return string(value.AppendMap(nil, p.Of(r.item))), nil
	})
}

// changes returns the attributes of after that differ from before, as JSON.
func changes(before, after value.Map) string {
	result := map[string]json.RawMessage{}
	for name, v := range after {
		if was := before[name]; was == nil || !value.Equal(was, v) {
			result[name] = value.Append(nil, v)
		}
	}
	for name := range before {
		if after[name] == nil {
			result[name] = json.RawMessage("null")
		}
	}
	text, _ := json.Marshal(result)
	return string(text)
}
