package httplimit_test

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

var all = []httplimit.Option{httplimit.Headers(), httplimit.XHeaders(), httplimit.OpenAIHeaders(limits.GPT4RPM, limits.GPT4TPM)}

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
			"x-ratelimit-limit-requests": "100", "x-ratelimit-remaining-requests": "99", "x-ratelimit-reset-requests": "1s",
			"x-ratelimit-limit-tokens": "10000", "x-ratelimit-remaining-tokens": "14400", "x-ratelimit-reset-tokens": "4s",
		})
		see("drained", "user=1&tpm=14400", 200, map[string]string{
			"RateLimit-Policy": policy, "RateLimit": `"rpm";r=98;t=2, "tpm";r=0;t=90`,
			"X-RateLimit-Limit": "10000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "90",
			"x-ratelimit-limit-requests": "100", "x-ratelimit-remaining-requests": "98", "x-ratelimit-reset-requests": "2s",
			"x-ratelimit-limit-tokens": "10000", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m30s",
		})
		refusal := map[string]string{ // rpm is full before Retry-After, tpm has what is asked for by then
			"RateLimit-Policy": policy, "RateLimit": `"rpm";r=98;t=2, "tpm";r=0;t=10`, "Retry-After": "10",
			"X-RateLimit-Limit": "10000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "10",
			"x-ratelimit-limit-requests": "100", "x-ratelimit-remaining-requests": "98", "x-ratelimit-reset-requests": "2s",
			"x-ratelimit-limit-tokens": "10000", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "10s",
		}
		see("denied", "user=1&tpm=1600", 429, refusal)
		see("over burst", "user=1&tpm=15001", 400, map[string]string{
			"RateLimit-Policy": policy, "RateLimit": `"rpm";r=98;t=2, "tpm";r=0;t=90`,
			"X-RateLimit-Limit": "10000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "90",
			"x-ratelimit-limit-requests": "100", "x-ratelimit-remaining-requests": "98", "x-ratelimit-reset-requests": "2s",
			"x-ratelimit-limit-tokens": "10000", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m30s",
		})
		// The store refuses by the table, not by what it remembers.
		time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble
		see("denied by the table", "user=1&tpm=15000", 429, map[string]string{
			"RateLimit-Policy": policy, "RateLimit": `"rpm";r=100;t=0, "tpm";r=333;t=88`, "Retry-After": "88",
			"X-RateLimit-Limit": "10000", "X-RateLimit-Remaining": "333", "X-RateLimit-Reset": "88",
			"x-ratelimit-limit-requests": "100", "x-ratelimit-remaining-requests": "100", "x-ratelimit-reset-requests": "0s",
			"x-ratelimit-limit-tokens": "10000", "x-ratelimit-remaining-tokens": "333", "x-ratelimit-reset-tokens": "1m28s",
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

// TestHeadersOnRedis: what Redis refuses shows the same as what DynamoDB does, though its time is not the process's.
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
		levels, err := httpsfv.UnmarshalList(r.Header.Values("RateLimit"))
		if err != nil || len(levels) != 2 {
			t.Fatal(err)
		}
		for i, within := range [][2]int64{{99, 100}, {0, 1500}} { // some comes back while the test runs
			item := levels[i].(httpsfv.Item)
			if r, _ := item.Params.Get("r"); r.(int64) < within[0] || r.(int64) > within[1] {
				t.Errorf("%v has %v left, want %v", item.Value, r, within)
			}
		}
		tpm, _ := levels[1].(httpsfv.Item).Params.Get("t")
		if after := r.Header.Get("Retry-After"); status != http.StatusOK && fmt.Sprint(tpm) != after {
			t.Errorf("t=%v, Retry-After %s", tpm, after)
		}
	}
}

