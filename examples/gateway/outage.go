package main

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// outage is when the engine in the process refuses connections.
type outage struct{ from, until time.Duration }

// outageOf returns the outage of a demo that takes this long.
func outageOf(all time.Duration) outage {
	return outage{all / 2, all/2 + min(2*time.Second, all/4)}
}

// strike brings the outage about, unless ctx ends before.
func (o outage) strike(ctx context.Context, faults *memdynamo.Faults) {
	began := time.Now()
	sleep := func(until time.Duration) {
		select {
		case <-time.After(until - time.Since(began)):
		case <-ctx.Done():
		}
	}
	sleep(o.from - arrival)
	if ctx.Err() != nil {
		return
	}
	// What is under way arrives, and nothing sets out that takes its time: no reply is lost, so that the books stay exact.
	faults.Latency(nil)
	time.Sleep(arrival)
	faults.Down(true)
	faults.Latency(oneWay())
	sleep(o.until)
	faults.Down(false)
}

// arrival is when a round trip has ended for sure.
const arrival = 50 * time.Millisecond
