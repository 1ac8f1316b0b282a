package openapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/serve/internal/api"
	"github.com/sluice-go/sluice/serve/internal/leases"
	"github.com/sluice-go/sluice/serve/internal/limits"
	"github.com/sluice-go/sluice/serve/internal/once"
)

const schema = `version: 1
owner: acme
revision: 1
go: {package: limits}
entities:
  org: {}
  project: {parent: org}
  user: {parent: project}
resources:
  gpt-4:
    limits:
      parallel: {capacity: 20, in_flight: true, per_call: 1, kinds: [user]}
      tpm: {capacity: 10_000, every: 1m, counts: [input], kinds: [user, project]}
      month: {money: USD, capacity: 5, window: month, kinds: [org]}
    usage: {input: {price: 2.50/1M}}
    entities: {user: {}, project: {}, org: {}}
    on_unavailable: deny
  api:
    limits: {rps: {capacity: 5, every: 1s, per_call: 1}}
    entities: {org: {}}
    on_unavailable: deny
  gateway:
    names: catalog
    limits:
      rph: {capacity: 60, every: 1h, per_call: 1, kinds: [user]}
      month: {money: USD, capacity: 5, window: month, all_names: true, kinds: [user, org]}
    entities: {user: {}, org: {}}
    on_unavailable: deny
`

// checked is a server whose requests and answers are held to its own description.
type checked struct {
	*testing.T

	api      http.Handler
	validate validator.Validator
}

