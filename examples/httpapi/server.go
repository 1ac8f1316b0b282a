package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/examples/httpapi/limits"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/httplimit"
)

// newAPI returns the API's handler. keys are the secrets that callers send, and whose they are.
func newAPI(lim limits.APIAcquirer, keys map[string]limits.Key) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /items", items)
	mux.HandleFunc("GET /report", rowsOf)
	limited := httplimit.Middleware(lim, ask, httplimit.Headers()) // every answer says what is left
	return authenticated(keys, limited(mux))
}

// keyOf is where authenticated leaves the caller's Key for those behind it.
type keyOf struct{}

// authenticated lets only callers through whose secret is among keys. It stands before the limits: who made
// up names could otherwise have as many buckets as names.
func authenticated(keys map[string]limits.Key, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		key, ok := keys[secret]
		if !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "no such key", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), keyOf{}, key)))
	})
}

// ask returns the entity that is charged for r, and the cost. A malformed r is an *runtime.InvalidError,
// which the caller gets as a 400.
func ask(r *http.Request) (limits.APIEntity, limits.APICost, error) {
	key, _ := r.Context().Value(keyOf{}).(limits.Key)
	cost := limits.APICost{} // Requests: per_call 1
	if r.URL.Path == "/report" {
		var err error
		cost.Rows, err = strconv.ParseInt(r.FormValue("rows"), 10, 64)
		if err != nil {
			return nil, cost, &runtime.InvalidError{Resource: limits.API, Field: "rows", Value: r.FormValue("rows"),
				Reason: "is no number"}
		}
	}
	return key, cost, nil
}

func items(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "apples, pears") }

// rowsOf answers with as many rows as the caller wants, which ask has found to be a number.
func rowsOf(w http.ResponseWriter, r *http.Request) {
	_, _ = fmt.Fprintf(w, "%s rows of apples and pears\n", r.FormValue("rows"))
}
