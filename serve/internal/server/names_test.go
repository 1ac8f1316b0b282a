package server_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/serve/internal/limits"
)

// catalog puts the schema of templates in force, and a catalog. Of its names, gpt-5 has a price of its own,
// and latest is another name of gpt-5.
func (r *rig) catalog() {
	r.Helper()
	text, err := os.ReadFile(templates)
	if err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(r.file, text, 0o600); err != nil {
		r.Fatal(err)
	}
	r.replace()
	s, err := limits.Read(r.file)
	if err != nil {
		r.Fatal(err)
	}
	on, err := s.Resource("model")
	if err != nil {
		r.Fatal(err)
	}
	all := operator.NewCatalog(r.engine.Client(), "limits", time.Now)
	for _, e := range []store.Entry{
		{Name: "gpt-5", Prices: []int64{5_000_000, -1, -1, -1}}, {Name: "o3"}, {Name: "latest", Alias: "gpt-5"},
	} {
		if _, err := all.Set(r.Context(), store.TemplateOf(on.Spec), e); err != nil {
			r.Fatal(err)
		}
	}
}

// TestNamed: calls on a name of a template have its buckets and prices, and those of all names. A lease is
// settled by the prices of its acquire.
func TestNamed(t *testing.T) {
	bubble(t, func(r *rig) {
		r.catalog()
		call := func(name, more string) answer {
			return r.post("/v1/model/acquire", fmt.Sprintf(`{"name": %q, "entity": %s%s}`, name, ofKey, more))
		}
		a := r.want(call("gpt-5", `, "cost": {"tpm": 1000, "parallel": 1, "month": "1"}`), http.StatusOK)
		if a.Left["tpm"] != 49_000. || a.Left["parallel"] != 19. || a.Left["month"] != "4" || a.Left["rpm"] != 59. {
			r.Errorf("left %v", a.Left)
		}
		const used = `, "usage": {"input": 10000, "output": 1000}`
		latest := r.want(call("latest", used), http.StatusOK)
		if latest.Left["month"] != "3.94" || latest.Left["tpm"] != 38_000. { // 0.05 and 0.01, of gpt-5
			r.Errorf("left %v", latest.Left)
		}
		o3 := r.want(call("o3", used), http.StatusOK)
		if o3.Left["month"] != "3.905" || o3.Left["tpm"] != 39_000. || o3.Left["rpm"] != 59. { // 0.025 and 0.01
			r.Errorf("left %v", o3.Left)
		}
		settled := r.want(r.post("/v1/leases/"+latest.Lease+"/settle", `{"usage": {"input": 1000}}`), http.StatusOK)
		if settled.Left["month"] != "3.96" { // 0.06 of before come back, less 0.005
			r.Errorf("left %v", settled.Left)
		}
		peek := r.want(r.post("/v1/model/peek", `{"name": "o3", "entity": `+ofKey+`}`), http.StatusOK)
		for _, want := range []string{
			`"available":{"rpm":59,"tpm":39000,"parallel":`, `{"kind":"key","available":{"rpm":59,"tpm":39000}`,
			`{"kind":"key","available":{"parallel":`, `{"kind":"org","available":{"month":"3.96"}`, `"all_names":true`,
		} {
			if !strings.Contains(peek.body, want) {
				r.Errorf("%s, want %s", peek.body, want)
			}
		}
		claims := `[{"resource": "model", "name": "o3", "entity": ` + ofKey + `}, {"resource": "voice", ` +
			`"name": "o3", "entity": ` + ofKey + `}]`
		r.want(r.post("/v1/acquire", claims), http.StatusNotFound) // voice has no catalog
		claims = strings.Replace(claims, `"voice", "name": "o3"`, `"model", "name": "gpt-5"`, 1)
		r.want(r.post("/v1/acquire", claims), http.StatusOK)
		month := `, "cost": {"month": "4"}`
		denied := r.want(call("gpt-5", month), http.StatusPaymentRequired)
		if !strings.Contains(denied.body, `"resource":"model/gpt-5"`) {
			r.Errorf("%s", denied.body)
		}
	})
}

const ofKey = `{"key": "k", "org": "acme"}`

// TestUnknownNames: a name that the catalog does not have makes no bucket, as does a call without one. Names
// are in no log. Many of them cost a bounded number of reads.
func TestUnknownNames(t *testing.T) {
	bubble(t, func(r *rig) {
		r.catalog()
		items := len(r.items())
		for _, test := range []struct {
			path, name string
			status     int
			want       string
		}{
			{"model", `"name": "gpt-6", `, 404, `the catalog does not have the name gpt-6`},
			{"model", `"name": "` + strings.Repeat("x", 129) + `", `, 400, "has 129 bytes, more than 128"},
			{"model", `"name": "a#b", `, 400, `contains '#'`},
			{"model", `"name": "", `, 400, "name is missing"},
			{"model", ``, 400, "model: name is missing: write which name of the catalog"},
			{"model", `"name": 5, `, 400, "name is no text"},
			{"model/gpt-5", `"name": "gpt-5", `, 404, "There is no such path"},
		} {
			for _, verb := range []string{"acquire", "peek"} {
				a := r.post("/v1/"+test.path+"/"+verb, `{`+test.name+`"entity": `+ofKey+`}`)
				if a.status != test.status || !strings.Contains(a.body, test.want) ||
					a.header.Get("Content-Type") != "application/problem+json" {
					r.Errorf("%s %s: %d %s, want %d %s", verb, test.name, a.status, a.body, test.status, test.want)
				}
			}
		}
		r.engine.ResetConsumed()
		busy := 0
		for i := range 500 {
			a := r.post("/v1/model/acquire", fmt.Sprintf(`{"name": "invented-%d", "entity": %s}`, i, ofKey))
			switch a.status {
			case http.StatusNotFound:
			case http.StatusServiceUnavailable:
				busy++
			default:
				r.Fatalf("%d %s", a.status, a.body)
			}
		}
		if reads := 500 - busy; reads > 60 || reads < 40 {
			r.Errorf("%d names were looked up at once, want 50", reads)
		}
		if n := len(r.items()); n != items {
			r.Errorf("%d items, %d before", n, items)
		}
		if log := r.log.String(); strings.Contains(log, "invented") || strings.Contains(log, "gpt-6") {
			r.Errorf("log: %s", log)
		}
	})
}

// items returns what is in the table.
func (r *rig) items() []map[string]types.AttributeValue {
	r.Helper()
	page, err := r.engine.Client().Scan(r.Context(), &dynamodb.ScanInput{TableName: aws.String("limits")})
	if err != nil {
		r.Fatal(err)
	}
	return page.Items
}
