package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/serve/internal/server"
)

// TestExpires: a lease whose client is gone ends a minute after that, or after the last alive, as Keep does.
func TestExpires(t *testing.T) {
	bubble(t, func(r *rig) {
		job := func() answer {
			return r.want(r.post("/v1/jobs/acquire", `{"entity": {"org": "7"}}`), http.StatusOK)
		}
		alive := func(a answer) int { return r.post("/v1/leases/"+a.Lease+"/alive", "").status }
		first, second := job(), job()
		pass(10 * time.Minute)
		if left := r.left("jobs", `{"org": "7"}`, "parallel"); left != 0. {
			r.Errorf("%v slots are free while the connection is open", left)
		}
		r.client.CloseIdleConnections()
		pass(30 * time.Second)
		if status := alive(first); status != http.StatusNoContent {
			r.Errorf("alive: %d", status)
		}
		pass(32 * time.Second)
		if status := r.post("/v1/leases/"+second.Lease+"/keep",
			""); status.Ended != "expired" || status.status != 410 {
			r.Errorf("without alive: %d %s", status.status, status.body)
		}
		if status := alive(first); status != http.StatusNoContent {
			r.Errorf("alive again: %d", status)
		}
		r.client.CloseIdleConnections()
		pass(62 * time.Second)
		if status := alive(first); status != http.StatusGone {
			r.Errorf("a minute later: %d", status)
		}
		if left := r.left("jobs", `{"org": "7"}`, "parallel"); left != 2. {
			r.Errorf("%v slots are free, want 2", left)
		}
		if open := r.server.Leases.Stats().Open; open != 0 {
			r.Errorf("%d leases are open", open)
		}
	})
}

// TestSlots: slots of an open lease are extended for as long as its client lives.
func TestSlots(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.want(r.post("/v1/jobs/acquire", `{"entity": {"org": "7"}}`), http.StatusOK)
		for range 40 {
			pass(30 * time.Second)
			r.want(r.post("/v1/leases/"+a.Lease+"/alive", ""), http.StatusNoContent)
		}
		if left := r.left("jobs", `{"org": "7"}`, "parallel"); left != 1. {
			r.Errorf("%v slots are free, want 1", left)
		}
		r.want(r.post("/v1/leases/"+a.Lease+"/settle", `{}`), http.StatusOK)
		if left := r.left("jobs", `{"org": "7"}`, "parallel"); left != 2. {
			r.Errorf("%v slots are free, want 2", left)
		}
	})
}

// TestNames: names that others made, or that this process did not make, are refused.
func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		r, other := newRig(t, engine, "one"), newRig(t, engine, "two")
		restarted := newRig(t, engine, "one")
		name := r.acquire("100").Lease
		raw, err := base64.RawURLEncoding.DecodeString(name)
		if err != nil {
			t.Fatal(err)
		}
		flipped := func(i int) string {
			forged := slices.Clone(raw)
			forged[i] ^= 1
			return base64.RawURLEncoding.EncodeToString(forged)
		}
		for _, test := range []struct {
			name   string
			at     *rig
			lease  string
			status int
		}{
			{"another number", r, flipped(19), 404},
			{"another code", r, flipped(35), 404},
			{"another code's beginning", r, flipped(20), 404},
			{"another replica", r, flipped(0), 421},
			{"another start", r, flipped(7), 410},
			{"another replica's", other, name, 421},
			{"of the process before", restarted, name, 410},
			{"short", r, name[:40], 404},
			{"long", r, name + "AA", 404},
			{"no base64", r, strings.Repeat("!", len(name)), 404},
			{"a path", r, "..%2f..%2fetc", 404},
			{"very long", r, strings.Repeat("A", 8_000), 404},
		} {
			for _, verb := range []string{"settle", "more", "keep", "release", "alive"} {
				if a := test.at.post("/v1/leases/"+test.lease+"/"+verb, `{"cost": {"tpm": 1}}`); a.status != test.status {
					t.Errorf("%s, %s: %d %s, want %d", test.name, verb, a.status, a.body, test.status)
				}
			}
		}
		if left := r.left("api", user, "tpm"); left != 900. {
			t.Errorf("left %v, want 900", left)
		}
		r.want(r.post("/v1/leases/"+name+"/release", ""), http.StatusNoContent)
	})
}

