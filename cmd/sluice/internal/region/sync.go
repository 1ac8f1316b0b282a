package region

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
	"github.com/sluice-go/sluice/internal/tool/awsclient"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/region/feed"
	"github.com/sluice-go/sluice/runtime/region/images"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

type syncCommand struct {
	connect.TableOnly
	connect.Namespaced
	publishing

	As      *string        `placeholder:"NAME" help:"${region_as}"`
	Once    bool           `xor:"how" help:"Have one cycle, print its writes, and end."`
	DryRun  bool           `xor:"how" help:"Print the writes of a cycle without doing them."`
	Evict   *time.Duration `placeholder:"DURATION" help:"${evict}"`
	Drift   *int64         `placeholder:"PERCENT" help:"${drift}"`
	Horizon *int64         `placeholder:"WINDOWS" help:"${horizon}"`
	JSON    bool           `name:"json" help:"Print each cycle as a JSON object on a line."`
}

// Help describes regional sync.
func (syncCommand) Help() string {
	return "Each region has a table of its own and does not read those of other regions. For each limit " +
		"of a resource that is global in limits.yaml, the command publishes the region's consumption " +
		"and quota, reads those of the others, and stores the region's new quota in its table. The " +
		"quotas in force never add up to more than the limit.\n\n" +
		"It takes consumption from the table's stream. It reads all buckets at the start, after the stream " +
		"has lost records, and once a day to find what the stream did not have. With --once or --dry-run " +
		"it reads all buckets.\n\n" +
		"It runs until Ctrl-C or SIGTERM, with a cycle per window. It may be killed at any time and " +
		"resumes at the same place. Run one in each region. If two run in one region, each finds a " +
		"snapshot that is not its own and starts again from what every region keeps. The command " +
		"refuses a table whose heartbeat is that of another region. Each namespace of a table needs a " +
		"--snapshots of its own.\n\n" +
		"With --once or --dry-run, the exit code is 1 if something failed.\n\n" +
		"Example: sluice region sync --region eu-central-1 --table rate_limits --snapshots " +
		"s3://quotas/limits"
}

// Run has a cycle per window until ctx ends, or one cycle.
func (c syncCommand) Run(ctx context.Context, p program.Env) error {
	s, regions, err := c.divided()
	if err != nil {
		return err
	}
	place, err := c.place()
	if err != nil {
		return err
	}
	config := region.Config{Specs: s.Specs, Clock: p.Clock()}
	if config.Region, err = c.as(ctx, s.File, regions); err != nil {
		return err
	}
	if err := c.tune(&config, regions.Window); err != nil {
		return err
	}
	client, streams, err := c.WithStreams(ctx)
	if err != nil {
		return err
	}
	config.Snapshots, err = c.open(ctx, p, place, client.Options().Region)
	if err != nil || config.Snapshots == nil {
		return err
	}
	if config.Table, err = c.regional(ctx, p, client, s.Owner); err != nil {
		return err
	}
	progress := newProgress(p, c.JSON)
	config.Logger = slog.New(slog.NewTextHandler(progress, nil))
	if !c.Once && !c.DryRun {
		config.Images = images.New(config.Specs)
		config.OnReport = func(r *region.Report) {
			if ctx.Err() == nil { // a call that Ctrl-C ended has not failed
				explain(client, r)
				progress.report(r)
			}
		}
	}
	sync, err := region.New(config)
	if err != nil {
		return err
	}
	switch {
	case c.DryRun:
		return c.one(ctx, p, client, sync.Plan)
	case c.Once:
		return c.one(ctx, p, client, sync.Cycle)
	}
	if err := c.check(ctx, p, place, sync); err != nil || ctx.Err() != nil {
		return connect.Explain(client, err)
	}
	err = c.follow(ctx, p, config, regions.Window, client, streams, sync)
	progress.end()
	return connect.Explain(client, err)
}

// check fails if a cycle would. A place that never answers is a mistake in the command line; later cycles
// wait for one that has answered before. check waits only for a bucket that does not exist yet, and returns
// nil if ctx ends first.
func (c syncCommand) check(
	ctx context.Context, p program.Env, place snapshotsPlace, sync *region.Sync,
) error {
	for noted := false; ctx.Err() == nil; {
		err := sync.Check(ctx)
		if !place.missing(err) {
			return err
		}
		noted = c.wait(ctx, p, err, noted)
	}
	return nil
}

// idleFor returns the pause between two reads of a shard. It is a part of the age of rates, and a read costs
// as much as a thousand records.
func idleFor(window time.Duration) time.Duration { return min(5*time.Second, window/5) }

