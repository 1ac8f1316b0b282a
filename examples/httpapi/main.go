// Command httpapi is a small HTTP API whose limits stand before its handlers, and three clients of different
// manners.
//
//	go run ./examples/httpapi
//
// The server is server.go. Before a handler is called, httplimit.Middleware acquires from the bucket of the
// request's key. Every answer says what is left, in the fields RateLimit-Policy and RateLimit. limits.yaml
// says what a key may do. The clients are client.go: one asks again and again, one waits as Retry-After says,
// one reads the RateLimit fields and asks only for what is there. All have the same requests to make.
// DynamoDB is the engine in this process.
//
// The program prints what each request of the two that listen got, what all of it looked like, and what
// listening has saved. It fails if one of them came earlier than it was told to, or was denied when it came
// on time.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/sluice-go/sluice/examples/httpapi/limits"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintf(os.Stderr, "httpapi: unexpected argument %q: it takes none\n", os.Args[1])
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err == nil {
		err = run(ctx, listener, &http.Transport{}, os.Stdout)
	}
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted && errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "httpapi: interrupted: what clients got is told when they are done")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "httpapi:", err)
		os.Exit(1)
	}
}

// table is where the buckets are.
const table = "rate_limits"

// requests are how many each client makes; every fourth is a report.
const (
	requests = 20
	rows     = 300
)

// run serves the API on listener, lets clients call it through transport, and prints what they got.
func run(ctx context.Context, listener net.Listener, transport *http.Transport, out io.Writer) (err error) {
	dynamodb := memdynamo.New().Client() // in production: dynamodb.NewFromConfig
	if _, err := operator.CreateTable(ctx, dynamodb, table); err != nil {
		return err
	}
	lim, err := limits.New(dynamo.New(dynamodb, table))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lim.Close(context.WithoutCancel(ctx))) }()
	if err := lim.Check(ctx); err != nil { // before serving: the table is there and right, the clock is too
		return err
	}

	clients := make([]*client, 0, 3)
	keys := map[string]limits.Key{}
	for _, m := range []manner{heedless, obedient, paced} {
		secret := "secret-of-" + m.String()
		keys[secret] = limits.Key{ID: m.String()}
		clients = append(clients, &client{
			http: &http.Client{Transport: transport}, url: "http://" + listener.Addr().String(), key: secret,
			manner: m,
		})
	}
	door := newDoor(newAPI(lim.API, keys))
	server := &http.Server{Handler: door, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: 2 * time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	if err := announce(out); err != nil {
		return err
	}
	began := time.Now()
	err = work(ctx, clients)
	transport.CloseIdleConnections()
	err = errors.Join(err, server.Shutdown(context.WithoutCancel(ctx)))
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		return err
	}
	return report{began, clients, door}.print(out)
}

// work lets all clients make their requests, at the same time.
func work(ctx context.Context, clients []*client) error {
	errs := make([]error, len(clients))
	var working sync.WaitGroup
	for i, c := range clients {
		working.Go(func() {
			for n := 1; n <= requests && errs[i] == nil; n++ {
				if n%4 == 0 {
					errs[i] = c.get(ctx, fmt.Sprintf("/report?rows=%d", rows),
						map[string]int64{limits.APIRequests.String(): 1, limits.APIRows.String(): rows})
				} else {
					errs[i] = c.get(ctx, "/items", map[string]int64{limits.APIRequests.String(): 1})
				}
			}
		})
	}
	working.Wait()
	return errors.Join(errs...)
}
