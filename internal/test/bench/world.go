package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-go/sluice/internal/test/bench/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// table is the name of every world's table.
const table = "bench"

// world is a DynamoDB with a table.
type world struct{ engine *memdynamo.Engine }

// newWorld makes one whose requests travel for oneWay, and so do their replies.
func newWorld(ctx context.Context, oneWay time.Duration) (*world, error) {
	w := &world{memdynamo.New()}
	if _, err := operator.CreateTable(ctx, w.engine.Client(), table); err != nil {
		return nil, err
	}
	w.engine.Faults().Latency(memdynamo.Constant(oneWay))
	return w, nil
}

// process returns a Limiter that shares with others what is in the table, and nothing else. A call it cannot
// decide is an error, and calls have ten times the usual budget, so that a slow machine is not taken for
// contention.
func (w *world) process() (*generated.Limiter, error) { return w.processOn(w.engine.Client()) }

// processOn is process with a client of its own.
func (w *world) processOn(api dynamo.API) (*generated.Limiter, error) {
	return generated.New(dynamo.New(api, table),
		runtime.WithCallDefaults(runtime.OnUnavailable(runtime.Deny), runtime.Budget(10*store.DefaultBudget)))
}

// bill is what an experiment's calls consumed.
type bill struct {
	calls, reads          int     // requests, and those of them that read
	readUnits, writeUnits float64 // all of them
	refusedUnits          float64 // of writeUnits, those of failed conditions and cancelled transactions
}

// units are all units, as many as AWS bills.
func (b bill) units() float64 { return b.readUnits + b.writeUnits }

// consumed returns what was consumed since the last ResetConsumed.
func (w *world) consumed() bill {
	c := w.engine.Consumed()
	usage := c.Table(table)
	b := bill{
		readUnits: usage.Total().Read, writeUnits: usage.Total().Write,
		refusedUnits: usage.Refused.Write + usage.Cancelled.Write,
	}
	for operation, n := range c.Requests {
		b.calls += n
		if operation == "GetItem" || operation == "BatchGetItem" {
			b.reads += n
		}
	}
	return b
}

// caller is somebody who acquires, once per call.
type caller func(context.Context) error

// outcome is how calls ended.
type outcome struct{ admitted, denied, contended int }

// add counts a call that ended with err, or returns err if that is no end to count.
func (o *outcome) add(err error) error {
	_, denied := errors.AsType[*runtime.DeniedError](err)
	_, contended := errors.AsType[*runtime.ContendedError](err)
	switch {
	case err == nil:
		o.admitted++
	case denied:
		o.denied++
	case contended:
		o.contended++
	default:
		return err
	}
	return nil
}

// plus returns the sum.
func (o outcome) plus(p outcome) outcome {
	return outcome{o.admitted + p.admitted, o.denied + p.denied, o.contended + p.contended}
}

// tally adds up outcomes, of many goroutines.
type tally struct {
	mu  sync.Mutex
	sum outcome
	err error // the first that is no outcome
}

// add adds o, and err if it is the first.
func (t *tally) add(o outcome, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum = t.sum.plus(o)
	if t.err == nil {
		t.err = err
	}
}

// closedLoop has each caller call, and call again as soon as it is answered, for d. It returns how calls
// ended and how long it took until the last one was answered.
func closedLoop(ctx context.Context, callers []caller, d time.Duration) (outcome, time.Duration, error) {
	var all tally
	var running sync.WaitGroup
	began := time.Now()
	for _, call := range callers {
		running.Go(func() {
			var own outcome
			var err error
			for err == nil && time.Since(began) < d {
				err = own.add(call(ctx))
			}
			all.add(own, err)
		})
	}
	running.Wait()
	if all.err == nil && all.sum.admitted == 0 {
		all.err = fmt.Errorf("none of %d calls was admitted", all.sum.denied+all.sum.contended)
	}
	return all.sum, time.Since(began), all.err
}

// once has each caller call once, at most 64 at a time: what a process reads of a bucket when it first meets
// it is thereby over.
func once(ctx context.Context, callers []caller) error {
	var all tally
	var running sync.WaitGroup
	places := make(chan struct{}, 64)
	for _, call := range callers {
		places <- struct{}{}
		running.Go(func() {
			var own outcome
			err := own.add(call(ctx))
			all.add(own, err)
			<-places
		})
	}
	running.Wait()
	return all.err
}
