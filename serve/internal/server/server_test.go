package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestAcquire: a lease is granted, settled once, and what it did not use comes back.
func TestAcquire(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.acquire("300")
		if a.Left["rpm"] != 9. || a.Left["tpm"] != 700. || len(a.Left) != 2 {
			r.Errorf("remaining %v", a.Left)
		}
		path := "/v1/leases/" + a.Lease
		more := r.want(r.post(path+"/more", `{"cost": {"tpm": 50}}`), http.StatusOK)
		if more.Left["tpm"] != 650. {
			r.Errorf("after more: %v", more.Left)
		}
		settled := r.want(r.post(path+"/settle", `{"cost": {"tpm": 20}}`), http.StatusOK)
		if settled.Left["tpm"] != 980. {
			r.Errorf("after the settle: %v", settled.Left)
		}
		again := r.want(r.post(path+"/settle", `{"cost": {"tpm": 0}}`), http.StatusGone)
		if again.Ended != "settled" || r.left("api", user, "tpm") != 980. {
			r.Errorf("settled again: %s; left %v", again.body, r.left("api", user, "tpm"))
		}
		released := r.acquire("300")
		r.want(r.post("/v1/leases/"+released.Lease+"/release", ""), http.StatusNoContent)
		kept := r.acquire("300")
		r.want(r.post("/v1/leases/"+kept.Lease+"/keep", ""), http.StatusNoContent)
		if left := r.left("api", user, "tpm"); left != 680. {
			r.Errorf("left %v, want 680", left)
		}
		if s := r.server.Leases.Stats(); s.Open != 0 || s.Ended[1] != 1 || s.Ended[2] != 1 || s.Ended[3] != 1 {
			r.Errorf("%+v", s)
		}
	})
}

// TestRefused: answers to calls that are not served.
func TestRefused(t *testing.T) {
	bubble(t, func(r *rig) {
		for _, test := range []struct {
			name, path, body string
			status           int
			want             string
		}{
			{"tokens are missing", "api/acquire", `{"entity": {"user": "2", "org": "7"}, "cost": {"tpm": 1000}}`, 200,
				""},
			{"denied", "api/acquire", `{"entity": {"user": "2", "org": "7"}, "cost": {"tpm": 100}}`, 429,
				`"detail":"tpm has 0 of the 100 that the request needs: retry after 6 s."`},
			{"never", "api/acquire", `{"entity": {"user": "1", "org": "7"}, "cost": {"tpm": 1001}}`, 400, `tpm`},
			{"a resource", "ape/acquire", `{}`, 404,
				`resource \"ape\" is none of limits.yaml: did you mean \"api\"?"`},
			{"no entity", "api/acquire", `{}`, 400, `api: entity is missing: write its kind and its id`},
			{"a kind", "api/acquire", `{"entity": {"usr": "1"}}`, 400,
				`entity \"usr\" is no kind of limits.yaml: did you mean \"user\"?"`},
			{"kind without limits", "jobs/acquire", `{"entity": {"user": "1", "org": "7"}}`, 400,
				`jobs: entity \"user\" is a kind without limits on this resource: call for org`},
			{"an unknown parent", "api/acquire", `{"entity": {"user": "9"}}`, 400, `sluice entity put`},
			{"an id", "api/acquire", `{"entity": {"user": "a#b", "org": "7"}}`, 400, `contains '#'`},
			{"a long id", "api/acquire", `{"entity": {"user": "` + strings.Repeat("x", 300) + `", "org": "7"}}`, 400,
				`has 300 bytes, more than 256`},
			{"a limit", "api/acquire", `{"entity": ` + user + `, "cost": {"tmp": 1}}`, 400,
				`cost \"tmp\" is no limit: it can be rpm or tpm."`},
			{"a fraction", "api/acquire", `{"entity": ` + user + `, "cost": {"tpm": 1.5}}`, 400,
				`cost of tpm \"1.5\" is no whole number`},
			{"negative", "api/acquire", `{"entity": ` + user + `, "cost": {"tpm": -1}}`, 400, `is negative`},
			{"a text", "api/acquire", `{"entity": ` + user + `, "cost": {"tpm": "1"}}`, 400, `is a text`},
			{"money as a number", "model/acquire", `{"entity": ` + user + `, "cost": {"month": 0.5}}`, 400,
				`write money as a text`},
			{"no usage", "api/acquire", `{"entity": ` + user + `, "usage": {"input": 1}}`, 400, `has no meaning`},
			{"a usage", "model/acquire", `{"entity": ` + user + `, "usage": {"inptu": 1}}`, 400,
				`it can be input, output or call.`},
			{"both", "model/acquire", `{"entity": ` + user + `, "usage": {"input": 1}, "cost": {}}`, 400,
				`send one of them`},
			{"a member", "api/acquire", `{"entity": ` + user + ",\n \"csot\": {}}", 400,
				`not valid at 2:2: member \"csot\" is unknown: it can be name, entity, cost, usage or wait."`},
			{"a wait", "api/acquire", `{"entity": ` + user + `, "wait": "5"}`, 400, `such as 5s or 500ms`},
			{"a budget", "model/acquire", `{"entity": ` + user + `, "cost": {"month": "5"}}`, 200, ""},
			{"a budget is exhausted", "model/acquire", `{"entity": ` + user + `, "cost": {"month": "0.5"}}`, 402,
				`"currency":"USD"`},
			{"no claims", "acquire", `[]`, 400, "at least one"},
			{"no resource", "acquire", `[{"resource": "api", "entity": ` + user + `}, {"entity": ` + user + `}]`,
				400, `"Claim 2: resource is missing: it can be `},
			{"a claim's entity", "acquire", `[{"resource": "api", "entity": {"usr": "1"}}]`, 400,
				`"Claim 1: api: entity \"usr\" is no kind of limits.yaml: did you mean \"user\"?"`},
			{"large", "api/acquire", `{"entity": {"user": "` + strings.Repeat("x", 70_000) + `"}}`, 413, "64 KiB"},
			{"a path", "api/acquires", `{}`, 404, "openapi.json"},
			{"no lease", "leases//settle", `{}`, 404, "openapi.json"},
			{"a resource without a name", "/acquire", `{}`, 404, "openapi.json"},
		} {
			a := r.post("/v1/"+test.path, test.body)
			if a.status != test.status || !strings.Contains(a.body, test.want) {
				r.Errorf("%s: %d %s, want %d %s", test.name, a.status, a.body, test.status, test.want)
			}
			if a.status >= 400 && a.header.Get("Content-Type") != "application/problem+json" {
				r.Errorf("%s: %v", test.name, a.header)
			}
		}
	})
}

