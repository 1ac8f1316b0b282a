package main

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// outage is when nothing gets through to the engine in the process.
type outage struct{ from, until time.Duration }

// outageOf returns the outage of a demo that takes this long.
func outageOf(all time.Duration) outage {
	return outage{all / 2, all/2 + min(2*time.Second, all/4)}
}

// strike cuts the wire for as long as the outage lasts, unless ctx ends before, and notes both turns.
func (o outage) strike(ctx context.Context, w *wire, note func(down bool)) {
	began := time.Now()
	sleep := func(until time.Duration) {
		select {
		case <-time.After(until - time.Since(began)):
		case <-ctx.Done():
		}
	}
	sleep(o.from)
	if ctx.Err() != nil {
		return
	}
	w.cut.Store(true)
	note(true)
	sleep(o.until)
	w.cut.Store(false)
	note(false)
}

// wire is the network to the engine in the process. While it is cut, connections are refused; what is under
// way arrives, so that the outage loses no reply and the books stay exact.
type wire struct {
	next dynamodb.HTTPClient
	cut  atomic.Bool
	lost atomic.Int64 // calls whose caller left before the reply: the engine may have billed them
}

// Do implements dynamodb.HTTPClient.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	if w.cut.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	resp, err := w.next.Do(r)
	if err != nil {
		w.lost.Add(1)
	}
	return resp, err
}