// TestSettledOnce: of settles at once and at several replicas, one takes effect. In the control any replica
// settles: the other one has a lease of its own for what was charged once. Both give back.
func TestSettledOnce(t *testing.T) {
	for _, anywhere := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			engine := memdynamo.New()
			engine.Faults().Latency(memdynamo.Constant(2 * time.Millisecond))
			r, other := newRig(t, engine, "one"), newRig(t, engine, "two")
			r.acquire("200")
			name := r.acquire("300").Lease
			elsewhere := other.acquire("300").Lease
			if !anywhere {
				elsewhere = name
			}
			statuses := make([]int, 8)
			var calls sync.WaitGroup
			for i := range statuses {
				at, name := r, name
				if i%2 == 1 {
					at, name = other, elsewhere
				}
				calls.Go(func() {
					a, err := trySend(t.Context(), at.client, "/v1/leases/"+name+"/settle", `{"cost": {"tpm": 1}}`)
					if err != nil {
						t.Error(err)
					}
					statuses[i] = a.status
				})
			}
			calls.Wait()
			slices.Sort(statuses)
			want := []int{200, 410, 410, 410, 421, 421, 421, 421}
			if !anywhere && !slices.Equal(statuses, want) {
				t.Errorf("statuses %v, want %v", statuses, want)
			}
			if left := r.left("api", user, "tpm"); (left == 499.) == anywhere {
				t.Errorf("anywhere %t: left %v of 500 that are not others', less the one that is used", anywhere, left)
			}
		})
	}
}

// TestIdempotency: a repeated acquire gets the lease of the first for ten minutes.
func TestIdempotency(t *testing.T) {
	bubble(t, func(r *rig) {
		const key = "Idempotency-Key"
		first := r.acquire("100", key, "k1")
		again := r.acquire("100", key, "k1")
		if again.Lease != first.Lease || again.Left != nil || r.left("api", user, "tpm") != 900. {
			r.Errorf("%s, want %s", again.body, first.body)
		}
		if other := r.acquire("100", key, "k2"); other.Lease == first.Lease {
			r.Error("another key got the same lease")
		}
		r.want(r.post("/v1/api/acquire", `{"entity": `+user+`}`, key, "k1"), http.StatusUnprocessableEntity)
		r.want(r.post("/v1/jobs/acquire", `{"entity": `+user+`, "cost": {"tpm": 100}}`, key, ""),
			http.StatusBadRequest)
		r.want(r.post("/v1/leases/"+first.Lease+"/settle", `{"cost": {"tpm": 10}}`), http.StatusOK)
		if ended := r.acquire("100", key, "k1"); ended.Lease != first.Lease || ended.Left != nil {
			r.Errorf("after the settle: %s", ended.body)
		}
		r.want(r.post("/v1/api/acquire", `{"entity": `+user+`, "cost": {"tpm": 950}}`, key, "k3"),
			http.StatusTooManyRequests)
		pass(6 * time.Second)
		denied := r.post("/v1/api/acquire", `{"entity": `+user+`, "cost": {"tpm": 950}}`, key, "k3")
		r.want(denied, http.StatusOK) // a denial is not remembered
		pass(10*time.Minute + 2*time.Second)
		if later := r.acquire("100", key, "k1"); later.Lease == first.Lease {
			r.Error("the lease is remembered for too long")
		}
	})
}

