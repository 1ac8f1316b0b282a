package envoy_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluice-go/sluice/internal/test/pipenet"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/serve/internal/envoy"
	"github.com/sluice-go/sluice/serve/internal/leases"
	"github.com/sluice-go/sluice/serve/internal/limits"
)

// schema has limits of all sorts.
const schema = `version: 1
owner: acme
revision: 1
go: {package: limits}
entities:
  org: {}
  key: {parent: org}
  ip: {}
resources:
  model:
    limits:
      tpm: {capacity: 5_000, every: 1m, counts: [input, output]}
      month: {money: USD, capacity: 50, window: month, kinds: [org]}
    usage: {input: {price: 2.50/1M}, output: {price: 10/1M}}
    entities: {key: {}, org: {tpm: {capacity: 50_000}}}
    on_unavailable: deny
  address:
    limits:
      rps: {capacity: 3, every: 1s, per_call: 1}
      hours: {capacity: 100, window: 5h, starts: first_use, per_call: 1}
    entities: {ip: {}}
    on_unavailable: allow
  jobs:
    limits: {parallel: {capacity: 2, in_flight: true, per_call: 1}}
    entities: {org: {}}
    on_unavailable: deny
  gateway:
    names: catalog
    limits:
      rpm: {capacity: 2, every: 1m, per_call: 1}
      month: {money: USD, capacity: 5, window: month, all_names: true}
    usage: {output: {price: 10/1M}}
    entities: {org: {}}
    on_unavailable: allow
`

// rules are those of the examples in the documents, and some more.
const rules = `domain: gateway
rules:
  - match: {phase: done, lease: "*"}
    settle: {lease: "{lease}", usage: {output: hits}}
  - match: {phase: end, lease: "*"}
    settle: {lease: "{lease}"}
  - match: {model: "*", key: "*", org: "*"}
    acquire: {resource: model, entity: {key: "{key}", org: "{org}"}, usage: {output: hits}}
  - match: {cost: "*", key: "*", org: "*"}
    acquire: {resource: model, entity: {key: "{key}", org: "{org}"}, cost: {tpm: hits, month: 0.5}}
  - match: {org: "*", job: "yes"}
    acquire: {resource: jobs, entity: {org: "{org}"}}
  - match: {remote_address: "*"}
    acquire: {resource: address, entity: {ip: "{remote_address}"}}
unmatched: allow
`

// rig is a service on an engine in the process, and a client of it, in a bubble.
type rig struct {
	*testing.T

	engine  *memdynamo.Engine
	schema  *limits.Schema
	current *limits.Current
	both    *envoy.Current
	leases  *leases.Holder
	listen  *pipenet.Listener
	conn    *grpc.ClientConn
	client  ratelimit.RateLimitServiceClient
	drain   context.CancelFunc
	log     strings.Builder

	mu     sync.Mutex
	counts map[envoy.Outcome]int
}

// options are what differs between rigs.
type options struct {
	rules  string
	leases int
	tokens []string
	count  func(envoy.Outcome) // is called for each outcome; it may be nil
}

// bubble runs a test on a rig.
func bubble(t *testing.T, o options, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, engine: memdynamo.New(), counts: map[envoy.Outcome]int{}}
		r.start(o)
		test(r)
	})
}

func (r *rig) start(o options) {
	r.Helper()
	if o.rules == "" {
		o.rules = rules
	}
	if o.leases == 0 {
		o.leases = 1_000
	}
	if _, err := operator.CreateTable(r.Context(), r.engine.Client(), "limits"); err != nil {
		r.Fatal(err)
	}
	var err error
	if r.schema, err = readSchema(r.T); err != nil {
		r.Fatal(err)
	}
	r.current = limits.NewCurrent(r.open(), func(err error) { r.Error(err) })
	r.both = envoy.NewCurrent(r.current, r.rules(o.rules))
	r.leases = leases.New(leases.NewNames("replica"), o.leases)
	draining, drain := context.WithCancel(context.Background())
	r.drain = drain
	s := &envoy.Service{Config: envoy.Config{Current: r.both, Leases: r.leases, LeaseLife: 10 * time.Minute,
		Logger: slog.New(slog.NewTextHandler(&r.log, nil)), Draining: draining,
		Count: func(_ context.Context, what envoy.Outcome) {
			if o.count != nil {
				o.count(what)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.counts[what]++
		}}}
	server := envoy.NewServer(s, nil, func() []string { return o.tokens })
	r.listen = pipenet.Listen()
	served := make(chan error, 1)
	go func() { served <- server.Serve(buffered{r.listen}) }()
	running, stop := context.WithCancel(context.Background())
	go r.leases.Run(running)
	r.conn = dial(r.T, r.listen)
	r.client = ratelimit.NewRateLimitServiceClient(r.conn)
	r.Cleanup(func() {
		drain()
		_ = r.conn.Close()
		server.End(context.Background())
		stop()
		if err := errors.Join(<-served, r.current.Close(context.Background())); err != nil {
			r.Error(err)
		}
	})
}

// buffered accepts connections whose writes do not wait for the other side.
type buffered struct{ net.Listener }

func (b buffered) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return pipenet.Buffered(c), nil
}

