package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/pipenet"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/serve/internal/limits"
	"github.com/sluice-go/sluice/serve/internal/peers"
	"github.com/sluice-go/sluice/serve/internal/server"
)

// schema has limits of all sorts.
const schema = `version: 1
owner: acme
revision: 1
go: {package: limits}
entities:
  org: {}
  user: {parent: org}
resources:
  api:
    limits: {rpm: {capacity: 10, every: 1m, per_call: 1}, tpm: {capacity: 1_000, every: 1m}}
    entities: {user: {}, org: {rpm: {capacity: 100}, tpm: {capacity: 10_000}}}
    on_unavailable: deny
  model:
    limits:
      tpm: {capacity: 100_000, every: 1m, counts: [input, output], kinds: [user]}
      month: {money: USD, capacity: 5, window: month, kinds: [org]}
    usage: {input: {price: 2.50/1M}, output: {price: 10/1M}, call: {price: 0.01}}
    entities: {user: {}, org: {}}
    on_unavailable: deny
  jobs:
    limits: {parallel: {capacity: 2, in_flight: true, per_call: 1}}
    entities: {org: {}}
    on_unavailable: deny
`

// rig is a server on an engine in the process, in a bubble.
type rig struct {
	*testing.T

	engine  *memdynamo.Engine
	file    string
	current *limits.Current
	server  *server.Server
	listen  *pipenet.Listener
	client  *http.Client
	log     *strings.Builder
	stop    context.CancelFunc
	peers   *peers.Peers
}

// bubble runs a test on a rig with a schema.
func bubble(t *testing.T, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memdynamo.New(), "replica")
		test(r)
	})
}

// newRig returns a rig on an engine. It ends with the test.
func newRig(t *testing.T, engine *memdynamo.Engine, replica string) *rig {
	t.Helper()
	r := newRigOn(t, engine)
	r.serve(replica)
	return r
}

// newRigOn is newRig without a server.
func newRigOn(t *testing.T, engine *memdynamo.Engine) *rig {
	t.Helper()
	r := newRigWithout(t)
	r.engine = engine
	_, _ = operator.CreateTable(t.Context(), engine.Client(), "limits") // another rig's may be there
	r.current = newCurrent(r)
	return r
}

// newCurrent returns the limits of r's schema.
func newCurrent(r *rig) *limits.Current {
	r.Helper()
	return limits.NewCurrent(r.open(), func(err error) { r.Error(err) })
}

// newRigWithout returns a rig without a server, on an engine of its own.
func newRigWithout(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, engine: memdynamo.New(), file: filepath.Join(t.TempDir(), "limits.yaml"),
		log: &strings.Builder{}}
	if err := os.WriteFile(r.file, []byte(schema), 0o600); err != nil {
		t.Fatal(err)
	}
	table := operator.Table("limits")
	table.StreamSpecification = nil // the engine would keep all changes in memory
	if _, err := r.engine.Client().CreateTable(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	return r
}

// open opens the schema in r's file.
func (r *rig) open() *limits.Limits {
	r.Helper()
	s, err := limits.Read(r.file)
	if err != nil {
		r.Fatal(err)
	}
	l, err := s.Open(dynamo.New(r.engine.Client(), "limits"), runtime.WithLogger(r.logger()))
	if err != nil {
		r.Fatal(err)
	}
	return l
}

func (r *rig) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r.log, nil)) }

// serve starts the server.
func (r *rig) serve(replica string) {
	r.server = server.New(server.Config{Limits: r.current, Replica: replica, Most: 100,
		Tokens: func() []string { return nil }, Logger: r.logger(), Peers: r.peers})
	r.server.Ready()
	r.listen = pipenet.Listen()
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go r.server.Run(ctx)
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(r.listen, nil) }()
	r.client = &http.Client{Transport: r.listen.Transport()}
	r.Cleanup(func() {
		r.client.CloseIdleConnections()
		if err := r.server.Drain(now()); err != nil {
			r.Error(err)
		}
		stop()
		if err := <-served; err != nil {
			r.Error(err)
		}
	})
}

// now returns a context that has ended: it waits for no lease.
func now() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// answer is what a call got.
type answer struct {
	status int
	header http.Header
	body   string
	Lease  string         `json:"lease"`
	Left   map[string]any `json:"remaining"`
	Ended  string         `json:"ended"`
	// Degraded says that the failure policy has admitted the call.
	Degraded bool   `json:"degraded"`
	Detail   string `json:"detail"`
}

// post calls a path. headers come in pairs.
func (r *rig) post(path, body string, headers ...string) answer {
	r.Helper()
	return r.send(r.Context(), r.client, path, body, headers...)
}

func (r *rig) send(ctx context.Context, client *http.Client, path, body string, headers ...string) answer {
	r.Helper()
	a, err := trySend(ctx, client, path, body, headers...)
	if err != nil {
		r.Fatal(err)
	}
	return a
}

func trySend(
	ctx context.Context, client *http.Client, path, body string, headers ...string,
) (a answer, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://sluice"+path, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	a.status, a.header, a.body = resp.StatusCode, resp.Header, strings.TrimSpace(string(text))
	if strings.HasPrefix(a.body, "{") {
		err = errors.Join(err, json.Unmarshal(text, &a))
	}
	return a, err
}

// want fails unless a call has this status.
func (r *rig) want(a answer, status int) answer {
	r.Helper()
	if a.status != status {
		r.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// acquire takes tokens of user 1 on api.
func (r *rig) acquire(tpm string, headers ...string) answer {
	r.Helper()
	return r.want(r.post("/v1/api/acquire", `{"entity": {"user": "1", "org": "7"}, "cost": {"tpm": `+tpm+`}}`,
		headers...), http.StatusOK)
}

// left returns what user 1 has of a limit on a resource.
func (r *rig) left(resource, entity, limit string) any {
	r.Helper()
	a := r.want(r.post("/v1/"+resource+"/peek", `{"entity": `+entity+`}`), http.StatusOK)
	var snap struct{ Available map[string]any }
	if err := json.Unmarshal([]byte(a.body), &snap); err != nil {
		r.Fatal(err)
	}
	return snap.Available[limit]
}

const user = `{"user": "1", "org": "7"}`

// pass lets time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
