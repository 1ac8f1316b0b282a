// Package curl plays the curl commands of a document on a handler, and holds the document to what it answers.
package curl

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/shell"
)

// blocks matches the fenced blocks that begin with curl or sleep.
var blocks = regexp.MustCompile("(?ms)^```console\n(\\$ (?:curl|sleep) .*?)^```$")

// Check plays the console blocks of a document that begin with `$ curl` or `$ sleep`, in order. A line `...`
// stands for lines that are left out. It is called in a bubble of testing/synctest: sleep waits there.
func Check(t *testing.T, file string, handler http.Handler) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := blocks.FindAllStringSubmatch(string(text), -1)
	if len(found) == 0 {
		t.Fatal(file, "has no block that begins with curl")
	}
	for _, block := range found {
		for step := range strings.SplitSeq("\n"+strings.ReplaceAll(block[1], "\\\n", " "), "\n$ ") {
			if step == "" {
				continue
			}
			command, shown, _ := strings.Cut(strings.TrimSuffix(step, "\n")+"\n", "\n")
			printed, err := play(t, handler, command)
			if err != nil {
				t.Fatalf("%s: %s: %v", file, command, err)
			}
			if !matches(shown, printed) {
				t.Errorf("%s: $ %s shows\n%s\nprints\n%s", file, command, shown, printed)
			}
		}
	}
}

// play runs one command, and returns what it prints.
func play(t *testing.T, handler http.Handler, command string) (printed string, err error) {
	t.Helper()
	args, err := shell.Fields(command, func(string) string { return "" })
	if err != nil {
		return "", err
	}
	if args[0] == "sleep" {
		seconds, err := time.ParseDuration(args[1] + "s")
		time.Sleep(seconds) // in a bubble
		return "", err
	}
	method, url, body, header, showHeader := http.MethodGet, "", "", http.Header{}, false
	for i := 1; i < len(args); i++ {
		value := func() string {
			if i++; i == len(args) {
				return ""
			}
			return args[i]
		}
		switch args[i] {
		case "-s", "-N", "-sN":
		case "-i", "-si", "-sNi":
			showHeader = true
		case "-d":
			method, body = http.MethodPost, value()
		case "-H":
			name, content, _ := strings.Cut(value(), ": ")
			header.Set(name, content)
		default:
			url = args[i]
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "http://"+url, strings.NewReader(body))
	r.Header, r.RemoteAddr = header, "127.0.0.1:50000"
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	var out strings.Builder
	if showHeader {
		fmt.Fprintf(&out, "HTTP/1.1 %d %s\n", w.Code, http.StatusText(w.Code))
		_ = w.Header().Write(&out) // those that the handler set, sorted; a server adds Date and others
		out.WriteString("\n")
	}
	out.WriteString(w.Body.String())
	if !strings.HasSuffix(out.String(), "\n") {
		out.WriteString("\n")
	}
	return trailing.ReplaceAllString(out.String(), ""), nil
}

// trailing matches blanks at the end of lines, which a document does not keep.
var trailing = regexp.MustCompile(`(?m)[ \t\r]+$`)

// matches reports whether shown is printed, but for the lines that `...` stands for.
func matches(shown, printed string) bool {
	rest, skips := printed, false
	for line := range strings.Lines(shown) {
		if strings.TrimSpace(line) == "..." {
			skips = true
			continue
		}
		i := strings.Index("\n"+rest, "\n"+line)
		if i < 0 || i > 0 && !skips {
			return false
		}
		rest, skips = rest[i+len(line):], false
	}
	return rest == "" || skips
}
