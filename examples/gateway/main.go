// Command gateway simulates an LLM gateway: tenants of different manners call models through gateway processes that share
// rate limits in one DynamoDB table. A call reserves the tokens it may need and settles what it used.
//
// It starts DynamoDB Local unless -endpoint or -region names another DynamoDB, where AWS's usual variables and profiles
// apply. It ends with what each tenant got, what that cost, and a check: what the table says was consumed is what the
// program settled. If that fails, so does the program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/awsclient"
	"github.com/sluice-go/sluice/internal/dynamolocal"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

// settings are the flags.
type settings struct {
	endpoint, region, table string
	duration                time.Duration
	seed                    uint64
}

func main() {
	var s settings
	flag.StringVar(&s.endpoint, "endpoint", "", "`URL` of a DynamoDB to use instead of starting one")
	flag.StringVar(&s.region, "region", "", "AWS `region` to use instead of starting a DynamoDB")
	flag.StringVar(&s.table, "table", "rate_limits", "`name` of the table, which is created if it is not there")
	flag.DurationVar(&s.duration, "for", 18*time.Second, "how long there is traffic")
	flag.Uint64Var(&s.seed, "seed", 1, "seed of the traffic")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	err := run(ctx, s, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

// run brings up the table and the simulation, and prints how it went.
func run(ctx context.Context, s settings, out *os.File) (err error) {
	client, stop, err := connect(ctx, s, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if _, err := dynamo.CreateTable(ctx, client, s.table); err != nil {
		return err
	}
	if err := warmUp(ctx, client, s.table); err != nil {
		return err
	}
	sim, err := newSimulation(ctx, client, s)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%d tenants call through %d gateway processes for %v (seed %d)\n\n", len(sim.tenants), processes, s.duration, s.seed)
	progress := showProgress(out, sim.meter, s.duration)
	sim.run(ctx)
	progress()

	// Ctrl-C ends the traffic; what was charged is still accounted for.
	ctx = context.WithoutCancel(ctx)
	if err := sim.close(ctx); err != nil {
		return err
	}
	return sim.report(ctx, out)
}

// connect returns a client and what to call when it is no longer needed.
func connect(ctx context.Context, s settings, out io.Writer) (client *dynamodb.Client, stop func() error, err error) {
	if s.endpoint != "" || s.region != "" {
		client, err = awsclient.New(ctx, s.endpoint, s.region)
		return client, func() error { return nil }, err
	}
	_, _ = fmt.Fprintln(out, "starting DynamoDB Local")
	server, err := dynamolocal.Start(ctx, dynamolocal.Options{})
	if err != nil {
		return nil, nil, err
	}
	return server.Client(), server.Stop, nil
}