// tune sets what flags say of the sync.
func (c syncCommand) tune(config *region.Config, window time.Duration) error {
	if c.Evict != nil {
		if config.Evict = *c.Evict; config.Evict < 5*window { // 0 would mean the default
			return program.Usagef("--evict %v is too short: pass 5 windows or more, %v", *c.Evict, 5*window)
		}
	}
	for _, f := range []struct {
		name, of string
		value    *int64
		to       *int64
	}{{"--drift", "percent", c.Drift, &config.Drift}, {"--horizon", "windows", c.Horizon, &config.Horizon}} {
		if f.value == nil {
			continue
		}
		if *f.value < 1 || *f.value > 100 {
			return program.Usagef("%s %d is out of range: pass 1 to 100 %s", f.name, *f.value, f.of)
		}
		*f.to = *f.value
	}
	return nil
}

// open opens the place to publish. Unless it is for one cycle, it waits until the folder is there. It returns
// nil without an error if ctx ends before.
func (c syncCommand) open(
	ctx context.Context, p program.Env, place snapshotsPlace, awsRegion string,
) (region.Snapshots, error) {
	if c.Once || c.DryRun {
		return place.open(ctx, awsRegion)
	}
	for noted := false; ctx.Err() == nil; {
		snapshots, err := place.open(ctx, awsRegion)
		if !place.missing(err) {
			return snapshots, err
		}
		noted = c.wait(ctx, p, err, noted)
	}
	return nil, nil
}

// wait waits a moment for what is missing, after saying so once.
func (syncCommand) wait(ctx context.Context, p program.Env, missing error, noted bool) bool {
	if !noted {
		p.Note("waiting: %s\n", term.Escape(program.Text(missing)))
	}
	select {
	case <-p.Clock().After(time.Second):
	case <-ctx.Done():
	}
	return true
}

// follow runs sync, and follows the stream of its table, until ctx ends.
func (c syncCommand) follow(
	ctx context.Context, p program.Env, config region.Config, window time.Duration,
	client *dynamodb.Client, streams *dynamodbstreams.Client, sync *region.Sync,
) error {
	poller, err := poll.New(poll.Config{
		Streams: streams, Table: c.Table, Clock: p.Clock(), Idle: idleFor(window), Logger: config.Logger,
		Consumers: []poll.Consumer{feed.New(config.Images, c.Name())},
	})
	if err != nil {
		return err
	}
	running, end := context.WithCancelCause(program.Patient(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := feed.Run(running, poller, config.Images, p.Clock(), window, config.Logger); err != nil {
			end(connect.ExplainStreams(client, streams, err))
		}
	}()
	err = sync.Run(running)
	if cause := context.Cause(running); cause != nil {
		err = cause
	}
	end(nil)
	<-ended
	if ctx.Err() != nil {
		return nil //nolint:nilerr // this is how a sync ends
	}
	return err
}

// regional returns the items of client, unless they are another owner's.
func (c syncCommand) regional(
	ctx context.Context, p program.Env, client *dynamodb.Client, owner string,
) (*operator.Regional, error) {
	items, err := c.In(client)
	if err != nil {
		return nil, err
	}
	if err := operator.CheckOwner(ctx, items, c.Table, owner); err != nil {
		return nil, connect.Explain(client, err)
	}
	return operator.NewRegional(items, c.Table, p.Now), nil
}

// as returns the name of the region in the schema. An AWS region is no answer if an emulator made it up.
func (c syncCommand) as(ctx context.Context, file string, regions *store.Regions) (string, error) {
	name, from := c.Region, "the AWS region is "
	switch {
	case c.As != nil:
		name, from = *c.As, "--as is "
	case name == "":
		var err error
		if name, err = awsclient.Region(ctx); err != nil {
			return "", err
		}
	}
	all := strings.Join(regions.Names, ", ")
	if name == "" && c.As == nil {
		return "", program.Usagef("the name of this region in %s is unknown: pass --as with one of %s, or --region",
			file, all)
	}
	if !slices.Contains(regions.Names, name) {
		return "", program.Usagef("%s%q, which is not a region of %s: pass --as with one of %s", from,
			name, file, all)
	}
	return name, nil
}

// one has one cycle, or plans one, and prints it.
func (c syncCommand) one(
	ctx context.Context, p program.Env, client *dynamodb.Client, cycle func(context.Context) (*region.Report,
		error),
) error {
	report, err := cycle(ctx)
	if err != nil {
		return connect.Explain(client, err)
	}
	explain(client, report)
	if c.JSON {
		err = reportJSON(p, report)
	} else {
		err = describeCycle(p, report, c.DryRun)
	}
	return errors.Join(err, report.Failures(format.First))
}

// explain replaces the long errors of failed connections in a report.
func explain(client *dynamodb.Client, report *region.Report) {
	for i, err := range report.Failed {
		report.Failed[i] = connect.Explain(client, err)
	}
	for i := range report.Peers {
		if from := &report.Peers[i]; from.Err != nil {
			from.Err = connect.Explain(client, from.Err)
		}
	}
}
