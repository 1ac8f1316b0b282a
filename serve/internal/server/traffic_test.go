package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/pipenet"
	"github.com/sluice-go/sluice/internal/test/traffic"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/serve/internal/limits"
	"github.com/sluice-go/sluice/serve/internal/server"
)

// fleet starts the processes of package traffic as clients of servers.
type fleet struct {
	*testing.T

	shared  bool // all clients have one server, else each has its own
	most    int  // leases that may be open
	clients []*client
}

// served is a server of some clients.
type served struct {
	server  *server.Server
	listen  *pipenet.Listener
	stop    context.CancelFunc
	ended   chan error
	clients int // that are not closed
}

// client is a program that calls a server: a traffic.Process.
type client struct {
	*served

	http *http.Client
	load *traffic.Load

	mu     sync.Mutex
	took   []time.Duration
	failed int // calls, denials included
}

// open is a traffic.Open.
func (f *fleet) open(engine *memdynamo.Engine, load *traffic.Load) (traffic.Process, error) {
	s := &served{}
	if f.shared && len(f.clients) > 0 {
		s = f.clients[0].served
	} else if err := f.start(s, engine, load); err != nil {
		return nil, err
	}
	s.clients++
	t := s.listen.Transport()
	t.MaxIdleConnsPerHost = 20_000
	c := &client{served: s, http: &http.Client{Transport: t}, load: load}
	f.clients = append(f.clients, c)
	if load.Runs > 0 {
		return holder{c}, nil
	}
	return c, nil
}

// start starts a server of a load's schema.
func (f *fleet) start(s *served, engine *memdynamo.Engine, load *traffic.Load) error {
	file := "../../../internal/test/traffic/limits.yaml"
	if load.Runs > 0 {
		file = "../../../gen/testdata/golden/inflight/limits.yaml"
	}
	schema, err := limits.Read(file)
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	opened, err := schema.Open(dynamo.New(engine.Client(), traffic.Table), runtime.WithLogger(log),
		runtime.WithCallDefaults(runtime.OnUnavailable(load.Policy)))
	if err != nil {
		return err
	}
	s.server = server.New(server.Config{
		Replica: fmt.Sprint("replica ", len(f.clients)), Most: f.most, Logger: log,
		Limits: limits.NewCurrent(opened, func(err error) { f.Error(err) }),
		Tokens: func() []string { return nil }})
	s.listen, s.ended = pipenet.Listen(), make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.server.Run(ctx)
	go func() { s.ended <- s.server.Serve(s.listen, nil) }()
	return nil
}

// Acquire implements traffic.Process. The lease stays open until the server ends.
func (c *client) Acquire(ctx context.Context, who traffic.Entity) (traffic.Admission, error) {
	entity := fmt.Sprintf(`{"project": %q}`, who.Project)
	if who.User != "" {
		entity = fmt.Sprintf(`{"user": %q, "project": %q}`, who.User, who.Project)
	}
	began := time.Now()
	a, err := c.call(ctx, "/v1/"+c.load.Resource+"/acquire", `{"entity": `+entity+`}`)
	c.note(time.Since(began), err)
	switch left, _ := a.Left["rps"].(float64); {
	case err != nil || !a.Degraded:
		return traffic.Recorded, err
	case int64(left) < c.load.PerSecond():
		return traffic.ByLocal, nil
	}
	return traffic.ByAllow, nil
}

// call calls the server. It fails with the error of the library that the answer stands for.
func (c *client) call(ctx context.Context, path, body string) (answer, error) {
	a, err := trySend(ctx, c.http, path, body)
	switch {
	case err != nil || a.status == http.StatusOK || a.status == http.StatusNoContent:
		return a, err
	case a.status == http.StatusTooManyRequests:
		return a, &runtime.DeniedError{}
	}
	return a, fmt.Errorf("%d %s", a.status, a.body)
}

// note notes what became of a call that took so long.
func (c *client) note(took time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = append(c.took, took)
	if err != nil {
		c.failed++
	}
}

// Close implements traffic.Process. With its last client, the server ends.
func (c *client) Close(context.Context) error {
	c.http.CloseIdleConnections()
	if c.served.clients--; c.served.clients > 0 {
		return nil
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	err := c.server.Drain(now)
	c.stop()
	return errors.Join(err, <-c.ended)
}

// holder is a client whose calls hold slots: a traffic.Holder. A project is an org.
type holder struct{ *client }

// Hold implements traffic.Holder.
func (h holder) Hold(
	ctx context.Context, who traffic.Entity, wait time.Duration,
) (func(context.Context), error) {
	entity := fmt.Sprintf(`{"org": %q}`, who.Project)
	if who.User != "" {
		entity = fmt.Sprintf(`{"user": %q, "org": %q}`, who.User, who.Project)
	}
	began := time.Now()
	a, err := h.call(ctx, "/v1/calls/acquire", fmt.Sprintf(`{"entity": %s, "wait": %q}`, entity, wait))
	h.note(time.Since(began), err)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		_, _ = h.call(ctx, "/v1/leases/"+a.Lease+"/keep", "") // slots that are not free are counted at the end
	}, nil
}

