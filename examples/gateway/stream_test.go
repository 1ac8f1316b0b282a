package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/examples/gateway/limits"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// bench is a simulation without traffic of its own, in a bubble.
func bench(t *testing.T) *simulation {
	t.Helper()
	engine := memdynamo.New()
	w := &wire{next: engine.HTTPClient()}
	client := engine.Client(func(o *dynamodb.Options) { o.HTTPClient = w })
	if _, err := operator.CreateTable(t.Context(), client, "rate_limits"); err != nil {
		t.Fatal(err)
	}
	sim, err := newSimulation(t.Context(), client, pipes, settings{table: "rate_limits",
		duration: 2 * time.Second, seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	sim.engine, sim.wire = engine, w
	return sim
}

// script is a model that says so many words, one after each tenth of a second, and then ends, or breaks off.
func script(words int, end error) model {
	return func(ctx context.Context, _ *chat) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for range words {
				if err := pause(ctx, 100*time.Millisecond); err != nil {
					yield("", err)
					return
				}
				if !yield("word ", nil) {
					return
				}
			}
			if end != nil {
				yield("", end)
			}
		}
	}
}

// chatting returns the request of alice's whose prompt has two tokens and whose reply may have 100.
func chatting(ctx context.Context, t *testing.T, at *front) *http.Request {
	t.Helper()
	r := request(ctx, t, at,
		`{"model": "gpt-4", "stream": true, "max_completion_tokens": 100, "messages": [{"role": "user", `+
			`"content": "say something"}]}`)
	r.Header.Set("Authorization", "Bearer sk-alice")
	return r
}

