package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/examples/gateway/limits"
)

// TestDenied: who is denied learns when to come back, in the headers that clients of OpenAI read, is served
// then, and is charged for what was served alone. Of tier flex it waits.
func TestDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := bench(t)
		g, at := sim.gateways[0], sim.fronts[0]
		g.model = script(1, nil)
		const left = 100 // of 15,000
		if _, err := g.gpt4.Acquire(t.Context(), sim.tenants[0].user,
			limits.GPT4Cost{TPM: 15_000 - left}); err != nil {
			t.Fatal(err)
		}
		ask := func(tier string) (status int, header http.Header) {
			t.Helper()
			r := request(t.Context(), t, at, fmt.Sprintf(
				`{"model": "gpt-4", "stream": true, "service_tier": %q, "messages": [{"role": "user", "content": "say `+
					`something"}]}`, tier))
			r.Header.Set("Authorization", "Bearer sk-alice")
			resp, err := at.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, err = new(bytes.Buffer).ReadFrom(resp.Body)
			if err := errors.Join(err, resp.Body.Close()); err != nil {
				t.Fatal(err)
			}
			return resp.StatusCode, resp.Header
		}
		status, header := ask("default")
		for name, want := range map[string]string{
			"Retry-After":                    "2", // 203 tokens of 10,000 a minute
			"X-Ratelimit-Limit-Requests":     "100",
			"X-Ratelimit-Remaining-Requests": "99",
			"X-Ratelimit-Limit-Tokens":       "10000",
			"X-Ratelimit-Remaining-Tokens":   "100",
			"X-Ratelimit-Reset-Tokens":       "2s",
		} {
			if got := header.Get(name); got != want || status != http.StatusTooManyRequests {
				t.Errorf("%d with %s: %q, want %q", status, name, got, want)
			}
		}
		wait, err := strconv.Atoi(header.Get("Retry-After"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(wait) * time.Second) //nolint:forbidigo // in a bubble
		if status, header := ask("default"); status != http.StatusOK ||
			header.Get("X-Ratelimit-Limit-Tokens") != "10000" {
			t.Errorf("%d with %v after %d s", status, header, wait)
		}
		if _, err := g.gpt4.Acquire(t.Context(), sim.tenants[0].user, limits.GPT4Cost{TPM: 400}); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		if status, _ := ask("flex"); status != http.StatusOK || time.Since(before) < time.Second {
			t.Errorf("flex: %d after %v", status, time.Since(before))
		}
		if err := sim.close(t.Context()); err != nil {
			t.Error(err)
		}
		if rpm, tpm := consumedBy(t, sim); rpm != 4 || tpm != 15_000-left+400+2*3 {
			t.Errorf("consumed %d requests and %d tokens", rpm, tpm)
		}
	})
}

// TestRefusedAtTheDoor: what is no request for a completion is charged to nobody.
func TestRefusedAtTheDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := bench(t)
		for _, test := range []struct {
			key, body string
			status    int
			want      string
		}{
			{"sk-nobody", `{}`, 401, "The API key is not known."},
			{"sk-alice", `{"model": 4`, 400, "The body cannot be read: unexpected end of JSON input."},
			{"sk-alice", `{"model": "gpt-5", "stream": true}`, 404, `There is no model "gpt-5": ask for gpt-4.`},
			{"sk-alice", `{"model": "gpt-4"}`, 400, "This gateway streams: set stream to true."},
			{"sk-alice", `{"model": "gpt-4", "stream": true, "max_completion_tokens": 301}`, 400,
				"max_completion_tokens is 301: it can be 1 to 300."},
			{"sk-alice", `{"model": "gpt-4", "stream": true, "max_completion_tokens": -1}`, 400,
				"max_completion_tokens is -1: it can be 1 to 300."},
			{"sk-alice", strings.Repeat(" ", longest+1), 400,
				"The body cannot be read: http: request body too large."},
		} {
			r := request(t.Context(), t, sim.fronts[0], test.body)
			r.Header.Set("Authorization", "Bearer "+test.key)
			resp, err := sim.fronts[0].client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			var body errorBody
			err = errors.Join(json.NewDecoder(resp.Body).Decode(&body), resp.Body.Close())
			if err != nil || resp.StatusCode != test.status || body.Error.Message != test.want {
				t.Errorf("%.40s: %d %q, %v; want %d %q", test.body, resp.StatusCode, body.Error.Message, err, test.status,
					test.want)
			}
		}
		if err := sim.close(t.Context()); err != nil {
			t.Error(err)
		}
		if rpm, tpm := consumedBy(t, sim); rpm != 0 || tpm != 0 {
			t.Errorf("consumed %d requests and %d tokens", rpm, tpm)
		}
	})
}