// TestUsage: the cost of what a call consumes is that of generated code, and of its own limits alone.
func TestUsage(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.want(r.post("/v1/model/acquire",
			`{"entity": `+user+`, "usage": {"input": 1000, "output": 200, "call": 1}}`), http.StatusOK)
		if a.Left["tpm"] != 98_800. || a.Left["month"] != "4.9855" { // 0.0025 + 0.002 + 0.01
			r.Errorf("left %v", a.Left)
		}
		s := r.want(r.post("/v1/leases/"+a.Lease+"/settle", `{"usage": {"input": 400}}`), http.StatusOK)
		if s.Left["tpm"] != 99_600. || s.Left["month"] != "4.999" {
			r.Errorf("left %v", s.Left)
		}
		org := r.want(r.post("/v1/model/acquire", `{"entity": {"org": "7"}, "usage": {"input": 400}}`),
			http.StatusOK)
		if org.Left["month"] != "4.998" || len(org.Left) != 1 {
			r.Errorf("an org, whose calls charge no tpm: %v", org.Left)
		}
	})
}

// TestAllOrNone: several claims are admitted together, or charge nothing.
func TestAllOrNone(t *testing.T) {
	bubble(t, func(r *rig) {
		claims := func(month string) string {
			return `[{"resource": "api", "entity": ` + user + `, "cost": {"tpm": 400}},
				{"resource": "model", "entity": ` + user + `, "cost": {"tpm": 1, "month": "` + month + `"}}]`
		}
		a := r.want(r.post("/v1/acquire", claims("3")), http.StatusOK)
		if strings.Count(a.body, `"lease":`) != 2 {
			r.Errorf("%s", a.body)
		}
		if a := r.post("/v1/acquire", claims("3")); a.status != http.StatusPaymentRequired {
			r.Errorf("%d %s", a.status, a.body)
		}
		if left := r.left("api", user, "tpm"); left != 600. {
			r.Errorf("left %v: a refused acquire has charged", left)
		}
		if open := r.server.Leases.Stats().Open; open != 2 {
			r.Errorf("%d leases are open, want 2", open)
		}
	})
}

// TestWait: a call that waits gets its tokens once they are there, and not before.
func TestWait(t *testing.T) {
	bubble(t, func(r *rig) {
		r.acquire("1000")
		began := time.Now()
		const wants = `{"entity": ` + user + `, "cost": {"tpm": 100}, "wait": `
		r.want(r.post("/v1/api/acquire", wants+`"10s"}`), http.StatusOK)
		if took := time.Since(began); took < 6*time.Second || took > 7*time.Second {
			r.Errorf("it took %v, want 6s", took)
		}
		began = time.Now()
		r.want(r.post("/v1/api/acquire", wants+`"2s"}`), http.StatusTooManyRequests)
		if took := time.Since(began); took > time.Second {
			r.Errorf("a wait without hope took %v", took)
		}
	})
}