// TestLeastRoom: of a cascade's buckets the one is shown that has least, limit by limit.
func TestLeastRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := open(t, limittest.Store(t))
		client := limited(t, lim.GPT4, nothing, httplimit.Headers(), httplimit.OpenAIHeaders("", limits.GPT4TPM))
		project := limits.Project{ID: "1"}
		if _, err := lim.GPT4.Acquire(t.Context(), project, limits.GPT4Cost{TPM: 140_000}); err != nil {
			t.Fatal(err)
		}
		r := get(t, client, "user=1&tpm=1000")
		want := map[string]string{
			"RateLimit-Policy": `"rpm";q=100;w=60, "tpm";q=100000;w=60`, "RateLimit": `"rpm";r=99;t=1, "tpm";r=9000;t=85`,
			"x-ratelimit-limit-tokens": "100000", "x-ratelimit-remaining-tokens": "9000", "x-ratelimit-reset-tokens": "1m25s",
		}
		if diff := cmp.Diff(want, fields(r.Header)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		r = get(t, client, "user=1&tpm=10000")
		want = map[string]string{
			"RateLimit-Policy": `"rpm";q=100;w=60, "tpm";q=100000;w=60`, "RateLimit": `"rpm";r=99;t=1, "tpm";r=9000;t=1`, "Retry-After": "1",
			"x-ratelimit-limit-tokens": "100000", "x-ratelimit-remaining-tokens": "9000", "x-ratelimit-reset-tokens": "1s",
		}
		if diff := cmp.Diff(want, fields(r.Header)); r.StatusCode != 429 || diff != "" {
			t.Errorf("%d (-want +got):\n%s", r.StatusCode, diff)
		}
	})
}

// levelled is an Acquirer that denies, and says where its limits stand.
type levelled struct {
	limits.GPT4Acquirer

	denied *runtime.DeniedError
	levels []runtime.Level
}

func (l *levelled) Acquire(
	context.Context, limits.GPT4Entity, limits.GPT4Cost, ...runtime.CallOption,
) (*limits.GPT4Lease, error) {
	return nil, l.denied
}

func (l *levelled) Recall(limits.GPT4Entity) []runtime.Level { return l.levels }

// answer is what l's callers get.
func (l *levelled) answer() *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	httplimit.Middleware(l, ask, httplimit.Headers())(http.NotFoundHandler()).
		ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?user=1&tpm=1", nil))
	return w
}

// TestFields: whatever the numbers and names, fields are structured ones, Retry-After is not early and at most a second late, no t
// is later, and no policy promises more than the limit gives.
func TestFields(t *testing.T) {
	numbers := rapid.OneOf(rapid.Int64Range(0, 5), rapid.Int64Range(0, 1_000_000), rapid.Int64Range(0, math.MaxInt64))
	rapid.Check(t, func(t *rapid.T) {
		l := &levelled{denied: &runtime.DeniedError{}}
		limitOf := map[string]bucket.Limit{}
		for i := range rapid.IntRange(1, 4).Draw(t, "limits") {
			name := rapid.OneOf(rapid.Just(fmt.Sprint("limit_", i)), rapid.StringMatching(fmt.Sprintf(`[ -~]{0,6}%d`, i)),
				rapid.StringN(0, 5, -1).Filter(func(s string) bool { return s != "" })).Draw(t, "name")
			level := runtime.Level{
				Limit: name, Available: numbers.Draw(t, "available"), Full: time.Duration(numbers.Draw(t, "full")),
				Params: rapid.Custom(params).Filter(schematic).Draw(t, "params"),
			}
			l.levels = append(l.levels, level)
			if _, twice := limitOf[name]; !twice {
				limitOf[name] = level.Params
			}
			if i == 0 || rapid.Bool().Draw(t, "refuses") {
				l.denied = runtime.AddRefusal(l.denied, runtime.Refusal{
					Limit: name, Available: numbers.Draw(t, "left"), RetryAfter: time.Duration(numbers.Draw(t, "retry after")),
				})
			}
		}
		h := l.answer().Header()
		retry, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64)
		exact := l.denied.RetryAfter
		if err != nil || float64(retry) < exact.Seconds() && retry*1e9 < int64(exact) || retry-1 >= int64(exact/time.Second)+1 {
			t.Fatalf("Retry-After %d, %v of %v", retry, err, exact)
		}
		for _, item := range list(t, h, "RateLimit") {
			if at := number(t, item, "t"); at > retry || number(t, item, "r") < 0 {
				t.Errorf("%v %v, Retry-After %d", item.Value, item.Params, retry)
			}
		}
		for _, item := range list(t, h, "RateLimit-Policy") {
			quota, window, l := number(t, item, "q"), number(t, item, "w"), limitOf[item.Value.(string)]
			promised, given := product(quota, bucket.Milli, l.Period), product(l.Refill, window, 1000)
			if window < 1 || promised.Cmp(given) > 0 {
				t.Errorf("%d in %d s of %+v", quota, window, l)
			}
		}
	})
}

