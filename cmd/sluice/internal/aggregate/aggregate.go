// Package aggregate is `sluice aggregate`: it adds up consumption from a table's stream.
package aggregate

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	"github.com/alecthomas/kong"
	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/usage"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// Command is `sluice aggregate`.
type Command struct {
	connect.TableOnly
	connect.Namespaced

	Once        bool          `help:"Count what the stream contains now, and end."`
	Poisoned    *string       `placeholder:"FILE" help:"${poisoned}"`
	KeepHours   string        `default:"35d" help:"Keep windows of an hour this long, 24h or more."`
	KeepDays    string        `default:"400d" help:"Keep windows of a day this long, 24h or more."`
	KeepWindows string        `default:"400d" help:"Keep windows of a windowed limit this long, 24h or more."`
	Idle        time.Duration `default:"1s" help:"${idle}"`
	JSON        bool          `name:"json" help:"Print the summary as JSON."`
}

// Help describes the command.
func (Command) Help() string {
	return "It reads the table's stream and adds up consumption in windows of an hour and of a day, by " +
		"entity, resource and limit, and in each window of a windowed limit. The windows are items of the " +
		"same table; sluice usage shows them.\n\n" +
		"It runs until Ctrl-C or SIGTERM. It may be killed at any time and resumes at the same " +
		"place; each record counts once. Run one for each table. A second one does no harm, but " +
		"costs as much as the first. Do not run it beside a Lambda function that aggregates the same " +
		"stream: each of them would count everything.\n\n" +
		"It works for every owner of the table, and reads no limits.yaml: it writes what the table's own " +
		"records say. In a namespace, it counts the records of that namespace alone: run one for each.\n\n" +
		"A stream keeps records for 24 hours. Records that may have been lost in the meantime are " +
		"reported.\n\n" +
		"The exit code is 1 if a record could not be read or may be lost.\n\n" +
		"Example: sluice aggregate --table rate_limits --poisoned poisoned.jsonl"
}

// Run counts until ctx ends, or with --once until the end of the stream, and prints a summary. It needs no
// schema: the stream's images name the limits.
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
		Client: windows, Table: c.Table, Namespace: c.Name(), Keep: keep, Poisoned: aside.put,
		Extract: func(rec codec.Record) ([]codec.Delta, error) {
			if rec.Bucket() == "" {
				return nil, nil
			}
			return rec.Deltas() // for all limits of the bucket
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
	failed := follow(program.Patient(ctx))
	failed = errors.Join(c.stopped(ctx, client, failed), aside.close())
	now := progress.end()
	if failed != nil && now.Records == 0 { // nothing to summarize
		return failed
	}
	came := summary{
		Table: c.Table, Records: now.Records, Counted: now.Counted, Windows: windows.n.Load(),
		Poisoned: aside.n.Load(), Lost: now.Lost,
		Behind: now.Behind.Seconds(), Seconds: p.Now().Sub(began).Seconds(),
	}
	if err := came.show(p, c.JSON); err != nil {
		return err
	}
	return errors.Join(failed, came.wrong(aside.where))
}

// check returns how long windows are kept. Impossible flags are usage errors.
func (c Command) check() (map[usage.Span]time.Duration, error) {
	keep := map[usage.Span]time.Duration{}
	for _, k := range []struct {
		flag, text string
		span       usage.Span
	}{
		{"--keep-hours", c.KeepHours, usage.Hour}, {"--keep-days", c.KeepDays, usage.Day},
		{"--keep-windows", c.KeepWindows, usage.LimitWindow},
	} {
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
		return nil, program.Usagef("--poisoned is empty: pass the name of a file")
	case c.Idle < time.Millisecond:
		return nil, program.Usagef("--idle %v is too short: pass 1ms or more", c.Idle)
	}
	return keep, c.Namespaced.Check()
}

// answers returns an error if the streams' endpoint does not answer at all, which is a mistake in the
// command line. Later failures are retried by the poller, so they are not checked here.
func (c Command) answers(
	ctx context.Context, client *dynamodb.Client, streams *dynamodbstreams.Client,
) error {
	name, _ := operator.TableName(c.Table)
	_, err := streams.ListStreams(ctx, &dynamodbstreams.ListStreamsInput{TableName: &name, Limit: aws.Int32(1)})
	if silent := program.GaveUp(ctx); silent != nil {
		return silent
	}
	if _, answer := errors.AsType[smithy.APIError](err); err != nil && !answer && ctx.Err() == nil {
		return connect.ExplainStreams(client, streams, operator.CallError(c.Table, err))
	}
	return nil
}

// stopped returns the error of a run that has ended. Ctrl-C is how a run without --once ends.
func (c Command) stopped(ctx context.Context, client *dynamodb.Client, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errors.New("interrupted; run the same command again: it resumes at the same place")
	}
	return connect.Explain(client, err)
}

// windowCounter counts the writes of windows.
type windowCounter struct {
	usage.API

	n atomic.Int64
}

// UpdateItem implements usage.API.
func (w *windowCounter) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	out, err := w.API.UpdateItem(ctx, in, opts...)
	if err == nil {
		w.n.Add(1)
	}
	return out, err
}

// FlagHelp returns the help texts that are too long for a tag.
func (Command) FlagHelp() kong.Vars {
	return kong.Vars{
		"poisoned": "Append records that cannot be read to this file, each as a line of JSON. The default is " +
			"stderr.",
		"idle": "Wait this long before polling an idle shard again, 1ms or more. Records that arrive during " +
			"the wait are counted together, which costs less. AWS allows 5 reads a second.",
	}
}

// NoRedisReason implements an interface of package connect.
func (Command) NoRedisReason() string { return "Redis has no stream of consumption" }
