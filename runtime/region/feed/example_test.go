package feed_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/examples/regionsync/limits"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/region/feed"
	"github.com/sluice-go/sluice/runtime/region/images"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// follow keeps images current until ctx ends. Pass the same images to region.Config, and sync reads no table.
func follow(ctx context.Context, buckets *images.Images, streams poll.Streams) error {
	poller, err := poll.New(poll.Config{
		Streams: streams, Table: "rate_limits",
		Consumers: []poll.Consumer{feed.New(buckets, "")},
	})
	if err != nil {
		return err
	}
	return feed.Run(ctx, poller, buckets, store.SystemClock(), time.Minute, slog.Default())
}

// The images are ready once all shards of the stream have replied.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	engine := memdynamo.New()
	if _, err := operator.CreateTable(ctx, engine.Client(), "rate_limits"); err != nil {
		fmt.Println(err)
	}
	lim, err := limits.New(dynamo.New(engine.Client(), "rate_limits"))
	if err != nil {
		fmt.Println(err)
	}
	buckets, ended := images.New(lim.Specs()), make(chan error)
	go func() { ended <- follow(ctx, buckets, engine.Streams()) }()
	<-buckets.Ready()
	fmt.Println("ready")
	cancel()
	fmt.Println(<-ended)
	// Output:
	// ready
	// <nil>
}