func request(ctx context.Context, t *testing.T, at *front, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.url+"/v1/chat/completions",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// consumedBy returns what the table has as consumed by alice, as requests and as tokens.
func consumedBy(t *testing.T, sim *simulation) (rpm, tpm int64) {
	t.Helper()
	all, err := sim.stored(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	of := func(limit string) int64 {
		return all[accountKey{place{"user-alice", limits.GPT4}, limit}].Consumed / bucket.Milli
	}
	return of(limits.GPT4RPM.String()), of(limits.GPT4TPM.String())
}

// TestStreams: however a stream ends, the buckets have as consumed the prompt and what was streamed of the
// reply, and nothing where nothing came.
func TestStreams(t *testing.T) {
	for name, test := range map[string]struct {
		model    model
		hangUp   time.Duration // 0: never
		status   int           // 0: none came
		body     string        // the last event's data, or all
		rpm, tpm int64
		seen     streams
	}{
		"ends": {
			script(5, nil), 0, 200, done, 1, 2 + 5, streams{whole: 1, sent: 5},
		},
		"breaks off": {
			script(3, errBroken), 0, 200, `{"error":{"message":"The model broke off."}}`, 1, 2 + 3,
			streams{broken: 1, sent: 3},
		},
		"fails before the first token": {
			script(0, errModel), 0, 502, `{"error":{"message":"The model failed."}}`, 0, 0, streams{failed: 1},
		},
		"says nothing": {
			script(0, nil), 0, 200, done, 1, 2, streams{whole: 1},
		},
		"is hung up on": {
			script(5, nil), 250 * time.Millisecond, 200, "", 1, 2 + 2, streams{hungUp: 1, sent: 2},
		},
		"is hung up on before the first token": {
			script(5, nil), 50 * time.Millisecond, 0, "", 1, 2, streams{hungUp: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := bench(t)
				sim.gateways[0].model = test.model
				ctx, hangUp := context.WithCancel(t.Context())
				defer hangUp()
				if test.hangUp > 0 {
					defer time.AfterFunc(test.hangUp, hangUp).Stop()
				}
				status, body := 0, ""
				resp, err := sim.fronts[0].client.Do(chatting(ctx, t, sim.fronts[0]))
				if err == nil {
					var all bytes.Buffer
					status = resp.StatusCode
					_, err = all.ReadFrom(resp.Body)
					body = all.String()
					_ = resp.Body.Close()
				}
				if (err != nil) != (test.hangUp > 0) || status != test.status {
					t.Errorf("status %d, %v", status, err)
				}
				events := strings.Split(strings.TrimSpace(body), "\n\n")
				if last := strings.TrimPrefix(events[len(events)-1], "data: "); err == nil && last != test.body {
					t.Errorf("it ends with %q, want %q", last, test.body)
				}
				if err := sim.close(t.Context()); err != nil {
					// the handler is done, whether somebody waits for it or not
					t.Fatal(err)
				}
				if rpm, tpm := consumedBy(t, sim); rpm != test.rpm || tpm != test.tpm {
					t.Errorf("consumed %d requests and %d tokens, want %d and %d", rpm, tpm, test.rpm, test.tpm)
				}
				if seen := sim.audit.streams(); seen != test.seen {
					t.Errorf("the audit saw %+v, want %+v", seen, test.seen)
				}
				if err := sim.check(t.Context(), new(strings.Builder)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestStalled: a client that stays but stops to read does not hold its reservation for ever.
func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := bench(t)
		sim.gateways[0].model = script(100, nil)
		resp, err := sim.fronts[0].client.Do(chatting(t.Context(), t, sim.fronts[0]))
		if err != nil {
			t.Fatal(err)
		}
		if err := sim.close(t.Context()); err != nil {
			// the handler is done: its client has read nothing, and not hung up
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		seen := sim.audit.streams()
		if _, tpm := consumedBy(t, sim); seen.hungUp != 1 || seen.sent >= 100 || tpm != 2+seen.sent {
			t.Errorf("consumed %d tokens; the audit saw %+v", tpm, seen)
		}
	})
}

// TestSlowUpload: a client that sends its request byte by byte has ten seconds, and is charged nothing. A
// reply may take longer.
func TestSlowUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := bench(t)
		sim.gateways[0].model = script(150, nil) // 15 seconds
		r := chatting(t.Context(), t, sim.fronts[0])
		whole, err := sim.fronts[0].client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := read(whole.Body, 0); n != 150 || err != nil {
			t.Errorf("a reply of 15 seconds: %d tokens, %v", n, err)
		}
		_ = whole.Body.Close()

		began := time.Now()
		body, slow := io.Pipe()
		r = chatting(t.Context(), t, sim.fronts[0])
		r.Body, r.ContentLength = body, 100
		go func() { _, _ = slow.Write([]byte("{")) }()
		resp, err := sim.fronts[0].client.Do(r)
		if took := time.Since(began); err == nil && (resp.StatusCode != http.StatusBadRequest || took != upload) {
			t.Errorf("status %d after %v", resp.StatusCode, took)
		}
		_ = slow.Close()
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if err := sim.close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if rpm, _ := consumedBy(t, sim); rpm != 1 {
			t.Errorf("%d requests are charged, one came whole", rpm)
		}
	})
}

// TestForgetful is the control: handlers that do with a broken stream what they should not are caught, each
// by what was streamed.
func TestForgetful(t *testing.T) {
	for name, broken := range map[string]func(*limits.GPT4Lease, *http.Request){
		"forget it":     func(*limits.GPT4Lease, *http.Request) {},
		"give all back": func(l *limits.GPT4Lease, r *http.Request) { l.Release(r.Context()) },
		"settle for less": func(l *limits.GPT4Lease, r *http.Request) {
			_ = l.Settle(r.Context(), limits.GPT4Cost{TPM: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := bench(t)
				for i, g := range sim.gateways {
					sim.fronts[i].server.Handler = sim.audit.watch(g.handler(func(w http.ResponseWriter, r *http.Request) {
						lease := httplimit.Lease[limits.GPT4Cost](r.Context())
						reply := newStream(w, chatOf(r).Model)
						for text, err := range g.model(r.Context(), chatOf(r)) {
							if err != nil || !reply.send(text) {
								broken(lease, r)
								return
							}
						}
						used := limits.GPT4Usage{Input: tokens(chatOf(r).prompt()), Output: reply.sent}
						reply.end(used, nil)
						_ = lease.Settle(r.Context(), used.Cost())
					}))
				}
				g := sim.gateways[0]
				for _, whole := range []bool{true, false} {
					g.model = script(5, nil)
					ctx, hangUp := context.WithCancel(t.Context())
					if !whole {
						time.AfterFunc(250*time.Millisecond, hangUp)
					}
					resp, err := sim.fronts[0].client.Do(chatting(ctx, t, sim.fronts[0]))
					if err != nil {
						t.Fatal(err)
					}
					_, err = new(bytes.Buffer).ReadFrom(resp.Body)
					_ = resp.Body.Close()
					hangUp()
					time.Sleep(time.Second) //nolint:forbidigo // in a bubble: the handler is done
					var out strings.Builder
					checked := sim.check(t.Context(), &out)
					if whole && (err != nil || checked != nil) {
						t.Errorf("a whole stream: %v, %v\n%s", err, checked, &out)
					}
					if !whole &&
						(err == nil || checked == nil || !strings.Contains(out.String(),
							"check: user-alice on gpt-4, tpm: the table has ")) {
						t.Errorf("a broken stream that was not settled passes: %v, %v\n%s", err, checked, &out)
					}
				}
				if err := sim.close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestSettleFails: the client has its reply all the same, the log has the error, and the check leaves open
// what was charged.
func TestSettleFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := bench(t)
		var log bytes.Buffer
		sim.gateways[0].log, sim.gateways[0].model = slog.New(slog.NewTextHandler(&log, nil)), script(5, nil)
		time.AfterFunc(200*time.Millisecond, func() { sim.wire.cut.Store(true) })
		resp, err := sim.fronts[0].client.Do(chatting(t.Context(), t, sim.fronts[0]))
		if err != nil {
			t.Fatal(err)
		}
		read, err := read(resp.Body, 0)
		if err := errors.Join(err, resp.Body.Close()); err != nil || read != 5 {
			t.Errorf("read %d tokens: %v", read, err)
		}
		sim.wire.cut.Store(false)
		if err := sim.close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), `level=ERROR msg="settle failed" user=alice used=7 error="sluice: `) {
			t.Errorf("the log has %q", &log)
		}
		const reserved = 13/4 + 100
		if rpm, tpm := consumedBy(t, sim); rpm != 1 || tpm != reserved {
			t.Errorf("consumed %d requests and %d tokens, want 1 and %d", rpm, tpm, reserved)
		}
		var out strings.Builder
		err = sim.check(t.Context(), &out)
		const want = "ok: The table charged what passed on the wire, give or take "
		if err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v\n%s", err, &out)
		}
	})
}

// TestRead: a client notices a reply that has not all that it is said to have.
func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		"data: {\"choices\":[{\"delta\":{\"content\":\"a b c\"}}]}\n\ndata: " +
			"{\"usage\":{\"completion_tokens\":3}}\n\ndata: [DONE]\n\n": "3 <nil>",
		"data: {\"choices\":[{\"delta\":{\"content\":\"a b c\"}}]}\n\ndata: " +
			"{\"usage\":{\"completion_tokens\":4}}\n\ndata: [DONE]\n\n": "3 a reply of 4 tokens has 3",
		"data: {\"choices\":[{\"delta\":{\"content\":\"a b\"}}]}\n\ndata: {\"error\":{\"message\":\"broke " +
			"off\"}}\n\n": "2 <nil>",
		": a comment\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a b\"}}]}\n\n": "2 a reply ends after 2 " +
			"tokens without an end",
	} {
		if n, err := read(strings.NewReader(text), 0); fmt.Sprint(n, " ", err) != want {
			t.Errorf("%q: %d %v, want %s", text, n, err, want)
		}
	}
}
