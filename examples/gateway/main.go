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
// -endpoint or -region it is another one, with the credentials of AWS's variables.
//
// The program draws how each tenant's calls are answered, and prints a sentence for each check that holds.
// The table's consumption equals, token by token, what an audit that knows nothing of leases saw on the wire
// (audit.go). A project's consumption is that of its users, and an org's budget has what the model's
// provider bills (bill.go). No bucket gives out more than it has. At the model (provider.go), never more
// calls of a key run at once than the key has slots. On the engine in the process, the cost that calls
// report is what it billed. If a check fails, so does the program. With -v it also prints tables of what
// each tenant got, and what that cost.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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
	verbose                 bool
}

// errInterrupted is a Ctrl-C before there was any traffic.
var errInterrupted = errors.New("interrupted")

// Exit codes besides 0.
const (
	exitFailure     = 1
	exitUsage       = 2 // flag's own, too
	exitInterrupted = 130
)

func main() { os.Exit(start(os.Args[1:], tcp)) }

// start runs the program on the network at an address, and returns its exit code.
func start(args []string, at func(address string) network) int {
	s, err := parse(flag.NewFlagSet("gateway", flag.ExitOnError), args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	err = run(ctx, s, at(cmp.Or(s.serve, "127.0.0.1:0")),
		display{os.Stdout, drawsOn(os.Stdout)})
	stop()
	switch {
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(os.Stderr, "gateway:", err)
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(os.Stderr, "gateway:", err)
		return exitFailure
	}
	return 0
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
	flags.BoolVar(&s.verbose, "v", false,
		"print the tables of buckets, of calls to DynamoDB and of latencies too")
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
func run(ctx context.Context, s settings, on network, out display) (err error) {
	starting := true
	defer func() {
		if err != nil && starting && ctx.Err() != nil {
			err = errInterrupted // whatever it broke off
		}
	}()
	client, engine, wire, err := connect(s)
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
		done := sim.board.show(out)
		sim.run(ctx)
		done()
		_, _ = fmt.Fprint(out, "\n", strings.Join(sim.board.answers(), "\n"), "\n\n")
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
	var embedders []string
	for i := range s.tenants {
		if t := &s.tenants[i]; t.embeds {
			embedders = append(embedders, t.name)
		}
	}
	_, _ = fmt.Fprintf(out,
		"%d tenants call %d gateways over HTTP, which share only the table. %s call embeddings.\n",
		len(s.tenants), len(s.fronts), strings.Join(embedders, " and "))
	_, _ = fmt.Fprintf(out, "An override leaves project lab %s of 100,000 tpm.", texttable.Count(labTPM))
	if s.engine != nil {
		o := outageOf(s.duration)
		_, _ = fmt.Fprintf(out, " From %v to %v the table is down.", o.from, o.until)
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
func connect(s settings) (*dynamodb.Client, *memdynamo.Engine, *wire, error) {
	if s.endpoint != "" || s.region != "" {
		client, err := remote(s)
		return client, nil, nil, err
	}
	engine := memdynamo.New(memdynamo.WithSeed(s.seed))
	engine.Faults().Latency(oneWay())
	// AWS takes its time as well; a bucket that is deleted takes along what was consumed
	engine.Faults().TTLLag(time.Hour)
	wire := &wire{next: engine.HTTPClient()}
	return engine.Client(func(o *dynamodb.Options) { o.HTTPClient = wire }), engine, wire, nil
}

// remote returns a client of a DynamoDB elsewhere. It reads AWS's variables alone: reading profiles and
// roles, as AWS's config package does, would make the demo's first build a tenth longer.
func remote(s settings) (*dynamodb.Client, error) {
	keys := aws.Credentials{
		AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
	}
	o := dynamodb.Options{Region: cmp.Or(s.region, os.Getenv("AWS_REGION"), "us-east-1")}
	switch u, err := url.Parse(s.endpoint); {
	case s.endpoint == "" && !keys.HasKeys():
		return nil, errors.New("no credentials of AWS: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, as " +
			"`aws configure export-credentials --format env` prints them")
	case s.endpoint == "":
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("-endpoint %q is not a URL: pass one such as http://localhost:8000", s.endpoint)
	default:
		o.BaseEndpoint = &s.endpoint
		if !keys.HasKeys() { // an emulator takes any
			keys.AccessKeyID, keys.SecretAccessKey = "local", "local"
		}
	}
	o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return keys, nil
	})
	return dynamodb.New(o), nil
}
