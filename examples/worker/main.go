// Command worker is workers that wait for their turn: jobs of several tenants, within a share for each and a
// limit for all.
//
//	go run ./examples/worker
//
// The worker is worker.go: it Waits for a job's units, runs the job, and settles for what it has used. A job
// that fails gives its units back. A job whose turn would come too late is refused as soon as that is clear
// (runtime.MaxWait). The workers stop after 8 seconds or by Ctrl-C. Jobs that have begun are then completed;
// waiting jobs are dropped and cost nothing. limits.yaml gives each tenant its share, and the fleet less than
// the shares together: a greedy tenant cannot take what is another's. DynamoDB is the engine in this process.
//
// The program draws what each worker did and what the fleet spent, and prints the totals. It fails if the
// table has not as consumed what the jobs say that they used, or if that is more than the limits give.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-go/sluice/examples/worker/limits"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintf(os.Stderr, "worker: unexpected argument %q: it takes none\n", os.Args[1])
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// table is where the buckets are.
const table = "rate_limits"

// open is how long the workers take jobs.
const open = 8 * time.Second

// run has the workers work until it is time, or ctx ends, and prints what they did.
func run(ctx context.Context, out io.Writer) (err error) {
	// Stopped is cancelled, which is no deadline: Wait would refuse at once what cannot begin before a deadline.
	stopped, stop := context.WithCancel(ctx)
	defer stop()
	defer time.AfterFunc(open, stop).Stop()
	ctx = context.WithoutCancel(ctx) // what is to be done after that

	client := memdynamo.New().Client() // in production: dynamodb.NewFromConfig
	if _, err := operator.CreateTable(ctx, client, table); err != nil {
		return err
	}
	lim, err := limits.New(dynamo.New(client, table))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lim.Close(ctx)) }()
	if err := lim.Check(ctx); err != nil { // before work begins: the table is there and right, the clock is too
		return err
	}

	cast := tenants()
	if _, err := fmt.Fprintf(out, "%d tenants with %d workers each; after %v the workers stop\n\n", len(cast),
		each, open); err != nil {
		return err
	}
	s := newShift(stopped, lim.Jobs, cast)
	accounts, err := s.accounts(ctx, client, lim.Jobs)
	if err != nil {
		return err
	}
	var text strings.Builder
	err = s.report(&text, accounts)
	_, failed := io.WriteString(out, text.String())
	return errors.Join(err, failed)
}
