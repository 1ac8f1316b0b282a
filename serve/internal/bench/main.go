// Command bench measures what the server adds to the same calls in Go, in one run. Both call the engine in
// the process with a round trip of 4 ms, by the client that sluice-serve has. The two ways take turns. All is
// in one process: its garbage collections, spaced as in sluice-serve, delay both. The difference includes the
// sockets and the client of HTTP.
//
//	go run ./internal/bench
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	goruntime "runtime"
	"runtime/metrics"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/lean"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/serve/internal/limits"
	"github.com/sluice-go/sluice/serve/internal/process"
	"github.com/sluice-go/sluice/serve/internal/server"
	"github.com/sluice-go/sluice/serve/internal/telemetry"
)

const schema = `version: 1
owner: bench
revision: 1
go: {package: limits}
entities: {user: {}}
resources:
  api:
    limits: {rpm: {capacity: 500_000_000, every: 1m, per_call: 1}, tpm: {capacity: 500_000_000, every: 1m}}
    entities: {user: {}}
    on_unavailable: deny
  scarce:
    limits: {rpd: {capacity: 1, every: 1d}}
    entities: {user: {}}
    on_unavailable: deny
`

func main() {
	rate := flag.Int("rate", 5000, "calls in a second")
	keys := flag.Int("keys", 100, "users that call")
	span := flag.Duration("for", 10*time.Second, "duration of each measurement")
	open := flag.Int("leases", 100_000, "leases that are open at once")
	flag.Parse()
	if err := run(*rate, *keys, *open, *span); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bed is a server and a limiter of the same schema on one table.
type bed struct {
	engine  *memdynamo.Engine
	limits  *limits.Limits // what Go services have
	server  *server.Server
	address string
}

// newBed returns a bed whose store has a round trip.
func newBed(ctx context.Context, trip time.Duration, leases int) (*bed, error) {
	file, err := os.CreateTemp("", "limits-*.yaml")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if _, err := file.WriteString(schema); err != nil {
		return nil, err
	}
	b := &bed{engine: memdynamo.New()}
	table := operator.Table("limits")
	table.StreamSpecification = nil // the engine would keep all changes in memory
	if _, err := b.engine.Client().CreateTable(ctx, table); err != nil {
		return nil, err
	}
	if trip > 0 {
		b.engine.Faults().Latency(memdynamo.Constant(trip / 2))
	}
	s, err := limits.Read(file.Name())
	if err != nil {
		return nil, err
	}
	measured, err := telemetry.New(ctx, "")
	if err != nil {
		return nil, err
	}
	client := lean.New(aws.Config{ // as sluice-serve has it
		Region: "us-east-1", HTTPClient: b.engine.HTTPClient(),
		Credentials: credentials.NewStaticCredentialsProvider("bench", "bench", ""),
	})
	open := func() (*limits.Limits, error) {
		return s.Open(dynamo.New(client, "limits"), runtime.WithObserver(measured.Observer))
	}
	if b.limits, err = open(); err != nil {
		return nil, err
	}
	served, err := open()
	if err != nil {
		return nil, err
	}
	b.server = server.New(server.Config{
		Limits: limits.NewCurrent(served, func(error) {}), Replica: "bench", Most: leases,
		Measure: measured.Request,
		Tokens:  func() []string { return nil }, Logger: slog.New(slog.DiscardHandler),
	})
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b.address = l.Addr().String()
	go b.server.Run(ctx)
	go func() { _ = b.server.Serve(l, nil) }() // it ends with the process
	return b, nil
}

func run(rate, keys, open int, span time.Duration) error {
	ctx := context.Background()
	defer process.SpaceCollections()() // as sluice-serve does
	b, err := newBed(ctx, 4*time.Millisecond, 10_000_000)
	if err != nil {
		return err
	}
	if err := b.added(ctx, rate, keys, span); err != nil {
		return err
	}
	if err := b.hot(span); err != nil {
		return err
	}
	if err := b.denials(span); err != nil {
		return err
	}
	return memory(ctx, open)
}

// heap returns the bytes of live objects.
func heap() uint64 {
	goruntime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
