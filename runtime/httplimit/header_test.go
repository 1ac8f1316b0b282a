package httplimit_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/google/go-cmp/cmp"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/redistest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

var all = []httplimit.Option{httplimit.Headers(), httplimit.XHeaders(),
	httplimit.OpenAIHeaders(limits.GPT4RPM, limits.GPT4TPM)}

// fields returns those of h that tell of limits.
func fields(h http.Header) map[string]string {
	got := map[string]string{}
	for _, name := range []string{
		"RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset",
		"x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests",
		"x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens", "Retry-After",
	} {
		if v := h.Get(name); v != "" {
			got[name] = v
		}
	}
	return got
}

// TestHeaders says what callers see of a user's and a project's buckets, answer by answer.
func TestHeaders(t *testing.T) {
	const policy = `"rpm";q=100;w=60, "tpm";q=10000;w=60`
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		lim := open(t, limittest.StoreOn(t, engine))
		client := limited(t, lim.GPT4, nothing, all...)
		see := func(name, query string, status int, want map[string]string) {
			t.Helper()
			r := get(t, client, query)
			if diff := cmp.Diff(want, fields(r.Header)); r.StatusCode != status || diff != "" {
				t.Errorf("%s: %d (-want +got):\n%s", name, r.StatusCode, diff)
			}
		}
		see("first", "user=1&tpm=600", 200, map[string]string{
			"RateLimit-Policy": policy, "RateLimit": `"rpm";r=99;t=1, "tpm";r=14400;t=4`,
			"X-RateLimit-Limit": "10000", "X-RateLimit-Remaining": "14400", "X-RateLimit-Reset": "4",
			"x-ratelimit-limit-requests": "100", "x-ratelimit-remaining-requests": "99",
			"x-ratelimit-reset-requests": "1s",
			"x-ratelimit-limit-tokens":   "10000", "x-ratelimit-remaining-tokens": "14400",
			"x-ratelimit-reset-tokens": "4s",
		})
		see("drained", "user=1&tpm=14400", 200, map[string]string{
			"RateLimit-Policy": policy, "RateLimit": `"rpm";r=98;t=2, "tpm";r=0;t=90`,
			"X-RateLimit-Limit": "10000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "90",
			"x-ratelimit-limit-requests": "100", "x-ratelimit-remaining-requests": "98",
			"x-ratelimit-reset-requests": "2s",
			"x-ratelimit-limit-tokens":   "10000", "x-ratelimit-remaining-tokens": "0",
			"x-ratelimit-reset-tokens": "1m30s",
		})
		refusal := map[string]string{ // rpm is full before Retry-After, tpm has what is asked for by then
			"RateLimit-Policy": policy, "RateLimit": `"rpm";r=98;t=2, "tpm";r=0;t=10`, "Retry-After": "10",
			"X-RateLimit-Limit": "10000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "10",
			"x-ratelimit-limit-requests": "100", "x-ratelimit-remaining-requests": "98",
			"x-ratelimit-reset-requests": "2s",
			"x-ratelimit-limit-tokens":   "10000", "x-ratelimit-remaining-tokens": "0",
			"x-ratelimit-reset-tokens": "10s",
		}
		see("denied", "user=1&tpm=1600", 429, refusal)
		see("over burst", "user=1&tpm=15001", 400, map[string]string{
			"RateLimit-Policy": policy, "RateLimit": `"rpm";r=98;t=2, "tpm";r=0;t=90`,
			"X-RateLimit-Limit": "10000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "90",
			"x-ratelimit-limit-requests": "100", "x-ratelimit-remaining-requests": "98",
			"x-ratelimit-reset-requests": "2s",
			"x-ratelimit-limit-tokens":   "10000", "x-ratelimit-remaining-tokens": "0",
			"x-ratelimit-reset-tokens": "1m30s",
		})
		// The store refuses by the table, not by what it remembers.
		time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble
		see("denied by the table", "user=1&tpm=15000", 429, map[string]string{
			"RateLimit-Policy": policy, "RateLimit": `"rpm";r=100;t=0, "tpm";r=333;t=88`, "Retry-After": "88",
			"X-RateLimit-Limit": "10000", "X-RateLimit-Remaining": "333", "X-RateLimit-Reset": "88",
			"x-ratelimit-limit-requests": "100", "x-ratelimit-remaining-requests": "100",
			"x-ratelimit-reset-requests": "0s",
			"x-ratelimit-limit-tokens":   "10000", "x-ratelimit-remaining-tokens": "333",
			"x-ratelimit-reset-tokens": "1m28s",
		})

		before := engine.Consumed().Tables[limittest.Table]
		get(t, client, "user=1&tpm=1")
		for op, c := range engine.Consumed().Tables[limittest.Table] {
			if op != "TransactWriteItems" && c != before[op] {
				t.Errorf("headers cost a %s: %+v", op, c)
			}
		}

		engine.Faults().Down(true)
		see("degraded: nobody knows", "user=2&tpm=600", 200, map[string]string{})
		client = limited(t, lim.GPT4.With(runtime.OnUnavailable(runtime.Deny)), nothing, all...)
		see("down", "user=2&tpm=600", 503, map[string]string{"Retry-After": "1"})
		client = limited(t, lim.GPT4, nothing)
		engine.Faults().Clear()
		time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble
		see("not asked for", "user=2&tpm=600", 200, map[string]string{})
	})
}

