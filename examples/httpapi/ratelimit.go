package main

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/dunglas/httpsfv"
)

// rateLimit is what an answer says of its limits, by name: the fields RateLimit-Policy and RateLimit of
// draft-ietf-httpapi-ratelimit-headers-10.
type rateLimit map[string]level

// level is one limit: left tokens are there, and quota come within each window.
type level struct {
	left, quota int64
	window      time.Duration
}

// parseRateLimit reads an answer's fields. It is empty where there are none.
func parseRateLimit(h http.Header) (rateLimit, error) {
	limits := rateLimit{}
	err := eachItem(h.Values("RateLimit-Policy"), func(name string, param func(string) int64) {
		limits[name] = level{quota: param("q"), window: time.Duration(param("w")) * time.Second}
	})
	if err != nil {
		return nil, fmt.Errorf("RateLimit-Policy: %w", err)
	}
	err = eachItem(h.Values("RateLimit"), func(name string, param func(string) int64) {
		l := limits[name]
		l.left = param("r")
		limits[name] = l
	})
	if err != nil {
		return nil, fmt.Errorf("RateLimit: %w", err)
	}
	return limits, nil
}

// eachItem calls f for each item of a field, with its name and what reads its parameters: 0 for one that is
// missing.
func eachItem(field []string, f func(name string, param func(string) int64)) error {
	list, err := httpsfv.UnmarshalList(field)
	if err != nil {
		return err
	}
	for _, member := range list {
		item, _ := member.(httpsfv.Item)
		if name, ok := item.Value.(string); ok {
			f(name, func(param string) int64 {
				value, _ := item.Params.Get(param)
				n, _ := value.(int64)
				return n
			})
		}
	}
	return nil
}

// wait returns how long after the answer there is what a request needs, by limit, if nobody else takes it.
func (r rateLimit) wait(need map[string]int64) (longest time.Duration) {
	for name, n := range need {
		if l := r[name]; n > l.left && l.quota > 0 {
			missing := float64(n - l.left)
			longest = max(longest, time.Duration(missing*float64(l.window)/float64(l.quota)))
		}
	}
	return longest
}

// retryAfter returns how long an answer says to stay away, if it does. It may also be a date, which sluice
// never sends.
func retryAfter(h http.Header) (time.Duration, bool) {
	seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 31)
	return time.Duration(seconds) * time.Second, err == nil
}