// Acquire implements traffic.Process: the call takes no time.
func (h holder) Acquire(ctx context.Context, who traffic.Entity) (traffic.Admission, error) {
	end, err := h.Hold(ctx, who, 0)
	if err == nil {
		end(ctx)
	}
	return traffic.Recorded, err
}

// p99 returns the 99th percentile of a client's calls.
func (c *client) p99() time.Duration {
	slices.Sort(c.took)
	return c.took[min(len(c.took)-1, len(c.took)*99/100)]
}

// perClient are the rows whose bars each client has to reach by itself.
var perClient = regexp.MustCompile(`^open: [0-9]+ x [0-9]+/s, \S+ bucket, [0-9]+ ms(, lognormal)?$`)

// inShort are the rows of the usual form: Poisson arrivals of several clients, a lognormal latency, siblings
// of one parent, new entities, and calls in flight.
var inShort = regexp.MustCompile(`^open: 2 x 150/s, small bucket, 10 ms$|` +
	`^open: 16 x 40/s, small bucket, 4 ms, logn|^siblings: 64, 4 x 100/s, hold 3 ms|` +
	`^crowd: 1000 new users|^slots: .* 1.5 asked for$`)

// TestTraffic: what many clients ask of servers reaches the bars of the library, with a server for each
// client, and with one for all.
func TestTraffic(t *testing.T) {
	longform.NoRace(t, "it measures costs; TestSettledOnce and others have callers at once")
	rows := traffic.Rows()
	fast := slices.DeleteFunc(slices.Clone(rows), func(r traffic.Row) bool {
		return !inShort.MatchString(r.Name)
	})
	if longform.Count(t, "loads", len(rows), len(fast)) == len(fast) {
		rows = fast
	}
	for _, row := range rows {
		for _, shared := range []bool{false, true} {
			if shared && row.Load.Processes == 1 {
				continue
			}
			row := row
			if shared {
				row.Bars = ofOne(&row)
			}
			t.Run(fmt.Sprintf("%s, shared %t", row.Name, shared), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if missed := offer(t, &row, &fleet{T: t, shared: shared, most: 1_000_000}); missed != "" {
						t.Error(missed)
					}
				})
			})
		}
	}
}

// ofOne returns the bars of a row for clients that have one server, which is one process of the library.
// There chains that hold slots share their transactions: with these loads, the library in one process has a
// p99 of 7 to 13 round trips, by the arrivals.
func ofOne(row *traffic.Row) []traffic.Bar {
	bars := slices.Clone(row.Bars)
	for i := range bars {
		if row.Load.Runs > 0 && bars[i].Name == "p99, round trips" {
			bars[i].Value = 15
		}
	}
	return bars
}

// TestTrafficCatches: a server that refuses what it should admit misses the bars.
func TestTrafficCatches(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	synctest.Test(t, func(t *testing.T) {
		row := traffic.Rows()[slices.IndexFunc(traffic.Rows(), func(r traffic.Row) bool {
			return inShort.MatchString(r.Name)
		})]
		missed := offer(t, &row, &fleet{T: t, shared: true, most: 1_000})
		if !strings.Contains(missed, "% failed, want") || !strings.Contains(missed, "of the worst client") {
			t.Errorf("it misses %q", missed)
		}
	})
}

// offer offers a row's load, and returns the bars that are missed: "" if none is.
func offer(t *testing.T, row *traffic.Row, f *fleet) (missed string) {
	t.Helper()
	result, err := traffic.Run(t.Context(), row.Load, f.open)
	if err != nil {
		t.Fatal(err)
	}
	var worst, most time.Duration = 0, 6 * row.Load.RoundTrip()
	failed := 0
	for _, c := range f.clients {
		worst, failed = max(worst, c.p99()), max(failed, c.failed)
	}
	if row.Load.Sigma > 0 { // 3 are the bar of all; one client has but a few hundred calls
		most = 4 * row.Load.BareP99()
	}
	own := fmt.Sprintf("of the worst client: p99 %v, %d failed", worst, failed)
	t.Log(result, own)
	if missed = row.Missed(result); perClient.MatchString(row.Name) && (worst > most || failed > 0) {
		missed += fmt.Sprintf("; %s, want %v, 0 failed", own, most)
	}
	return missed
}
