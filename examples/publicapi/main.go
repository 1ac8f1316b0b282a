// Command api is a public API, limited per IP address for callers without a key, and per key for customers.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"strings"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/httplimit"

	"github.com/sluice-go/sluice/examples/publicapi/limits"
)

// newAPI returns the API. keys are those of customers, by secret. Only proxies are trusted to say which
// address called them.
func newAPI(api limits.APIAcquirer, keys map[string]limits.Key, proxies ...netip.Prefix) http.Handler {
	limited := httplimit.Middleware(api, func(r *http.Request) (limits.APIEntity, limits.APICost, error) {
		cost := limits.APICost{} // per_call: 1 of each limit
		if key, ok := r.Context().Value(callerKey{}).(limits.Key); ok {
			return key, cost, nil
		}
		return limits.IP{ID: httplimit.ClientIP(r, proxies...)}, cost, nil
	}, httplimit.Headers())

	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {}) // not limited
	mux.Handle("GET /items", authenticated(keys, limited(http.HandlerFunc(items))))
	return mux
}

// callerKey is where authenticated leaves the customer's key in the request's context.
type callerKey struct{}

// authenticated answers 401 to a wrong key. A request without a key goes on as that of its address.
func authenticated(keys map[string]limits.Key, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := r.Header.Get("Authorization")
		if header == "" {
			next.ServeHTTP(w, r)
			return
		}
		key, known := keys[strings.TrimPrefix(header, "Bearer ")]
		if !known {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "no such key", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, key)))
	})
}

// items is what the API is about.
func items(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "apples, pears") }

func main() {
	var proxy netip.Prefix
	flag.TextVar(&proxy, "proxy", proxy, "the network of your load balancer, such as 10.0.0.0/8")
	flag.Parse()
	var proxies []netip.Prefix
	if proxy.IsValid() {
		proxies = append(proxies, proxy)
	}
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
	keys := map[string]limits.Key{"secret-1": {ID: "acme"}}
	log.Fatal(http.ListenAndServe("localhost:8080", newAPI(lim.API, keys, proxies...)))
}