func newChecked(t *testing.T) *checked {
	t.Helper()
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(file, []byte(schema), 0o600); err != nil {
		t.Fatal(err)
	}
	engine := memdynamo.New()
	if _, err := operator.CreateTable(t.Context(), engine.Client(), "limits"); err != nil {
		t.Fatal(err)
	}
	s, err := limits.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Open(dynamo.New(engine.Client(), "limits"))
	if err != nil {
		t.Fatal(err)
	}
	on, err := s.Resource("gateway")
	if err == nil {
		_, err = operator.NewCatalog(engine.Client(), "limits", time.Now).Set(t.Context(),
			store.TemplateOf(on.Spec), store.Entry{Name: "o3"})
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &checked{T: t, api: api.New(api.Config{
		Limits: limits.NewCurrent(l, func(err error) { t.Error(err) }), Keys: once.New(10), Version: "v0.1.0",
		Leases: leases.New(leases.NewNames("replica"), 100), Logger: slog.New(slog.DiscardHandler),
		Tokens: func() []string { return nil }, Draining: context.Background(),
	})}
	answer := c.serve(httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	document, err := libopenapi.NewDocument(answer.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	made, wrong := validator.NewValidator(document)
	if wrong != nil {
		t.Fatal(wrong)
	}
	c.validate = made
	return c
}

func (c *checked) serve(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	c.api.ServeHTTP(w, r)
	return w
}

// request returns a request with a body of JSON.
func request(path, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://sluice"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

// mistakes returns what the description has against a request, and against its answer.
func (c *checked) mistakes(path, body string) (status int, ofRequest, ofAnswer, text string) {
	c.Helper()
	if ok, all := c.validate.ValidateHttpRequest(request(path, body)); !ok {
		for _, e := range all {
			ofRequest += e.Error() + "\n"
		}
	}
	w := c.serve(request(path, body))
	text = w.Body.String()
	resp := w.Result()
	resp.Body = io.NopCloser(bytes.NewReader(w.Body.Bytes()))
	if ok, all := c.validate.ValidateHttpResponse(request(path, body), resp); !ok {
		for _, e := range all {
			ofAnswer += e.Error() + "\n"
		}
	}
	return w.Code, ofRequest, ofAnswer, text
}

// TestDocument: a public validator accepts the description, and requests and answers are as it says. The
// server refuses what it does not describe.
func TestDocument(t *testing.T) {
	c := newChecked(t)
	if ok, all := c.validate.ValidateDocument(); !ok {
		for _, e := range all {
			t.Errorf("%v", e)
		}
	}
	const user = `{"user": "1", "project": "2", "org": "3"}`
	lease := func() string {
		var granted struct{ Lease string }
		w := c.serve(request("/v1/gpt-4/acquire", `{"entity": `+user+`, "cost": {"tpm": 1}}`))
		if err := json.Unmarshal(w.Body.Bytes(), &granted); err != nil || granted.Lease == "" {
			t.Fatal(err, w.Body)
		}
		return granted.Lease
	}
	for _, test := range []struct {
		path, body string
		status     int
		described  bool
	}{
		{"/v1/gpt-4/acquire", `{"entity": ` + user + `, "cost": {"tpm": 100, "month": "0.5"}}`, 200, true},
		{"/v1/gpt-4/acquire", `{"entity": ` + user + `, "usage": {"input": 100}, "wait": "1.5s"}`, 200, true},
		{"/v1/gpt-4/acquire", `{"entity": {"org": "3"}, "cost": {"month": "1"}}`, 200, true},
		{"/v1/gpt-4/acquire", `{"entity": {"org": "3"}, "cost": {"month": "4.9"}}`, 402, true},
		{"/v1/gpt-4/acquire", `{"entity": ` + user + `, "cost": {"tpm": 9999}}`, 429, true},
		{"/v1/gpt-4/acquire", `{"entity": ` + user + `, "cost": {"tpm": 10001}}`, 400, true},
		{"/v1/gpt-4/acquire", `{"entity": ` + user + `, "cost": {"tmp": 1}}`, 400, false},
		{"/v1/gpt-4/acquire", `{"entity": ` + user + `, "cost": {"tpm": "1"}}`, 400, false},
		{"/v1/gpt-4/acquire", `{"entity": ` + user + `, "cost": {"month": 1}}`, 400, false},
		{"/v1/gpt-4/acquire", `{"entity": ` + user + `, "csot": {}}`, 400, false},
		{"/v1/gpt-4/acquire", `{"entity": {"user": "1", "org": "3"}}`, 400, false},
		{"/v1/gpt-4/acquire", `{"entity": {"usr": "1"}}`, 400, false},
		{"/v1/gpt-4/acquire", `{"entity": {"user": 1}}`, 400, false},
		{"/v1/gpt-4/acquire", `{"entity": {"user": "a#b"}}`, 400, false},
		{"/v1/gpt-4/acquire", `{}`, 400, false},
		{"/v1/api/acquire", `{"entity": {"user": "1"}}`, 400, false},
		{"/v1/gpt-4/peek", `{"entity": ` + user + `}`, 200, true},
		{"/v1/acquire", `[{"resource": "api", "entity": {"org": "3"}},
			{"resource": "gpt-4", "entity": ` + user + `, "cost": {"tpm": 1}}]`, 200, true},
		{"/v1/acquire", `[{"resource": "ape", "entity": {"org": "3"}}]`, 400, false},
		{"/v1/acquire", `[]`, 400, false},
		{"/v1/gateway/acquire", `{"name": "o3", "entity": ` + user + `, "cost": {"month": "1"}}`, 200, true},
		{"/v1/gateway/acquire", `{"name": "o4", "entity": ` + user + `}`, 404, true},
		{"/v1/gateway/acquire", `{"entity": ` + user + `}`, 400, false},
		{"/v1/gateway/acquire", `{"name": "", "entity": ` + user + `}`, 400, false},
		{"/v1/gpt-4/acquire", `{"name": "o3", "entity": ` + user + `}`, 400, false},
		{"/v1/gateway/peek", `{"name": "o3", "entity": ` + user + `}`, 200, true},
		{"/v1/gateway/peek", `{"name": "o4", "entity": ` + user + `}`, 404, true},
		{"/v1/acquire", `[{"resource": "gateway", "name": "o3", "entity": ` + user + `}]`, 200, true},
		{"/v1/acquire", `[{"resource": "gateway", "entity": ` + user + `}]`, 400, false},
		{"/v1/leases/" + lease() + "/settle", `{"usage": {"input": 5}}`, 200, true},
		{"/v1/leases/" + lease() + "/more", `{"cost": {"tpm": 5}}`, 200, true},
		{"/v1/leases/" + lease() + "/settle", `{"cost": {"rpm": 5}}`, 400, false},
		{"/v1/leases/" + lease() + "/keep", ``, 204, true},
		{"/v1/leases/" + lease() + "/release", ``, 204, true},
		{"/v1/leases/" + lease() + "/alive", ``, 204, true},
		{"/v1/leases/x/alive", ``, 404, true},
	} {
		status, ofRequest, ofAnswer, text := c.mistakes(test.path, test.body)
		if status != test.status || (ofRequest == "") != test.described || ofAnswer != "" {
			t.Errorf("%s %s: %d %s, want %d\nrequest, described %t: %s\nanswer: %s", test.path, test.body, status,
				text, test.status, test.described, ofRequest, ofAnswer)
		}
	}
}

// TestDocumentControl: the validator sees an answer that is not as described, and a description that is none.
func TestDocumentControl(t *testing.T) {
	c := newChecked(t)
	const path, body = "/v1/api/acquire", `{"entity": {"org": "3"}}`
	for text, want := range map[string]bool{
		`{"lease": "x", "remaining": {"rps": 4}}`:   true,
		`{"lease": "x", "remaining": {"rps": "4"}}`: false,
		`{"lease": "x", "remaining": {"tps": 4}}`:   false,
		`{"remaining": {"rps": 4}}`:                 false,
	} {
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(text))}
		if ok, _ := c.validate.ValidateHttpResponse(request(path, body), resp); ok != want {
			t.Errorf("%s: %t, want %t", text, ok, want)
		}
	}
	w := c.serve(httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	broken := strings.Replace(w.Body.String(), `"paths"`, `"path"`, 1)
	document, err := libopenapi.NewDocument([]byte(broken))
	if err != nil {
		return
	}
	if made, wrong := validator.NewValidator(document); wrong == nil {
		if ok, _ := made.ValidateDocument(); ok {
			t.Error("a description without paths is accepted")
		}
	}
}
