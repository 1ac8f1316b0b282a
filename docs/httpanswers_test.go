package docs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/limittest"
)

// TestHTTPAnswers compares the answers that docs/http.md shows with what httplimit answers.
func TestHTTPAnswers(t *testing.T) {
	page := read(t, "docs/http.md")
	synctest.Test(t, func(t *testing.T) {
		lim, err := limits.New(limittest.Store(t))
		if err != nil {
			t.Fatal(err)
		}
		answer := func(tpm int64) *httptest.ResponseRecorder {
			cost := func(r *http.Request) (limits.GPT4Entity, limits.GPT4Cost, error) {
				return limits.User{
						ID:      r.FormValue("user"),
						Project: limits.Project{ID: "1"},
					}, limits.GPT4Cost{
						TPM: tpm,
					}, nil
			}
			w := httptest.NewRecorder()
			next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			httplimit.Middleware(lim.GPT4, cost, httplimit.Headers())(
				next,
			).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/?user=123", nil))
			return w
		}
		answers := map[int]*httptest.ResponseRecorder{http.StatusOK: answer(600)}
		answer(14_380) // 20 are left
		answers[http.StatusTooManyRequests] = answer(500)
		for code, got := range answers {
			line := fmt.Sprintf("HTTP/1.1 %d %s\n", code, http.StatusText(code))
			_, shown, found := strings.Cut(page, "```\n"+line)
			shown, _, _ = strings.Cut(shown, "```\n")
			head, body, _ := strings.Cut(shown, "\n\n")
			if !found || got.Code != code {
				t.Fatalf("docs/http.md has no %s; %d", line, got.Code)
			}
			for h := range strings.Lines(strings.TrimSuffix(head, "\n") + "\n") {
				name, value, _ := strings.Cut(strings.TrimSuffix(h, "\n"), ": ")
				if got.Header().Get(name) != value {
					t.Errorf("%s: docs/http.md shows %q, %q is answered", name, value, got.Header().Get(name))
				}
			}
			var indented bytes.Buffer
			_ = json.Indent(&indented, got.Body.Bytes(), "", "  ")
			if indented.String() != body {
				t.Errorf("docs/http.md shows\n%s\nis answered\n%s", body, &indented)
			}
		}
	})
}