// dial connects to a service.
func dial(t *testing.T, l *pipenet.Listener, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := l.Dial(ctx)
			if err != nil {
				return nil, err
			}
			return pipenet.Buffered(c), nil
		}))
	conn, err := grpc.NewClient("passthrough:///pipe", opts...)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// readSchema reads schema.
func readSchema(t testing.TB) (*limits.Schema, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(file, []byte(schema), 0o600); err != nil {
		t.Fatal(err)
	}
	return limits.Read(file)
}

// open opens the limits of the schema.
func (r *rig) open() *limits.Limits {
	r.Helper()
	l, err := r.schema.Open(dynamo.New(r.engine.Client(), "limits"))
	if err != nil {
		r.Fatal(err)
	}
	return l
}

func (r *rig) rules(text string) *envoy.Rules {
	r.Helper()
	all, err := readRules(r.T, text, r.schema)
	if err != nil {
		r.Fatal(err)
	}
	return all
}

func readRules(t testing.TB, text string, schema *limits.Schema) (*envoy.Rules, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return envoy.Read(file, schema)
}

// descriptor returns one of keys and values in turn.
func descriptor(pairs ...string) *common.RateLimitDescriptor {
	d := &common.RateLimitDescriptor{}
	for i := 0; i < len(pairs); i += 2 {
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return d
}

// hits returns d with hits of its own.
func hits(n uint64, d *common.RateLimitDescriptor) *common.RateLimitDescriptor {
	d.HitsAddend = wrapperspb.UInt64(n)
	return d
}

// model is a descriptor of a call of key 1 of org 7, with hits.
func model(n uint64) *common.RateLimitDescriptor {
	return hits(n, descriptor("model", "m", "key", "1", "org", "7"))
}

// done is the descriptor that settles leases at n.
func done(lease string, n uint64) *common.RateLimitDescriptor {
	return hits(n, descriptor("phase", "done", "lease", lease))
}

func address(ip string) *common.RateLimitDescriptor { return descriptor("remote_address", ip) }

// try sends a request.
func (r *rig) try(all ...*common.RateLimitDescriptor) (*ratelimit.RateLimitResponse, error) {
	return r.client.ShouldRateLimit(r.Context(),
		&ratelimit.RateLimitRequest{Domain: "gateway", Descriptors: all})
}

const (
	ok   = ratelimit.RateLimitResponse_OK
	over = ratelimit.RateLimitResponse_OVER_LIMIT
)

// want sends a request whose answer has this code.
func (r *rig) want(
	code ratelimit.RateLimitResponse_Code, all ...*common.RateLimitDescriptor,
) *ratelimit.RateLimitResponse {
	r.Helper()
	a, err := r.try(all...)
	if err != nil {
		r.Fatal(err)
	}
	if a.OverallCode != code || len(a.Statuses) != len(all) {
		r.Fatalf("%v with %d statuses, want %v: %v", a.OverallCode, len(a.Statuses), code, a)
	}
	return a
}

// fails sends a request that has to fail with this code and text.
func (r *rig) fails(code codes.Code, text string, all ...*common.RateLimitDescriptor) {
	r.Helper()
	_, err := r.try(all...)
	if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), text) {
		r.Errorf("%v, want %v %q", err, code, text)
	}
}

// meta returns a field of the dynamic metadata.
func meta(a *ratelimit.RateLimitResponse, name string) string {
	return a.GetDynamicMetadata().GetFields()[name].GetStringValue()
}

// left returns what key 1 has of tpm.
func (r *rig) left() int64 {
	r.Helper()
	in := r.current.Use()
	defer in.Drop()
	on, err := in.Resource("model")
	if err != nil {
		r.Fatal(err)
	}
	e, err := on.Entity([]limits.ID{{Kind: "key", ID: "1"}, {Kind: "org", ID: "7"}})
	if err != nil {
		r.Fatal(err)
	}
	snap, err := on.Peek(r.Context(), e)
	if err != nil {
		r.Fatal(err)
	}
	return snap.Available[0]
}

// counted fails unless outcomes were counted so often.
func (r *rig) counted(want map[envoy.Outcome]int) {
	r.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for what, n := range want {
		if r.counts[what] != n {
			r.Errorf("%s was counted %d times, want %d: %v", what, r.counts[what], n, r.counts)
		}
	}
}
