package expr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// list returns n copies of part joined by separator; %d in part is the copy's number.
func list(n int, part, separator string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(part, "%d", fmt.Sprint(i))
	}
	return strings.Join(parts, separator)
}

func TestLimits(t *testing.T) {
	const (
		operators  = "The expression contains too many operators; operator count: 301"
		candidates = "The IN operator is provided with too many operands; number of operands: "
		depth      = "The document path has too many nesting levels; nesting levels: "
		size       = "Expression size has exceeded the maximum allowed size;"
		index      = "List index is not within the allowable range; index: "
	)
	tests := []struct{ parameter, text, want string }{
		{ConditionExpression, "n=:n" + strings.Repeat(" ", 4092), ""},
		{ConditionExpression, "n=:n" + strings.Repeat(" ", 4093), size + " expression size: 4097"},
		{FilterExpression, "n=:n" + strings.Repeat(" ", 4093), size + " expression size: 4097"},
		{KeyConditionExpression, "n=:n" + strings.Repeat(" ", 4093), size + " expression size: 4097"},
		{UpdateExpression, "SET n=:n" + strings.Repeat(" ", 4089), size},
		{ProjectionExpression, "n" + strings.Repeat(" ", 4096), size},

		{ConditionExpression, list(150, "n=:n", " OR "), ""}, // 299 operators
		{ConditionExpression, list(151, "n=:n", " OR "), operators},
		{ConditionExpression, "NOT " + list(151, "n=:n", " OR "), operators},
		{ConditionExpression, strings.Repeat("NOT ", 299) + "n=:n", ""},
		{ConditionExpression, strings.Repeat("NOT ", 300) + "n=:n", operators},
		{ConditionExpression, list(150, "contains(s,:n)", " OR "), ""},
		{ConditionExpression, list(151, "contains(s,:n)", " OR "), operators},
		{ConditionExpression, list(100, "size(s)=:n", " OR "), ""},
		{ConditionExpression, list(101, "size(s)=:n", " OR "), operators},
		{ConditionExpression, strings.Repeat("(n=:n AND ", 149) + "n=:n" + strings.Repeat(")", 149), ""},
		{ConditionExpression, strings.Repeat("(n=:n AND ", 200) + "n=:n" + strings.Repeat(")", 200), operators},
		{UpdateExpression, "SET " + list(300, "a%d=n+n", ","), ""},
		{UpdateExpression, "SET " + list(301, "a%d=n+n", ","), operators},
		{UpdateExpression, "SET " + list(301, "a%d=:n", ","), ""}, // assignments are no operators
		{UpdateExpression, "SET x=" + strings.Repeat("if_not_exists(q,", 200) + ":n" + strings.Repeat(")", 200),
			""},
		{ProjectionExpression, list(700, "a%d", ","), ""},

		{ConditionExpression, "n IN (" + list(100, ":n", ",") + ")", ""},
		{ConditionExpression, "n IN (" + list(101, ":n", ",") + ")", candidates + "101"},

		{ConditionExpression, list(32, "m", ".") + "=:n", ""},
		{ConditionExpression, list(33, "m", ".") + "=:n", depth + "33"},
		{UpdateExpression, "SET n=:n,n=:n," + list(33, "m", ".") + "=:n", depth + "33"},
		{ProjectionExpression, "m" + strings.Repeat("[0]", 31), ""},
		{ProjectionExpression, "m" + strings.Repeat("[0]", 33), depth + "34"},
		{ProjectionExpression, "m[2147483647]", ""},
		{ProjectionExpression, "m[2147483648]", index + "[2147483648]"},
		{ProjectionExpression, "m[" + strings.Repeat("9", 4000) + "]",
			index + "[" + strings.Repeat("9", 4000) + "]"},

		{ConditionExpression, strings.Repeat("(", 4096), `Syntax error; token: "<EOF>", near: "("`},
		{ConditionExpression, strings.Repeat("n<", 2048), `Syntax error; token: "<", near: "n<n"`},
		{UpdateExpression, "SET a=" + strings.Repeat("(", 4000), `Syntax error; token: "<EOF>", near: "("`},
	}
	for _, test := range tests {
		s := newScope(t, nil, value.Map{":n": number(1)})
		want := test.want
		if want != "" {
			want = "Invalid " + test.parameter + ": " + want
		}
		got := ""
		if err := read(s, test.parameter, test.text); err != nil {
			got = invalid(t, err)
		}
		if got != want {
			t.Errorf("%.40s, of %d bytes:\n got %.200s\nwant %.200s", test.text, len(test.text), got, want)
		}
	}
}

// read reads text as the expression that parameter holds.
func read(s *Scope, parameter, text string) error {
	var err error
	switch parameter {
	case UpdateExpression:
		_, err = s.Update(text)
	case ProjectionExpression:
		_, err = s.Projection(text)
	case KeyConditionExpression:
		_, err = s.KeyCondition(text)
	default:
		_, err = s.Condition(parameter, text)
	}
	return err
}

func TestReservedWords(t *testing.T) {
	if len(reservedWords) != 573 {
		t.Errorf("%d words, not 573", len(reservedWords))
	}
	longest := 0
	for i, word := range reservedWords {
		longest = max(longest, len(word))
		if i > 0 && reservedWords[i-1] >= word {
			t.Errorf("%s is not before %s", reservedWords[i-1], word)
		}
		for _, w := range []string{word, strings.ToLower(word), word[:1] + strings.ToLower(word[1:])} {
			if err := read(newScope(t, nil, nil), ProjectionExpression, w); err == nil {
				t.Errorf("%s is taken for an attribute", w)
			}
			if err := read(newScope(t, map[string]string{"#n": w}, nil), ProjectionExpression, "#n"); err != nil {
				t.Errorf("#n for %s: %v", w, err)
			}
		}
	}
	if longest != longestReserved {
		t.Errorf("the longest word has %d letters, not %d", longest, longestReserved)
	}
	for _, word := range []string{"a", "id", "pk", "naming", "name_", "status1", "zonez",
		strings.Repeat("a", 4096)} {
		if err := read(newScope(t, nil, nil), ProjectionExpression, word); err != nil {
			t.Errorf("%s: %v", word, err)
		}
	}
}