// TestIdempotencyByClient: a key is its client's own. Clients differ in their tokens, or in certificates.
func TestIdempotencyByClient(t *testing.T) {
	r := newRigWithout(t)
	const one, two = "0123456789abcdef", "fedcba9876543210"
	s := server.New(server.Config{Limits: newCurrent(r), Replica: "replica", Most: 100, Logger: r.logger(),
		Tokens: func() []string { return []string{one, two} }})
	acquire := func(token, certificate string) string {
		body := strings.NewReader(`{"entity": ` + user + `}`)
		request := httptest.NewRequest(http.MethodPost, "/v1/api/acquire", body)
		request.Header.Set("Idempotency-Key", "k")
		request.Header.Set("Authorization", "Bearer "+token)
		request.TLS = &tls.ConnectionState{}
		if certificate != "" {
			request.TLS.PeerCertificates = []*x509.Certificate{{Raw: []byte(certificate)}}
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, request)
		var granted struct{ Lease string }
		if err := json.Unmarshal(w.Body.Bytes(), &granted); err != nil || granted.Lease == "" {
			t.Fatal(w.Code, w.Body)
		}
		return granted.Lease
	}
	seen := map[string]string{}
	for _, client := range [][2]string{{one, ""}, {two, ""}, {one, "a"}, {one, "b"}} {
		lease := acquire(client[0], client[1])
		if again := acquire(client[0], client[1]); again != lease {
			t.Errorf("%q: another lease", client)
		}
		if of, taken := seen[lease]; taken {
			t.Errorf("%q has the lease of %s", client, of)
		}
		seen[lease] = fmt.Sprint(client)
	}
}

// TestIdempotencyAtOnce: of acquires with one key at once, one acquires. If its client goes away before that
// has ended, another one acquires.
func TestIdempotencyAtOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		r.engine.Faults().Latency(memdynamo.Constant(50 * time.Millisecond))
		leaver := &http.Client{Transport: r.listen.Transport()}
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Millisecond)
		defer cancel()
		const body = `{"entity": ` + user + `, "cost": {"tpm": 100}}`
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := trySend(ctx, leaver, "/v1/api/acquire", body, "Idempotency-Key", "k"); err == nil {
				r.Error("the first call has not been cancelled")
			}
			leaver.CloseIdleConnections()
		})
		pass(time.Millisecond)
		names := make([]string, 8)
		for i := range names {
			calls.Go(func() {
				names[i] = r.send(r.Context(), r.client, "/v1/api/acquire", body, "Idempotency-Key", "k").Lease
			})
		}
		calls.Wait()
		if len(slices.Compact(slices.Clone(names))) != 1 || names[0] == "" {
			r.Errorf("leases %v", names)
		}
		pass(time.Second)
		if left := r.left("api", user, "tpm"); left.(float64) < 900 {
			r.Errorf("left %v, want 900 and the refill", left)
		}
		pass(30 * time.Second)
		r.want(r.post("/v1/leases/"+names[0]+"/keep", ""), http.StatusNoContent)
	})
}

// TestFull: no more leases are open than the server allows, whatever is asked for.
func TestFull(t *testing.T) {
	bubble(t, func(r *rig) {
		const body = `{"entity": {"org": "big"}, "cost": {"rpm": 1}}`
		var first string
		for i := range 100 {
			a := r.want(r.post("/v1/api/acquire", strings.Replace(body, "big", fmt.Sprint("o", i), 1)), http.StatusOK)
			first = a.Lease
		}
		full := r.want(r.post("/v1/api/acquire", body), http.StatusServiceUnavailable)
		if full.header.Get("Retry-After") != "1" || !strings.Contains(full.Detail, "--max-leases") {
			r.Errorf("%v %s", full.header, full.body)
		}
		if left := r.left("api", `{"org": "big"}`, "rpm"); left != 100. {
			r.Errorf("left %v: a refused call has charged", left)
		}
		r.want(r.post("/v1/leases/"+first+"/keep", ""), http.StatusNoContent)
		r.want(r.post("/v1/api/acquire", body), http.StatusOK)
	})
}
