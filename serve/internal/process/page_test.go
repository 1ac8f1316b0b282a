package process_test

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// exchange is a request of docs/serve.md, and the answer below it.
var exchange = regexp.MustCompile(`(?m)^\$ curl -d '(.*)' http://127\.0\.0\.1:8080(\S+)\n(.*)$`)

// lease is the name of a lease in an answer.
var lease = regexp.MustCompile(`"lease":"([^"]*)"`)

// left is the tokens in an answer. Some come back while the test runs.
var left = regexp.MustCompile(`"tpm":(\d+)`)

// tokens returns the tokens in an answer, 0 without any.
func tokens(t *testing.T, answer string) int {
	t.Helper()
	m := left.FindStringSubmatch(answer)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPage sends the requests of docs/serve.md, which get the answers that the page shows.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile("../../../examples/quickstart/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(folder+"/limits.yaml", schema, 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, folder)
	all := exchange.FindAllStringSubmatch(string(page), -1)
	if len(all) != 3 {
		t.Fatalf("the page has %d requests, want 3", len(all))
	}
	name := ""
	for _, one := range all {
		_, got := r.post(strings.Replace(one[2], "$LEASE", name, 1), one[1])
		if m := lease.FindStringSubmatch(got); m != nil {
			name, got = m[1], lease.ReplaceAllString(got, `"lease":"..."`)
		}
		want, _, _ := strings.Cut(one[3], ",...}")
		if !strings.HasPrefix(left.ReplaceAllString(got, ""), left.ReplaceAllString(want, "")) ||
			tokens(t, got) < tokens(t, want) {
			t.Errorf("%s gets %s, the page has %s", one[0], got, one[3])
		}
	}
}

// TestPageMetrics: the page names all metrics of the server, and no others.
func TestPageMetrics(t *testing.T) {
	page, err := os.ReadFile("../../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, t.TempDir())
	r.post(acquire, user)
	r.reload <- nil
	r.await("were read again", 1)
	resp, err := r.client.Get(r.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	served := names(regexp.MustCompile(`(?m)^# TYPE (sluice_serve_\w+|http_\w+) `), string(text))
	named := names(regexp.MustCompile("`(sluice_serve_\\w+|http_\\w+)`"), string(page))
	if !slices.Equal(served, named) || len(served) < 5 {
		t.Errorf("served are %v, the page names %v", served, named)
	}
}

// names returns the sorted first groups of all matches.
func names(pattern *regexp.Regexp, text string) (all []string) {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}