// TestOpenAIHeadersOfAnotherResource: a limit is shown for its resource alone, and Middleware refuses others.
func TestOpenAIHeadersOfAnotherResource(t *testing.T) {
	for name, test := range map[string]struct {
		opt    httplimit.Option
		panics bool
	}{
		"its own": {httplimit.OpenAIHeaders(limits.GPT4RPM, nil), false},
		"nil":     {nil, false},
		"none":    {httplimit.OpenAIHeaders[limits.GPT4Cost](nil, nil), false},
		"another": {httplimit.OpenAIHeaders(limits.EmbeddingsRPS, nil), true},
	} {
		func() {
			defer func() {
				if panicked := recover() != nil; panicked != test.panics {
					t.Errorf("%s: panics is %v", name, panicked)
				}
			}()
			httplimit.Middleware(newFake(), ask, test.opt)
		}()
	}

	fake := newFake()
	client := limited(t, fake, nothing, httplimit.OpenAIHeaders(limits.GPT4RPM, limits.GPT4TPM))
	for resource, want := range map[string]map[string]string{
		limits.GPT4: {"Retry-After": "3", "x-ratelimit-remaining-tokens": "20", "x-ratelimit-reset-tokens": "3s"},
		"gpt-5":     {"Retry-After": "3"},
	} {
		fake.Fail(store.AddRefusal(nil, runtime.Refusal{
			Resource: resource, Entity: "user-1", Limit: limits.GPT4TPM.String(), Requested: 500, Available: 20,
			RetryAfter: 3 * time.Second,
		}))
		if diff := cmp.Diff(want, fields(get(t, client, "user=1&tpm=500").Header)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", resource, diff)
		}
	}
}

// TestHeadersOnRedis: what Redis refuses shows the same as what DynamoDB does, though its time is not the
// process's.
func TestHeadersOnRedis(t *testing.T) {
	redis := redistest.New(t)
	lim := open(t, redisstore.New(redis.Client, redisstore.Prefix(redis.Prefix)))
	client := limited(t, lim.GPT4, nothing, httplimit.Headers())
	for _, status := range []int{http.StatusOK, http.StatusTooManyRequests} {
		r := get(t, client, "user=1&tpm=15000")
		policies, err := httpsfv.UnmarshalList(r.Header.Values("RateLimit-Policy"))
		if err != nil || len(policies) != 2 || r.StatusCode != status {
			t.Fatalf("%d %v", r.StatusCode, r.Header)
		}
		balances, err := httpsfv.UnmarshalList(r.Header.Values("RateLimit"))
		if err != nil || len(balances) != 2 {
			t.Fatal(err)
		}
		for i, within := range [][2]int64{{99, 100}, {0, 1500}} { // some comes back while the test runs
			item := balances[i].(httpsfv.Item)
			if r, _ := item.Params.Get("r"); r.(int64) < within[0] || r.(int64) > within[1] {
				t.Errorf("%v has %v left, want %v", item.Value, r, within)
			}
		}
		tpm, _ := balances[1].(httpsfv.Item).Params.Get("t")
		if after := r.Header.Get("Retry-After"); status != http.StatusOK && fmt.Sprint(tpm) != after {
			t.Errorf("t=%v, Retry-After %s", tpm, after)
		}
	}
}

// TestLeastHeadroom: of a cascade's buckets the one is shown that has least, limit by limit.
func TestLeastHeadroom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := open(t, limittest.Store(t))
		client := limited(t, lim.GPT4, nothing, httplimit.Headers(), httplimit.OpenAIHeaders(nil, limits.GPT4TPM))
		project := limits.Project{ID: "1"}
		if _, err := lim.GPT4.Acquire(t.Context(), project, limits.GPT4Cost{TPM: 140_000}); err != nil {
			t.Fatal(err)
		}
		r := get(t, client, "user=1&tpm=1000")
		want := map[string]string{
			"RateLimit-Policy":         `"rpm";q=100;w=60, "tpm";q=100000;w=60`,
			"RateLimit":                `"rpm";r=99;t=1, "tpm";r=9000;t=85`,
			"x-ratelimit-limit-tokens": "100000", "x-ratelimit-remaining-tokens": "9000",
			"x-ratelimit-reset-tokens": "1m25s",
		}
		if diff := cmp.Diff(want, fields(r.Header)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		r = get(t, client, "user=1&tpm=10000")
		want = map[string]string{
			"RateLimit-Policy": `"rpm";q=100;w=60, "tpm";q=100000;w=60`,
			"RateLimit":        `"rpm";r=99;t=1, "tpm";r=9000;t=1`, "Retry-After": "1",
			"x-ratelimit-limit-tokens": "100000", "x-ratelimit-remaining-tokens": "9000",
			"x-ratelimit-reset-tokens": "1s",
		}
		if diff := cmp.Diff(want, fields(r.Header)); r.StatusCode != 429 || diff != "" {
			t.Errorf("%d (-want +got):\n%s", r.StatusCode, diff)
		}
	})
}