// params draws a limit's parameters.
func params(t *rapid.T) bucket.Limit {
	return bucket.Limit{
		Capacity: rapid.Int64Range(0, 1e12).Draw(t, "capacity") * bucket.Milli,
		Refill:   rapid.Int64Range(1, 1e15).Draw(t, "refill"),
		Period:   rapid.Int64Range(1, tenYears).Draw(t, "period"),
	}
}

// tenYears is how long the slowest limit of a schema takes to be full, in ms.
const tenYears = 10 * 366 * 24 * 3_600_000

func schematic(l bucket.Limit) bool {
	return product(l.Capacity, l.Period).Cmp(product(l.Refill, tenYears)) <= 0
}

// list parses a field of h; each name is there once.
func list(t *rapid.T, h http.Header, field string) []httpsfv.Item {
	values := h.Values(field)
	if len(values) == 0 {
		return nil
	}
	parsed, err := httpsfv.UnmarshalList(values)
	if err != nil || len(parsed) == 0 {
		t.Fatalf("%s: %q: %v", field, values, err)
	}
	again, err := httpsfv.Marshal(parsed)
	if err != nil || again != h.Get(field) {
		t.Fatalf("%s: %q is serialized as %q: %v", field, values, again, err)
	}
	items, seen := make([]httpsfv.Item, len(parsed)), map[string]bool{}
	for i, member := range parsed {
		items[i] = member.(httpsfv.Item)
		name, ok := items[i].Value.(string)
		if !ok || seen[name] {
			t.Fatalf("%s: %q: %v is no name, or is there twice", field, values, items[i].Value)
		}
		seen[name] = true
	}
	return items
}

func number(t *rapid.T, item httpsfv.Item, param string) int64 {
	value, ok := item.Params.Get(param)
	n, whole := value.(int64)
	if !ok || !whole {
		t.Fatalf("%v has %s = %v", item.Value, param, value)
	}
	return n
}

func product(factors ...int64) *big.Int {
	p := big.NewInt(1)
	for _, f := range factors {
		p.Mul(p, big.NewInt(f))
	}
	return p
}

// TestPolicy says what a limit is shown as.
func TestPolicy(t *testing.T) {
	refill := bucket.Per(10, time.Second)
	refill.Refill = 4 * bucket.Milli
	for _, test := range []struct {
		params bucket.Limit
		want   string
	}{
		{bucket.Per(100, time.Minute), `"tpm";q=100;w=60`},
		{bucket.Per(100, time.Minute).WithBurst(500), `"tpm";q=100;w=60`},
		{bucket.Per(5, 100*time.Millisecond), `"tpm";q=50;w=1`},
		{bucket.Per(3, 1500*time.Millisecond), `"tpm";q=4;w=2`},
		{refill, `"tpm";q=12;w=3`}, // 10 come in 2.5 s
		{bucket.Per(1_000_000, time.Hour).Share(250_000), `"tpm";q=250000;w=3600`},
		{bucket.Per(60, time.Minute).Share(0), `"tpm";q=0;w=60`},
		{bucket.Limit{}, ""},
	} {
		l := &levelled{levels: []runtime.Level{{Limit: "tpm", Params: test.params}}, denied: &runtime.DeniedError{}}
		if got := l.answer().Header().Get("RateLimit-Policy"); got != test.want {
			t.Errorf("%v: %s, want %s", test.params, got, test.want)
		}
	}
}
