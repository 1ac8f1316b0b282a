package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/redistest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/serve/internal/limits"
	"github.com/sluice-go/sluice/serve/internal/server"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// templates is a schema with templates, on both stores.
const templates = "../../../gen/testdata/golden/templates/limits.yaml"

// TestNamedOnRedis: calls on a name of a template have its buckets and prices on Redis too, and those of all
// names. A name that the catalog does not have makes no key.
func TestNamedOnRedis(t *testing.T) {
	redis := redistest.New(t)
	schema, err := limits.Read(templates)
	if err != nil {
		t.Fatal(err)
	}
	at := redisstore.New(redis.Client, redisstore.Prefix(redis.Prefix))
	r := newRigWithout(t)
	l, err := schema.Open(at, runtime.WithLogger(r.logger()), runtime.WithClock(redis))
	if err != nil {
		t.Fatal(err)
	}
	on, err := schema.Resource("model")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []store.Entry{
		{Name: "gpt-5", Prices: []int64{5_000_000, -1, -1, -1}}, {Name: "o3"}, {Name: "latest", Alias: "gpt-5"},
	} {
		if _, err := at.Catalog().Set(t.Context(), store.TemplateOf(on.Spec), e); err != nil {
			t.Fatal(err)
		}
	}
	current := limits.NewCurrent(l, func(err error) { t.Error(err) })
	s := server.New(server.Config{Limits: current, Replica: "replica", Most: 100,
		Tokens: func() []string { return nil }, Logger: r.logger()})
	serve := s.Handler()
	call := func(path, body string) (int, string) {
		w := httptest.NewRecorder()
		serve.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
	acquire := func(name, more string) (int, string) {
		return call("/v1/model/acquire", fmt.Sprintf(`{"name": %q, "entity": %s%s}`, name, ofKey, more))
	}
	keys := func() int {
		all, err := redis.Client.Keys(t.Context(), redis.Prefix+"*").Result()
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before := keys()
	for name, want := range map[string]int{"gpt-6": 404, "a#b": 400} {
		if status, text := acquire(name, ""); status != want {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if n := keys(); n != before {
		t.Errorf("%d keys, %d before", n, before)
	}
	const used = `, "usage": {"input": 10000, "output": 1000}`
	for _, test := range []struct {
		name, more string
		status     int
		want       []string
	}{
		{"gpt-5", `, "cost": {"tpm": 1000, "parallel": 1, "month": "1"}`, 200,
			[]string{`"rpm":59`, `"tpm":49000`, `"parallel":19`, `"month":"4"`}},
		{"latest", used, 200, []string{`"tpm":38000`, `"month":"3.94"`}},          // 0.05 and 0.01, of gpt-5
		{"o3", used, 200, []string{`"rpm":59`, `"tpm":39000`, `"month":"3.905"`}}, // 0.025 and 0.01
		{"gpt-5", `, "cost": {"month": "4"}`, 402, []string{`"resource":"model/gpt-5"`}},
	} {
		status, text := acquire(test.name, test.more)
		for _, want := range test.want {
			if status != test.status || !strings.Contains(text, want) {
				t.Errorf("%s: %d %s, want %d %s", test.name, status, text, test.status, want)
			}
		}
	}
	_, text := call("/v1/model/peek", `{"name": "o3", "entity": `+ofKey+`}`)
	if !strings.Contains(text, `{"kind":"key","available":{"rpm":59,"tpm":39000}`) {
		t.Error(text)
	}
	if err := s.Drain(now()); err != nil {
		t.Error(err)
	}
}
