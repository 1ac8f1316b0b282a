package aggregate

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/usage"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

type Command struct {
	connect.TableOnly

	Once      bool          `help:"Count what the stream has by now, and end."`
	Poisoned  *string       `placeholder:"FILE" help:"Append records that cannot be read to this file, each as JSON on a line. The default is stderr."`
	KeepHours string        `default:"35d" help:"How long windows of an hour are kept after they end, 24h or more."`
	KeepDays  string        `default:"400d" help:"How long windows of a day are kept after they end, 24h or more."`
	Idle      time.Duration `default:"1s" help:"How long to wait before a shard that had few records or none is asked again, 1ms or more: what comes meanwhile is counted together, which costs less. AWS answers 5 times a second."`
	JSON      bool          `name:"json" help:"Print what it came to as JSON."`
}

// Help says how it is run.
func (Command) Help() string {
	return `What the table's stream says was consumed is added up in windows of the same table, by entity, resource and limit, for each hour and each day. sluice usage shows them.

It runs until Ctrl-C or SIGTERM, may be killed at any time, and goes on where it was; every record counts once. Run one for a table: a second one beside it does no harm, and costs the same again. Not beside a Lambda function that adds up the same stream: each would count everything.

A stream keeps records for 24 hours. What it may have lost while nothing read it is said.

The exit code is 1 if a record could not be read, or records may be lost.

Example: sluice aggregate --table rate_limits --poisoned poisoned.jsonl`
}

// Run counts until ctx ends, or all that there is, and says what it came to. It needs no schema: images have the limits' names.
func (c Command) Run(ctx context.Context, p program.Env) error {
	keep, err := c.check()
	if err != nil {
		return err
	}
	client, streams, err := c.WithStreams(ctx)
	if err != nil {
		return err
	}
	if err := c.answers(ctx, client, streams); err != nil {
		return err
	}
	began := p.Now()
	progress := newProgress(p.Stderr, term.IsTerminal(p.Stderr), p.Now)
	aside, err := openDeadLetters(c.Poisoned, progress)
	if err != nil {
		return err
	}
	windows := &windowCounter{API: client}
	aggregator, err := usage.New(usage.Config{
		Client: windows, Table: c.Table, Keep: keep, Poisoned: aside.put,
		Extract: func(rec codec.Record) ([]codec.Delta, error) {
			if rec.Bucket() == "" {
				return nil, nil
			}
			return rec.Deltas() // of all limits that the bucket has
		},
	})
	if err != nil {
		return errors.Join(err, aside.close())
	}
	poller, err := poll.New(poll.Config{
		Client: client, Streams: streams, Table: c.Table, Aggregator: aggregator, Clock: p.Clock(), Idle: c.Idle,
		Report: progress.report, Logger: slog.New(slog.NewTextHandler(progress, nil)),
	})
	if err != nil {
		return errors.Join(err, aside.close())
	}
	follow := poller.Run
	if c.Once {
		follow = poller.Drain
	}
	failed := follow(ctx)
	failed = errors.Join(c.stopped(ctx, client, failed), aside.close())
	now := progress.end()
	if failed != nil && now.Records == 0 { // it was over before it began
		return failed
	}
	came := summary{
		Table: c.Table, Records: now.Records, Counted: now.Counted, Windows: windows.n.Load(), Poisoned: aside.n.Load(), Lost: now.Lost,
		Behind: now.Behind.Seconds(), Seconds: p.Now().Sub(began).Seconds(),
	}
	if err := came.show(p, c.JSON); err != nil {
		return err
	}
	return errors.Join(failed, came.wrong(aside.where))
}

// check holds the flags against what there can be.
func (c Command) check() (map[usage.Span]time.Duration, error) {
	keep := map[usage.Span]time.Duration{}
	for _, k := range []struct {
		flag, text string
		span       usage.Span
	}{{"--keep-hours", c.KeepHours, usage.Hour}, {"--keep-days", c.KeepDays, usage.Day}} {
		d, why := format.ParseAge(k.text)
		if why == "" && d < usage.LeastKeep {
			why = "is too short: a stream goes back for 24h, and what it delivers again has to find its window"
		}
		if why != "" {
			return nil, program.Usagef("%s: period %q %s", k.flag, k.text, why)
		}
		keep[k.span] = d
	}
	switch {
	case c.Poisoned != nil && *c.Poisoned == "":
		return nil, program.Usagef("--poisoned is empty: pass a FILE")
	case c.Idle < time.Millisecond:
		return nil, program.Usagef("--idle %v: want 1ms or more", c.Idle)
	}
	return keep, nil
}

// answers finds out whether anybody is there. Later on a service that does not answer is waited for; one that never did is a
// mistake in the command line. What an answer means is for the poller to say, and so is what Ctrl-C does.
func (c Command) answers(ctx context.Context, client *dynamodb.Client, streams *dynamodbstreams.Client) error {
	name, _ := operator.TableName(c.Table)
	_, err := streams.ListStreams(ctx, &dynamodbstreams.ListStreamsInput{TableName: &name, Limit: aws.Int32(1)})
	if _, answer := errors.AsType[smithy.APIError](err); err != nil && !answer && ctx.Err() == nil {
		return connect.ExplainStreams(client, streams, operator.CallError(c.Table, err))
	}
	return nil
}

// stopped is what a run's end means: Ctrl-C is how one ends that counts until then, and cuts the other short.
func (c Command) stopped(ctx context.Context, client *dynamodb.Client, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errors.New("interrupted; run the same command again: it goes on where this run was")
	}
	return connect.Explain(client, err)
}

// windowCounter counts the writes of windows.
type windowCounter struct {
	usage.API

	n atomic.Int64
}

// UpdateItem is the client's.
func (w *windowCounter) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := w.API.UpdateItem(ctx, in, opts...)
	if err == nil {
		w.n.Add(1)
	}
	return out, err
}
