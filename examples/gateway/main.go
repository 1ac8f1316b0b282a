// Command gateway is an LLM gateway and, unless it is to serve, its clients: tenants of different manners
// call models. Three gateways, each with a limiter and a cache of its own, stand for three processes that
// share rate limits in one DynamoDB table.
//
//	go run ./examples/gateway                 what `make demo` runs
//	go run ./examples/gateway -serve :8080    serves until Ctrl-C
//
// They are spoken to over HTTP, as OpenAI is: POST /v1/chat/completions streams its replies as server-sent
// events. A call of a user reserves the tokens it may need, from the user's bucket and its project's or from
// neither. It settles for what was streamed, also if the model broke off or the client hung up. A denied call
// gets a 429 with Retry-After and OpenAI's x-ratelimit-* headers. All of that is in gateway.go, and the
// OpenAI protocol in openai.go and stream.go.
//
// The DynamoDB is the engine in this process, with the latency of a network and an outage half way. With
// -endpoint or -region it is another one, and AWS's usual variables and profiles apply.
//
// The program ends with what each tenant got, what that cost, and its checks. The table's consumption equals,
// token by token, what an audit that knows nothing of leases saw on the wire (audit.go). A project's
// consumption is that of its users. On the engine in the process, the cost that calls report is what it
// billed. If a check fails, so does the program.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/tool/awsclient"
	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// settings are the flags.
type settings struct {
	endpoint, region, table string
	serve                   string // an address; "": simulate
	duration                time.Duration
	seed                    uint64
}

// errInterrupted is a Ctrl-C before there was any traffic.
var errInterrupted = errors.New("interrupted")

// Exit codes besides 0 and that of flag's, 2.
const (
	exitFailure     = 1
	exitInterrupted = 130
)

func main() {
	s, err := parse(flag.NewFlagSet("gateway", flag.ExitOnError), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	err = run(ctx, s, tcp(cmp.Or(s.serve, "127.0.0.1:0")), os.Stdout)
	stop()
	switch {
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(exitInterrupted)
	case err != nil:
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(exitFailure)
	}
}

// parse reads the flags. There are no other arguments.
func parse(flags *flag.FlagSet, args []string) (settings, error) {
	var s settings
	flags.StringVar(&s.endpoint, "endpoint", "", "`URL` of a DynamoDB to use instead of the one in the process")
	flags.StringVar(&s.region, "region", "", "AWS `region` to use instead of the DynamoDB in the process")
	flags.StringVar(&s.table, "table", "rate_limits", "`name` of the table, which is created if it is not there")
	flags.StringVar(&s.serve, "serve", "",
		"`address` to serve at until Ctrl-C, such as :8080, instead of simulating")
	flags.DurationVar(&s.duration, "for", 18*time.Second, "how long there is traffic")
	flags.Uint64Var(&s.seed, "seed", 1, "seed of the traffic")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q: run with -help for the flags", flags.Arg(0))
	}
	if s.duration <= 0 {
		return s, fmt.Errorf("-for %v: want more than 0", s.duration)
	}
	return s, nil
}

// processes is how many gateways there are.
func (s settings) processes() int {
	if s.serve != "" {
		return 1
	}
	return simulated
}

// run brings up the table and the gateways, serves or simulates, and prints how it went.
func run(ctx context.Context, s settings, on network, out *os.File) (err error) {
	starting := true
	defer func() {
		if err != nil && starting && ctx.Err() != nil {
			err = errInterrupted // whatever it broke off
		}
	}()
	client, engine, wire, err := connect(ctx, s, out)
	if err != nil {
		return err
	}
	if _, err := operator.CreateTable(ctx, client, s.table); err != nil {
		return err
	}
	sim, err := newSimulation(ctx, client, on, s)
	if err != nil {
		return err
	}
	sim.engine, sim.wire = engine, wire
	if engine != nil {
		engine.ResetConsumed()
	}
	starting = false
	if s.serve != "" {
		sim.invite(out)
		<-ctx.Done()
	} else {
		sim.introduce(out)
		progress := showProgress(out, sim.meter, s.duration)
		sim.run(ctx)
		progress()
	}

	// Ctrl-C ends the traffic; what was charged is still accounted for.
	ctx = context.WithoutCancel(ctx)
	if err := sim.close(ctx); err != nil {
		return err
	}
	return sim.report(ctx, out)
}

// introduce says what is to come.
func (s *simulation) introduce(out io.Writer) {
	_, _ = fmt.Fprintf(out,
		"%d tenants call through %d gateways that share nothing but the table, as %d processes do (%v, seed %d)\n",
		len(s.tenants), len(s.fronts), len(s.fronts), s.duration, s.seed)
	_, _ = fmt.Fprintf(out,
		"a user's call charges its project too; an override leaves project lab %s of 100,000 tpm\n",
		texttable.Count(labTPM))
	if s.engine != nil {
		o := outageOf(s.duration)
		_, _ = fmt.Fprintf(out,
			"from %v to %v nothing answers: on_unavailable is local for gpt-4, allow for embeddings\n", o.from,
			o.until)
	}
	_, _ = fmt.Fprintln(out)
}

// invite says what to send.
func (s *simulation) invite(out io.Writer) {
	_, _ = fmt.Fprintf(out, `serving at %s until Ctrl-C; keys are`, s.fronts[0].url)
	for i := range s.tenants {
		_, _ = fmt.Fprint(out, " ", s.tenants[i].apiKey())
	}
	_, _ = fmt.Fprintf(out, "\n\n  curl -iN %s/v1/chat/completions -H 'Authorization: Bearer sk-alice' \\\n"+
		`    -d '{"model": "gpt-4", "stream": true, "messages": [{"role": "user", "content": "say something"}]}'`+
		"\n\n", s.fronts[0].url)
}

// oneWay is how long requests and replies of the engine in the process travel. With 2 ms, of which one in a
// hundred takes 4, a round trip is about DynamoDB's within a region.
func oneWay() memdynamo.Distribution { return memdynamo.LogNormal(2*time.Millisecond, 0.3) }

// connect returns a client of the DynamoDB that the settings name, and the engine and the wire to it if that
// is the one in the process.
func connect(
	ctx context.Context, s settings, out io.Writer,
) (*dynamodb.Client, *memdynamo.Engine, *wire, error) {
	if s.endpoint != "" || s.region != "" {
		client, err := awsclient.New(ctx, s.endpoint, s.region)
		return client, nil, nil, err
	}
	_, _ = fmt.Fprintln(out,
		"DynamoDB is the engine in this process; a round trip to it takes 4 ms, more or less")
	engine := memdynamo.New(memdynamo.WithSeed(s.seed))
	engine.Faults().Latency(oneWay())
	// AWS takes its time as well; a bucket that is deleted takes along what was consumed
	engine.Faults().TTLLag(time.Hour)
	wire := &wire{next: engine.HTTPClient()}
	return engine.Client(func(o *dynamodb.Options) { o.HTTPClient = wire }), engine, wire, nil
}
