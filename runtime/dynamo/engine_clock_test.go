package dynamo

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// hosts are processes on hosts with clocks of their own, in a bubble of testing/synctest, whose time is
// DynamoDB's. They share user-1's bucket.
type hosts struct {
	*engine
	t    *testing.T
	def  store.Definition
	rate int64 // tokens a second of the bucket
}

// onHosts runs f in a bubble.
func onHosts(t *testing.T, rate int64, f func(*hosts)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		_, embeddings := generated(t)
		e := &engine{client: memdynamo.New().Client(), ttl: 24 * time.Hour}
		e.table = dynamotest.Table(t, e.client, dynamotest.Streamless(operator.Table))
		f(&hosts{e, t, withNumbers(embeddings, 1, bucket.Per(rate, time.Second)), rate})
	})
}

// steppedClock is a host's clock, which is set ahead or back. Its readings have no monotonic part.
type steppedClock struct{ ahead atomic.Int64 }

func (c *steppedClock) Now() time.Time {
	return time.Now().Round(0).Add(time.Duration(c.ahead.Load()))
}

func (c *steppedClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// host is a process, and what it logged.
type host struct {
	*desk
	log *bytes.Buffer
}

// open starts a process with a clock, through a client.
func (h *hosts) open(client *dynamodb.Client, clock store.Clock) *host {
	h.t.Helper()
	p := &host{desk: &desk{events: &events{}}, log: &bytes.Buffer{}}
	opts := append(storetest.Options(clock, &p.Events, h.ttl),
		runtime.WithLogger(slog.New(slog.NewTextHandler(p.log, nil))))
	l, resources := storetest.Open[user](h.t, newStore(client, h.table), opts, h.def)
	p.Limiter, p.Resource = l, resources[0]
	return p
}

// refilled returns the bucket's rf, relative to DynamoDB's time.
func (h *hosts) refilled() time.Duration {
	h.t.Helper()
	item := h.get(h.t, storetest.BucketKey("user-1", "embeddings"))
	return time.Until(time.UnixMilli(number(item["rf"])))
}

// warnings returns how often p logged that its clock is ahead.
func (p *host) warnings() int {
	return strings.Count(p.log.String(), "level=WARN msg=\"sluice: this host's clock is ahead of DynamoDB's: "+
		"DynamoDB's date is used instead; set the clock by NTP\"")
}

// undated is a connection whose replies of some status, or all if that is 0, have no date.
type undated struct {
	dynamodb.HTTPClient
	status int
}

// Do implements dynamodb.HTTPClient.
func (u undated) Do(r *http.Request) (*http.Response, error) {
	reply, err := u.HTTPClient.Do(r)
	if err == nil && (u.status == 0 || u.status == reply.StatusCode) {
		reply.Header.Del("Date")
	}
	return reply, err
}

// without returns a client whose replies of a status, or all if that is 0, have no date.
func (h *hosts) without(status int) *dynamodb.Client {
	o := h.client.Options()
	o.HTTPClient = undated{o.HTTPClient, status}
	return dynamodb.New(o)
}

// TestHostAhead has a process whose clock is an hour ahead, and which never called Check, beside two others
// on one bucket. It leaves them its refill once it stops, and says once a minute that its clock is wrong.
// Without dates nobody is admitted for the next hour.
func TestHostAhead(t *testing.T) {
	longform.NoRace(t, "it is about clocks, and other tests run the same goroutines")
	rate := int64(longform.Count(t, "calls a second", 100, 10))
	for _, test := range []struct {
		name     string
		dated    bool
		warnings int
	}{
		{"bounded by dates", true, 2},
		{"control: no dates", false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			onHosts(t, rate, func(h *hosts) {
				client := h.client
				if !test.dated {
					client = h.without(0)
				}
				right := []*host{h.open(h.client, offsetClock(0)), h.open(h.client, offsetClock(0))}
				ahead := h.open(client, offsetClock(time.Hour))
				h.acquire(ahead, rate)
				together, refill := h.contend(61*time.Second, append(right, ahead)...)
				t.Logf("all were admitted %v, of %v; rf is %v ahead", together, refill, h.refilled())
				h.admits(together, refill, true)
				if test.dated {
					h.denials(ahead)
				}
				alone, refill := h.contend(19*time.Second, right...)
				t.Logf("the others were admitted %v, of %v", alone, refill)
				h.admits(alone, refill, test.dated)
				if n := ahead.warnings(); n != test.warnings {
					t.Errorf("%d warnings, want %d: %s", n, test.warnings, ahead.log)
				}
				if right[0].log.Len()+right[1].log.Len() > 0 {
					t.Errorf("the others logged %s%s", right[0].log, right[1].log)
				}
			})
		})
	}
}

