package invariant_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/usage"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// line is a process's connection, on which requests and replies are lost, and some are refused for their
// throughput. It can go dead: then nothing passes any more.
type line struct {
	aws.HTTPClient

	seen func(string)
	mu   sync.Mutex
	dice *rand.Rand
	lost float64 // portion of requests; as many replies, and as many are throttled
	left int     // requests until the process is killed; below 0 never
	kill func()
}

// Do implements aws.HTTPClient.
func (l *line) Do(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	dice, after := l.dice.Float64()/l.lost, l.dice.IntN(2) == 0
	dead := l.left == 0
	if l.left--; dead {
		l.left = 0
	}
	dies := !dead && l.left == 0
	l.mu.Unlock()
	if dies {
		l.seen("kills")
		defer l.kill()
	}
	switch {
	case dead || dies && !after || dice < 1:
		return nil, syscall.ECONNRESET
	case dice < 2:
		return throttled(r), nil
	}
	reply, err := l.HTTPClient.Do(r)
	if err != nil {
		l.seen("unanswered")
		return nil, err
	}
	if !dies && dice >= 3 {
		return l.notice(reply), nil
	}
	_ = reply.Body.Close() // it is lost
	return nil, syscall.ECONNRESET
}

// notice counts windows that refused what they had.
func (l *line) notice(reply *http.Response) *http.Response {
	if reply == nil || reply.StatusCode != http.StatusBadRequest {
		return reply
	}
	body, err := io.ReadAll(reply.Body)
	if err := errors.Join(err, reply.Body.Close()); err != nil {
		return reply // which fails its reader as well
	}
	if strings.Contains(string(body), "ConditionalCheckFailed") && strings.Contains(string(body), "#USAGE#") {
		l.seen("redelivered")
	}
	reply.Body = io.NopCloser(bytes.NewReader(body))
	return reply
}

// throttled is an answer that there is no throughput left.
func throttled(r *http.Request) *http.Response {
	const body = `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",` +
		`"message":"slow down"}`
	return &http.Response{
		StatusCode: http.StatusBadRequest, Status: "400 Bad Request", Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}
}

// retries are the SDK's, without long pauses.
func retries() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.RateLimiter = ratelimit.None
		o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) {
			return time.Millisecond,
				nil
		})
	})
}

// over returns a client of w's table on a line.
func (w *world) over(l *line) *dynamodb.Client {
	l.HTTPClient = w.client.Options().HTTPClient
	return dynamodb.New(w.client.Options(), func(o *dynamodb.Options) { o.HTTPClient, o.Retryer = l, retries() })
}

// aggregator returns one that writes through client.
func (w *world) aggregator(t testing.TB, client usage.API, b broken) *usage.Aggregator {
	t.Helper()
	extract := limits.ExtractDeltas
	if b.extract != nil {
		extract = b.extract
	}
	a, err := usage.New(usage.Config{
		Client: writer{client, b.write}, Table: w.table, Extract: extract, Writers: 3,
		Poisoned: func(_ context.Context, p usage.Poison) error {
			t.Errorf("record %s: %v", p.Record.Sequence, p.Err)
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// reader starts a process that adds up the stream, on a line.
func (w *world) reader(t testing.TB, l *line, b broken) *poll.Poller {
	t.Helper()
	client := w.over(l)
	streams := dynamodbstreams.New(w.streams.Options(), func(o *dynamodbstreams.Options) {
		o.HTTPClient,
			o.Retryer = l, retries()
	})
	p, err := poll.New(poll.Config{
		Client: client, Streams: tailor{streams, b.records}, Table: w.table, Aggregator: w.aggregator(t, client, b),
		Clock: w, Idle: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// read has a reader run, killed and started again and again, until ctx ends.
func (w *world) read(ctx context.Context, t testing.TB, b *books, dice *rand.Rand, how broken) {
	t.Helper()
	for ctx.Err() == nil {
		life, kill := context.WithCancel(ctx)
		l := &line{seen: b.meet, dice: rand.New(rand.NewPCG(dice.Uint64(), 1)), lost: 0.02,
			left: 1 + dice.IntN(120),
			kill: kill}
		if err := w.reader(t, l, how).Run(life); err != nil {
			t.Error(err)
		}
		kill()
	}
}

// drain has a reader that nobody kills read the stream to its end.
func (w *world) drain(t testing.TB, b *books, dice *rand.Rand, how broken) {
	t.Helper()
	l := &line{seen: b.meet, dice: dice, lost: 0.02, left: -1}
	if err := w.reader(t, l, how).Drain(t.Context()); err != nil {
		t.Error(err)
	}
}
