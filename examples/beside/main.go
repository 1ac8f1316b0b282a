// Command api has a limiter already. sluice runs beside it in shadow mode, until it takes over.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"golang.org/x/time/rate"

	"github.com/sluice-go/sluice/examples/beside/limits"
)

// existing is the limiter that the service has today: a bucket for each customer in each process.
type existing struct{ buckets sync.Map }

func (e *existing) allow(customer string) bool {
	bucket, _ := e.buckets.LoadOrStore(customer, rate.NewLimiter(10, 10))
	return bucket.(*rate.Limiter).Allow()
}

// server is one process of the service.
type server struct {
	before existing
	api    limits.APIAcquirer
	seen   *comparison
}

// comparison counts requests by what both limiters say.
type comparison struct{ both, onlyBefore, onlySluice, neither, unknown atomic.Int64 }

// ServeHTTP asks sluice first, and then the limiter that decides today.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	customer := r.Header.Get("X-Customer")
	lease, err := s.api.Acquire(r.Context(), limits.Customer{ID: customer}, limits.APICost{})
	if err != nil { // in shadow: a bad id, or a table that is missing; never a limit
		if !httplimit.WriteError(w, r, err) {
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
		return
	}
	allowed := s.before.allow(customer)
	s.seen.count(allowed, lease)
	if !allowed {
		lease.Release(r.Context()) // this request was denied, so sluice does not charge it
		http.Error(w, "too many requests", http.StatusTooManyRequests)
		return
	}
	_, _ = fmt.Fprintln(w, "an answer")
}

// count notes what both said of one request.
func (c *comparison) count(allowed bool, lease *limits.APILease) {
	switch admitted := lease.Shadowed() == nil; {
	case lease.Degraded():
		c.unknown.Add(1) // the store did not answer
	case allowed && admitted:
		c.both.Add(1)
	case allowed:
		c.onlyBefore.Add(1)
	case admitted:
		c.onlySluice.Add(1)
	default:
		c.neither.Add(1)
	}
}

// String prints the comparison.
func (c *comparison) String() string {
	return fmt.Sprintf(
		"admitted by both %d, only by the old limiter %d, only by sluice %d, by neither %d; unknown %d",
		c.both.Load(), c.onlyBefore.Load(), c.onlySluice.Load(), c.neither.Load(), c.unknown.Load())
}

func main() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	lim, err := limits.New(dynamo.New(dynamodb.NewFromConfig(cfg), "rate_limits")) // no I/O
	if err == nil {
		err = lim.Check(ctx) // the table is there and right, and so is the clock
	}
	if err != nil {
		log.Fatal(err)
	}
	s := &server{api: lim.API, seen: &comparison{}}
	http.Handle("GET /items", s)
	http.HandleFunc("GET /comparison", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, s.seen)
	})
	log.Fatal(http.ListenAndServe("localhost:8080", nil))
}
