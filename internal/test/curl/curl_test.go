package curl

import (
	"fmt"
	"io"
	"net/http"
	"testing"
)

// TestMatches: what is left out may be any lines, and nothing else may differ.
func TestMatches(t *testing.T) {
	for _, c := range []struct {
		shown, printed string
		want           bool
	}{
		{"a\nb\n", "a\nb\n", true},
		{"a\n...\nd\n", "a\nb\nc\nd\n", true},
		{"a\n...\n", "a\nb\n", true},
		{"", "", true},
		{"a\n", "a\nb\n", false},
		{"a\nb\n", "a\n", false},
		{"b\n", "a\nb\n", false},
		{"a\n...\nb\n", "a\nc\n", false},
		{"", "a\n", false},
	} {
		if got := matches(c.shown, c.printed); got != c.want {
			t.Errorf("%q for %q: %t", c.shown, c.printed, got)
		}
	}
}

// TestPlay: a command is the request that curl sends.
func TestPlay(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, r.Method, " ", r.URL.Path, " ", r.Header.Get("X-A"), " ", string(body))
	})
	for command, want := range map[string]string{
		`curl -s localhost:8080/x`:                    "GET /x\n",
		`curl -sN -H 'X-A: b' localhost:8080/ -d 'c'`: "POST / b c\n",
	} {
		if got, err := play(t, echo, command); err != nil || got != want {
			t.Errorf("%s: %q, %v", command, got, err)
		}
	}
}
