package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluice-go/sluice/examples/regions/limits"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/region/feed"
	"github.com/sluice-go/sluice/runtime/region/images"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// place is a region: its table, a service that calls, and its sync.
type place struct {
	name   string
	asks   int // calls a second
	client *dynamodb.Client
	stream *dynamodbstreams.Client
	lim    *limits.Limiter
	config region.Config

	granted, denied atomic.Int64
	failed          atomic.Pointer[error] // the first call that failed otherwise
	running         sync.WaitGroup
	stop            func() // ends the sync; the service goes on

	mu     sync.Mutex
	events []string // since the last line
	states map[string]region.State
}

// table is every region's.
const table = "rate_limits"

// newPlaces makes the regions of limits.yaml, which publish in snapshots. They ask for more than there is,
// most of it in eu.
func newPlaces(ctx context.Context, snapshots region.Snapshots, evict time.Duration) ([]*place, error) {
	var all []*place
	for seed, p := range []*place{{name: "ap", asks: 20}, {name: "eu", asks: 180}, {name: "us", asks: 60}} {
		engine := memdynamo.New(memdynamo.WithSeed(uint64(seed)))
		p.client, p.stream, p.states = engine.Client(), engine.Streams(), map[string]region.State{}
		if _, err := operator.CreateTable(ctx, p.client, table); err != nil {
			return nil, err
		}
		var err error
		if p.lim, err = limits.New(dynamo.New(p.client, table),
			runtime.WithLogger(slog.New(slog.DiscardHandler))); err != nil {
			return nil, err
		}
		p.config = region.Config{
			Region: p.name, Table: operator.NewRegional(p.client, table, time.Now), Snapshots: snapshots,
			Specs: p.lim.Specs(),
			Evict: evict, Logger: slog.New(slog.DiscardHandler), OnReport: p.note,
		}
		all = append(all, p)
	}
	return all, nil
}

// shared is what the regions of the only resource are.
func (p *place) shared() *store.Regions { return p.config.Specs[0].Regions }

func (p *place) window() time.Duration { return p.shared().Window }

// sync starts the region's sync, until stop is called or ctx ends.
func (p *place) sync(ctx context.Context) error {
	config := p.config
	config.Images = images.New(config.Specs)
	s, err := region.New(config)
	if err != nil {
		return err
	}
	poller, err := poll.New(poll.Config{
		Streams: p.stream, Table: table, Idle: p.window() / 5,
		Consumers: []poll.Consumer{feed.New(config.Images, "")}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	p.running.Go(func() {
		// why it ended is known here: later failures are tried again
		_ = feed.Run(ctx, poller, config.Images, store.SystemClock(), p.window(), slog.New(slog.DiscardHandler))
	})
	ended := make(chan struct{})
	p.running.Go(func() {
		defer close(ended)
		_ = s.Run(ctx) // why it ended is known here
	})
	p.stop = func() {
		stop()
		<-ended
	}
	return nil
}

// note takes note of what a cycle tells: which region it now takes for what.
func (p *place) note(r *region.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, peer := range r.Peers {
		if before := p.states[peer.Region]; before != peer.State && before != "" && before != region.NeverSeen {
			p.events = append(p.events, fmt.Sprintf("%s: %s is %s", p.name, peer.Region, peer.State))
		}
		p.states[peer.Region] = peer.State
	}
}

// say adds to what has happened.
func (p *place) say(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, what)
}

// happened returns what has happened since it was last called.
func (p *place) happened() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	events := p.events
	p.events = nil
	return events
}

// call has a service make its calls until ctx ends, all of one user.
func (p *place) call(ctx context.Context) {
	p.running.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(p.asks))
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			// RPS: per_call 1
			_, err := p.lim.Chat.Acquire(context.WithoutCancel(ctx), limits.User{ID: "1"}, limits.ChatCost{})
			switch _, denied := errors.AsType[*limits.DeniedError](err); {
			case err == nil:
				p.granted.Add(1)
			case denied:
				p.denied.Add(1)
			default:
				p.failed.CompareAndSwap(nil, &err)
			}
		}
	})
}

// close waits for what runs, and returns why a call failed.
func (p *place) close(ctx context.Context) error {
	p.running.Wait()
	err := p.lim.Close(ctx)
	if failed := p.failed.Load(); failed != nil {
		err = errors.Join(fmt.Errorf("a call in %s failed: %w", p.name, *failed), err)
	}
	return err
}
