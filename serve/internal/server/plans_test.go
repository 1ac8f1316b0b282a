package server_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestPlans: calls have the numbers of the plan of the org above, whether the client names the org or the
// store knows it. Operators put an org on another plan, and no call of a client does: it is in force within
// the time of the cache, and what was used stays used.
func TestPlans(t *testing.T) {
	bubble(t, func(r *rig) {
		text, err := os.ReadFile("../../../gen/testdata/golden/plans/limits.yaml")
		if err != nil {
			r.Fatal(err)
		}
		if err := os.WriteFile(r.file, text, 0o600); err != nil {
			r.Fatal(err)
		}
		r.replace()
		members := operator.NewMembers(r.engine.Client(), "limits", time.Now)
		put := func(plan string) {
			r.Helper()
			if err := members.SetPlan(r.Context(), "org-acme", plan, nil); err != nil {
				r.Fatal(err)
			}
			pass(61 * time.Second)
		}
		for entity, parent := range map[string]string{"team-t": "org-acme", "key-stored": "team-t"} {
			if err := members.Put(r.Context(), store.Member{Entity: entity, Parent: parent}); err != nil {
				r.Fatal(err)
			}
		}
		const key, stored = `{"key": "k", "team": "t", "org": "acme"}`, `{"key": "stored"}`
		acquire := func(entity string) answer {
			return r.post("/v1/model/acquire", `{"entity": `+entity+`, "cost": {"tpm": 1}}`)
		}
		for _, on := range []struct{ plan, capacity string }{
			{"", `{"rpm":60,"tpm":50000,"parallel":20}`}, {"pro", `{"rpm":600,"tpm":500000,"parallel":20}`},
			{"enterprise", `{"rpm":1000000000000,"tpm":5000000,"parallel":200}`},
			{"free", `{"rpm":60,"tpm":50000,"parallel":20}`},
		} {
			put(on.plan)
			for _, entity := range []string{key, stored} {
				r.want(acquire(entity), http.StatusOK)
				a := r.want(r.post("/v1/model/peek", `{"entity": `+entity+`}`), http.StatusOK)
				if !strings.Contains(a.body, `"capacity":`+on.capacity) {
					r.Errorf("%s on %q: %s, want %s", entity, on.plan, a.body, on.capacity)
				}
			}
		}
		for entity, want := range map[string]string{
			`{"key": "k"}`:                "sluice entity put",
			`{"key": "k", "team": "new"}`: "sluice entity put",
			`{"key": "k", "org": "acme"}`: "lacks team",
		} {
			a := acquire(entity)
			if a.status != http.StatusBadRequest || !strings.Contains(a.body, want) {
				r.Errorf("%s: %d %s, want %s", entity, a.status, a.body, want)
			}
		}
		for path, body := range map[string]string{
			"/v1/model/plan":    `{"entity": {"org": "acme"}, "plan": "pro"}`,
			"/v1/model/acquire": `{"entity": ` + key + `, "plan": "pro"}`,
		} {
			if a := r.post(path, body); a.status != http.StatusNotFound && a.status != http.StatusBadRequest {
				r.Errorf("a client sets a plan: %d %s", a.status, a.body)
			}
		}
	})
}

// replace puts the schema in r's file in force.
func (r *rig) replace() {
	r.Helper()
	r.current.Replace(r.open())
}