// contend has processes call for d, and returns how often each was admitted, and the refill of that time.
func (h *hosts) contend(d time.Duration, all ...*host) (admitted []int, refill float64) {
	h.t.Helper()
	began := time.Now()
	admitted = make([]int, len(all))
	var wg sync.WaitGroup
	for i, p := range all {
		wg.Go(func() {
			for time.Since(began) < d {
				switch _, err := p.Acquire(h.t.Context(), "1", tokens{1}); {
				case err == nil:
					admitted[i]++
				case !isA[*store.DeniedError](err) && !isA[*store.ContendedError](err):
					h.t.Error(err)
				}
				pause := (1500 + 200*time.Duration(i)) * time.Millisecond / time.Duration(h.rate)
				time.Sleep(pause) //nolint:forbidigo // in a bubble of testing/synctest
			}
		})
	}
	wg.Wait()
	return admitted, float64(h.rate) * time.Since(began).Seconds()
}

// admits holds that processes were admitted as much as a refill, or nothing at all.
func (h *hosts) admits(admitted []int, refill float64, want bool) {
	h.t.Helper()
	sum := 0.0
	for _, n := range admitted {
		sum += float64(n)
	}
	switch {
	case want && (sum < 0.95*refill || sum > refill+float64(h.rate)):
		h.t.Errorf("%v were admitted, of a refill of %v", admitted, refill)
	case !want && sum > float64(h.rate): // what was stored
		h.t.Errorf("%v were admitted, want nobody", admitted)
	}
}

// denials holds what denials cost a process whose clock is bounded: nothing, within a second.
func (h *hosts) denials(p *host) {
	h.t.Helper()
	denied := func() {
		if _, err := p.Acquire(h.t.Context(), "1", tokens{h.rate}); !isA[*store.DeniedError](err) {
			h.t.Errorf("got %v", err)
		}
	}
	denied()
	p.Paths = nil
	for range 20 {
		denied()
	}
	p.calls(h.t)
}

// TestFirstWrite: the first write of a process does not go by a clock that is ahead either. A read precedes
// it, and its reply has a date. So does the reply to a write that is refused.
func TestFirstWrite(t *testing.T) {
	for _, ahead := range []time.Duration{3 * time.Second, time.Hour} {
		for _, exists := range []bool{false, true} {
			for name, most := range map[string]time.Duration{
				"read": time.Second, "refused": time.Second, "control: no dates": ahead,
			} {
				t.Run(fmt.Sprint(ahead, " ", exists, " ", name), func(t *testing.T) {
					onHosts(t, 100, func(h *hosts) {
						right, client := h.open(h.client, offsetClock(0)), h.client
						if exists {
							h.acquire(right, 100)
							time.Sleep(2500 * time.Millisecond) //nolint:forbidigo // in a bubble of testing/synctest
						}
						switch name {
						case "refused":
							o := h.without(http.StatusOK).Options()
							o.HTTPClient = &overtaken{o.HTTPClient, func() { h.acquire(right, 1) }, false}
							client = dynamodb.New(o)
						case "control: no dates":
							client = h.without(0)
						}
						h.acquire(h.open(client, offsetClock(ahead)), 99)
						if rf := h.refilled(); rf > most || most == ahead && rf < ahead {
							t.Errorf("rf is %v ahead, want at most %v", rf, most)
						}
					})
				})
			}
		}
	}
}

func (h *hosts) acquire(p *host, n int64) {
	h.t.Helper()
	if _, err := p.Acquire(h.t.Context(), "1", tokens{n}); err != nil {
		h.t.Fatal(err)
	}
}

// overtaken is a connection on which another write overtakes the first one.
type overtaken struct {
	dynamodb.HTTPClient
	other func()
	done  bool
}

// Do implements dynamodb.HTTPClient.
func (o *overtaken) Do(r *http.Request) (*http.Response, error) {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !o.done && (op == "UpdateItem" || op == "PutItem") {
		o.done = true
		o.other()
	}
	return o.HTTPClient.Do(r)
}
